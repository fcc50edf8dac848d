-- roles.sql: the extension and who may do what.

CREATE EXTENSION pg_evidence;

-- The application writes events and can do nothing else here.
CREATE ROLE shop LOGIN;
SELECT evidence.grant_capability('shop', 'writer');

-- Anna, of internal audit, requests packages and downloads her own.
CREATE ROLE anna LOGIN;
SELECT evidence.grant_capability('anna', 'requester');
