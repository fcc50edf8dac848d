
=pod

=head1 NAME

EvidenceLedger - what the ledger says, and what is wrong with it

=head1 SYNOPSIS

  is($node->ledger_faults, '', 'nothing is wrong in the ledger');
  is($node->ledger_of($id), $before, 'nothing has changed');

=head1 DESCRIPTION

The functions behind the methods of EvidenceNode.  $query is a function that
runs a query and returns its result as psql -At prints it.

=cut

package EvidenceLedger;

use strict;
use warnings;

use Time::HiRes qw(usleep);

=pod

=head1 FUNCTIONS

=over

=item EvidenceLedger::of_export($id, $query)

All rows that one export has.

=cut

sub of_export
{
	my ($id, $query) = @_;

	return $query->(<<"SQL");
SELECT to_jsonb(e) FROM evidence.audit_export AS e WHERE id = '$id';
SELECT to_jsonb(j) FROM evidence.background_job AS j WHERE export_id = '$id';
SELECT to_jsonb(o) FROM evidence.outbox_event AS o WHERE export_id = '$id';
SELECT to_jsonb(a) FROM evidence.attempt AS a WHERE export_id = '$id' ORDER BY started_at, token;
SELECT attempt_token, seq, sha256 FROM evidence.archive_chunk WHERE export_id = '$id' ORDER BY 1, 2;
SELECT to_jsonb(v) FROM evidence.export_event AS v WHERE export_id = '$id' ORDER BY id;
SQL
}

=pod

=item EvidenceLedger::faults($node, $query)

What is wrong with the ledger as a whole while nothing runs: illegal
combinations of the three facts, exports made twice or with other bytes than
the selected ones, versions that do not match the history, attempts that are
open or miscounted, archives in the object store and in the database at once or
in neither, objects that nobody removes, requests, cancellations or downloads without exactly one
audit row, locks or temporary files left behind.  An empty text when all is
well.  It first waits until no exporter is at work.

=cut

my $faults_query = <<'SQL';
SELECT string_agg(fault, E'\n' ORDER BY fault) FROM (
SELECT format('export %s: %s, %s, %s is no legal combination', e.id, e.state, j.state, o.state)
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.background_job AS j ON j.export_id = e.id
  LEFT JOIN evidence.outbox_event AS o ON o.export_id = e.id AND o.generation = e.generation
   AND o.kind = 'audit_export.generate'
 WHERE NOT EXISTS (SELECT FROM evidence.state_combination AS c
                    WHERE (c.export, c.job, c.event) = (e.state, j.state, o.state))
UNION ALL
SELECT format('export %s: %s events "ready" in state %s', e.id, n, e.state)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND v.event = 'ready') AS ready
 WHERE n <> CASE WHEN e.state IN ('READY', 'REVOKED', 'EXPIRED') THEN 1 ELSE 0 END
UNION ALL
SELECT format('export %s: version %s after %s moves', e.id, e.version, n)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND v.to_state IS NOT NULL) AS moves
 WHERE n <> e.version
UNION ALL
SELECT format('export %s: event %s does not begin where the one before ended', v.export_id, v.id)
  FROM (SELECT *, lag(to_state) OVER (PARTITION BY export_id ORDER BY version) AS before
          FROM evidence.export_event WHERE to_state IS NOT NULL) AS v
 WHERE v.from_state IS DISTINCT FROM v.before
UNION ALL
SELECT format('export %s: %s chunks of its archive, %s expected', e.id, n, e.archive_chunks)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.archive_chunk AS c
                      WHERE c.export_id = e.id AND c.attempt_token = e.archive_token) AS chunks
 WHERE e.state IN ('STAGED', 'READY')
   AND n <> CASE WHEN e.object_key IS NULL THEN e.archive_chunks ELSE 0 END
UNION ALL
SELECT format('export %s: chunks that were not selected', c.export_id)
  FROM evidence.archive_chunk AS c
  JOIN evidence.audit_export AS e ON e.id = c.export_id
 WHERE c.attempt_token IS DISTINCT FROM e.archive_token
 GROUP BY c.export_id
UNION ALL
SELECT format('export %s: %s attempts open in state %s', e.id, count(*), e.state)
  FROM evidence.audit_export AS e
  JOIN evidence.attempt AS a ON a.export_id = e.id AND a.ended_at IS NULL
 WHERE a.token IS DISTINCT FROM e.attempt_token OR a.kind = 'exporter'
 GROUP BY e.id, e.state
UNION ALL
SELECT format('export %s: %s attempts, %s claims, %s counted and %s given back', j.export_id, tried, claims, j.attempts, j.deferrals)
  FROM evidence.background_job AS j
  JOIN evidence.audit_export AS e ON e.id = j.export_id
 CROSS JOIN LATERAL (SELECT count(*) AS tried, count(*) FILTER (WHERE a.generation = e.generation) AS lately
                       FROM evidence.attempt AS a WHERE a.job_id = j.id) AS a
 CROSS JOIN LATERAL (SELECT count(*) AS claims FROM evidence.export_event AS v
                      WHERE v.export_id = j.export_id AND v.event = 'claimed') AS v
 WHERE tried <> claims OR lately <> j.attempts + j.deferrals
