-- 1. Ask for the evidence of the last 30 days.  From the commit on it will be
--    made, or visibly fail, whatever happens to the server.
SELECT evidence.request_audit_export(now() - interval '30 days', now(), 'access review') AS id \gset

-- 2. Watch it until its state is READY.
SELECT state, progress, record_count, expires_at FROM evidence.audit_export_status WHERE id = :'id';

-- 3. Put on record that you take it.
SELECT evidence.grant_audit_export_download(:'id') AS download_grant \gset

-- 4. Take it.
COPY (SELECT encode((f).data, 'hex')
        FROM (SELECT evidence.fetch_audit_export(:'download_grant') AS f) AS chunk)
  TO STDOUT \g | perl -ne 'chomp; print pack("H*", $_)' >by-hand.zip

-- 5. Compare the package with the log as it is now.
SELECT * FROM evidence.verify_audit_export(:'id');