UNION ALL
SELECT format('export %s: %s attempts succeeded in state %s', e.id, count(a), e.state)
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.attempt AS a ON a.export_id = e.id AND a.outcome = 'succeeded' AND a.generation = e.generation
 WHERE e.state NOT IN ('FAILED', 'CANCELLED') OR e.staged_at IS NULL
 GROUP BY e.id
HAVING array_agg(a.token) IS DISTINCT FROM ARRAY[e.archive_token]
UNION ALL
SELECT format('export %s is CANCELLED and nobody says that its worker stopped', e.id)
  FROM evidence.audit_export AS e WHERE e.state = 'CANCELLED' AND e.stopped_at IS NULL
UNION ALL
SELECT format('export %s in state %s: %s audit rows "%s", %s expected', e.id, e.state, n, action, expected)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (VALUES ('audit_export.request', (e.recreated_from IS NULL)::int),
                            ('audit_export.recreate', (e.recreated_from IS NOT NULL)::int),
                            ('audit_export.retry', e.generation - 1),
                            ('audit_export.cancel', (e.state = 'CANCELLED')::int),
                            ('audit_export.revoke', (e.state = 'REVOKED')::int),
                            ('audit_export.download', (SELECT count(*) FROM evidence.download_grant AS g
                                                        WHERE g.export_id = e.id))) AS promised (action, expected)
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.audit_log AS l
                      WHERE l.action = promised.action AND l.target_id = e.id::text) AS l
 WHERE n <> expected
UNION ALL
SELECT format('export %s: %s grants, %s events "download_granted"', e.id, grants, events)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS grants FROM evidence.download_grant AS g WHERE g.export_id = e.id) AS g
 CROSS JOIN LATERAL (SELECT count(*) AS events FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND v.event = 'download_granted') AS v
 WHERE grants <> events
UNION ALL
SELECT format('export %s in state %s has an upload event %s', e.id, e.state, coalesce(o.state, 'nowhere'))
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.outbox_event AS o ON o.export_id = e.id AND o.generation = e.generation
   AND o.kind = 'archive.upload'
 WHERE (o.state IS NULL) <> (e.staged_at IS NULL)
    OR o.state IS NOT NULL
   AND CASE e.state WHEN 'STAGED' THEN o.state NOT IN ('PENDING', 'DEAD')
                    WHEN 'FAILED' THEN o.state <> 'CLOSED'
                    WHEN 'CANCELLED' THEN o.state <> 'CLOSED'
                    ELSE o.state <> 'DELIVERED' END
UNION ALL
SELECT format('export %s: %s uploads confirmed in state %s', e.id, n, e.state)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.upload_attempt AS u
                      WHERE u.export_id = e.id AND u.outcome = 'confirmed') AS u
 WHERE n <> (e.object_key IS NOT NULL)::int
UNION ALL
SELECT format('export %s in state %s: nobody removes what the store may have', e.id, e.state)
  FROM evidence.audit_export AS e
 WHERE e.state NOT IN ('STAGED', 'READY')
   AND EXISTS (SELECT FROM evidence.upload_attempt AS u WHERE u.export_id = e.id AND u.sent_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM evidence.upload_attempt AS u WHERE u.export_id = e.id AND u.outcome = 'quarantined')
   AND NOT EXISTS (SELECT FROM evidence.outbox_event AS o WHERE o.export_id = e.id AND o.kind = 'object.delete')
UNION ALL
SELECT format('process %s still holds an attempt', pid)
  FROM pg_locks WHERE locktype = 'advisory' AND classid = 1702259044
) AS found (fault)
SQL

sub faults
{
	my ($node, $query) = @_;
	my $text = '';

	$query->(<<~'SQL');
		DO $$
		BEGIN
		    FOR i IN 1 .. 18000 LOOP
		        PERFORM pg_stat_clear_snapshot();
		        IF NOT EXISTS (SELECT FROM pg_stat_activity
		                        WHERE backend_type = 'pg_evidence exporter' AND state IS DISTINCT FROM 'idle') THEN
		            RETURN;
		        END IF;
		        PERFORM pg_sleep(0.01);
		    END LOOP;
		    RAISE EXCEPTION 'an exporter does not come to its end';
		END
		$$
		SQL
	# Between two jobs an exporter is idle for a moment.  An attempt that has
	# just begun looks like one that was left open, and ends.
	foreach (1 .. 100)
	{
		$text = $query->($faults_query);
		last if $text eq '';
		usleep(100_000);
	}

	opendir my $folder, $node->data_dir . '/base/pgsql_tmp'
	  or return $text;
	$text .= "\ntemporary file $_ left behind"
	  foreach grep { !/^\.\.?$/ } readdir $folder;
	closedir $folder;
	return $text;
}

=pod

=back

=cut

1;
