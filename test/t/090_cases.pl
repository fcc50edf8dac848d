# Cases that are about moments and about other people's habits: rows that
# change while they are read, row locks that outlive a lease, limits and
# timeouts that an administrator has set, row-level security, locks of other
# extensions, a restore by another superuser.  test/cases.md says which test
# holds which case.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $node = EvidenceNode->new('main', max_active_per_requester => 100);

$node->start;
$node->create_extension;

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Rows of one tenant, a second apart, in the past.
sub fill
{
	my ($tenant, $rows) = @_;

	sql(<<~"SQL");
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, summary)
		SELECT date_trunc('hour', now()) - interval '10 hours' + n * interval '1 second', '$tenant', 'actor-' || n, 'test.case', 'row ' || n
		  FROM generate_series(1, $rows) AS n
		SQL
	return;
}

sub of_tenant
{
	my ($tenant) = @_;

	return (filters => qq({"tenant_id": ["$tenant"]}));
}

# C01: every column that can hold a text, whichever the table has.
{
	my @columns = split /\n/, sql(<<~'SQL');
		SELECT c FROM evidence.audit_source AS s, unnest(s.columns) WITH ORDINALITY AS u (c, n)
		  JOIN pg_attribute AS a ON a.attrelid = 'evidence.audit_log'::regclass AND a.attname = c AND a.atttypid = 'text'::regtype
		 WHERE s.name = 'audit_log' ORDER BY n
		SQL
	# Two columns take nothing that could be a formula.
	my @free = grep { !/^(?:outcome|source_fingerprint)$/ } @columns;
	cmp_ok(scalar @free, '>=', 9, 'C01: there are columns of text');
	sql('INSERT INTO evidence.audit_log (' . join(', ', @free) . ') VALUES (' . join(', ', map { "'=$_()'" } @free) . ')');
	foreach my $column ('outcome', 'source_fingerprint')
	{
		my ($code) = $node->error_of("INSERT INTO evidence.audit_log (actor_id, action, $column) VALUES ('a', 'b', '=1+1')");
		is($code, '23514', "C01: $column cannot hold a formula");
	}
	my $id = $node->export(of_tenant('=tenant_id()'));
	$node->export_to_file($id, "$folder/columns.zip");
	my ($record) = @{ records_of("$folder/columns.zip") };
	is_deeply({ map { $_ => $record->{$_} } @free }, { map { $_ => "'=$_()" } @free },
		'C01: one row with a formula in every column: each is guarded');
	is(manifest_of("$folder/columns.zip")->{cells}{formula_prefixed}, scalar @free, 'C01: and counted');
}

# C32: what is slow to search does not keep a session from being cancelled.
{
	sql(<<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, summary)
		SELECT date_trunc('hour', now()) - interval '9 hours' + n * interval '1 second', 'slow', 'a', 'test.case',
		       CASE n % 3 WHEN 0 THEN repeat('a_.', 70000) WHEN 1 THEN 'password=''' || repeat(E'\\', 100001) ELSE repeat('password ', 20000) END
		  FROM generate_series(1, 150) AS n
		SQL
	my $id = $node->export(of_tenant('slow'));
	my $start = Time::HiRes::time();
	my ($code) = $node->error_of("SELECT count(*) FROM evidence.verify_audit_export('$id')");
	my $whole = Time::HiRes::time() - $start;
	is($code, '', 'C32: 150 slow rows are verified');

	$start = Time::HiRes::time();
	($code) = $node->error_of("SET statement_timeout = '20ms'; SELECT count(*) FROM evidence.verify_audit_export('$id')");
	my $cancelled = Time::HiRes::time() - $start;
	is($code, '57014', 'C32: and a cancellation is answered in the middle of them');
	note(sprintf 'whole %.2f s, cancelled %.2f s', $whole, $cancelled);
	cmp_ok($cancelled, '<', $whole / 2 + 2, 'C32: soon');
}

# C37: rows come, and (by a superuser's hand) go and change, between the count
# and the last page.
{
	fill('moving', 400);
	my $offset = $node->pause_before('half-read');
	my $id = $node->request(of_tenant('moving'), columns => '{id,actor_id,summary}');
	my $before = rows_to_file($node, "tenant_id = 'moving'", qw(id actor_id summary));

	$node->wait_paused('half-read', $offset);
	fill('moving', 50);
	sql(<<~'SQL');
		BEGIN;
		SET LOCAL lock_timeout = '10s';
		ALTER TABLE evidence.audit_log DISABLE TRIGGER append_only;
		DELETE FROM evidence.audit_log WHERE tenant_id = 'moving' AND actor_id IN ('actor-390', 'actor-10') AND summary LIKE 'row %';
		UPDATE evidence.audit_log SET summary = 'changed' WHERE tenant_id = 'moving' AND actor_id = 'actor-380';
		ALTER TABLE evidence.audit_log ENABLE ALWAYS TRIGGER append_only;
		COMMIT;
		SQL
	$node->resume;
	$node->wait_state($id, 'READY');
	is(sql("SELECT record_count, attempts FROM evidence.audit_export_status AS s JOIN evidence.background_job AS j ON j.export_id = s.id WHERE s.id = '$id'") =~ /^400\|1$/ ? 1 : 0,
		1, 'C37: the count is that of one snapshot, and one attempt read it');
	$node->export_to_file($id, "$folder/moving.zip");
	reference_ok("$folder/moving.zip", $before, 'C37: rows that came, went and changed meanwhile');
	is(sql("SELECT string_agg(check_name, ' ') FROM evidence.verify_audit_export('$id') WHERE NOT ok"),
		'record_count records_sha256', 'C37: and the verification afterwards sees what was done to the log');
}

# C44: a worker waits for a row lock in its last statement, and its lease ends
# during the wait.
{
	fill('locked', 10);
	my $offset = $node->pause_before('stored');
	my $id = $node->request(of_tenant('locked'));
	my $pid = $node->wait_paused('stored', $offset);
	my $session = $node->background_psql('postgres');

	$session->query_safe("BEGIN; UPDATE evidence.attempt SET lease_until = evidence._now() - interval '1 second' WHERE export_id = '$id' AND ended_at IS NULL");
	$node->resume;
	$node->poll("SELECT count(*) > 0 FROM pg_locks WHERE pid = $pid AND NOT granted");
	# Others are not held up by it, nor is the launcher.
	fill('beside', 5);
	$node->set(max_exporters => 2);
	my $beside = $node->request(of_tenant('beside'));
	$node->wait_state($beside, 'READY');
	pass('C44: other exports are made meanwhile');
	is($node->export_state($id), 'PROCESSING', 'C44: this one waits');
	$session->query_safe('COMMIT');
	$session->quit;
	$node->wait_state($id, 'READY');
	is(sql("SELECT string_agg(outcome, ' ' ORDER BY started_at) FROM evidence.attempt WHERE export_id = '$id'"),
		'lost succeeded', 'C44: after the wait it looks at the clock again, and has lost');
	is($node->ledger_faults, '', 'C44: one archive and nothing else');
	$node->set(max_exporters => 1);
}

# C46, C60: locks and limits of a session that runs run_once().
{
	$node->set(max_exporters => 0);
	my $id = $node->request(of_tenant('moving'));
	my $other = $node->background_psql('postgres');

	# Somebody else's locks, with numbers that everybody uses.
	$other->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(1, 1), pg_advisory_lock(0), pg_advisory_lock(0, 0)');
	$node->poll("SELECT state = 'DELIVERED' FROM evidence.outbox_event WHERE export_id = '$id'");
	my $offset = $node->pause_before('half-read');
	my ($code, $text) = $node->error_of(<<~'SQL');
		SET statement_timeout = '1s';
		CALL evidence.run_once();
		RESET statement_timeout;
		SELECT 1 / (count(*) = 0)::int AS none FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
		SELECT 1 / (current_user = session_user)::int;
		SQL
	like(slurp_file($node->logfile, $offset), qr/process \d+ pauses at "half-read"/, 'C60: run_once() was in the middle of reading');
	unlike($text, qr/22012/, 'C46: a run_once() that is cut off leaves no advisory lock and no other user behind');
	is(sql("SELECT e.state, j.state, a.outcome, a.error_code, j.attempts <= 1 FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id JOIN evidence.attempt AS a ON a.export_id = e.id WHERE e.id = '$id'"),
		'QUEUED|QUEUED|failed|57014|t', 'C60: its statement_timeout ends the attempt and not the export');
	$node->resume;
	sql("UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE export_id = '$id'");
	sql('CALL evidence.run_once()');
	is($node->export_state($id), 'READY', 'C46: locks with the numbers 0 and 1 are nobody\'s business here');
	$other->quit;
	$node->set(max_exporters => 1);
}

# C46: clients that share one server session, as behind a pooler in
# transaction mode: nothing rests on what a session remembers.
{
	sql("CREATE ROLE pooled LOGIN; SELECT evidence.grant_capability('pooled', 'operator')");
	my @sessions = map { $node->background_psql('postgres', extra_params => [ '-U', 'pooled' ]) } 1 .. 2;
	my $turn = 0;
	# Each transaction of the one client on the next session that is free.
	my $next = sub { return $sessions[ $turn++ % 2 ]->query_safe("$_[0]; DISCARD ALL"); };
	my $id = $next->(q(SELECT evidence.request_audit_export(now() - interval '1 day', now(), 'pooled', 'k', filters => '{"tenant_id": ["beside"]}')));

	$node->wait_state($id, 'READY');
	is($next->("SELECT state FROM evidence.audit_export_status WHERE id = '$id'"), 'READY', 'C46: a pooled client sees its export');
	my $grant = $next->("SELECT evidence.grant_audit_export_download('$id')");
	is($next->("SELECT min((f).seq) FROM (SELECT evidence.fetch_audit_export('$grant') AS f) AS c"),
		0, 'C46: and fetches it with a grant that another session has given');
	is($next->("SELECT evidence.fetch_audit_export('$grant', 0, 1) IS NOT NULL"), 't', 'C46: chunk by chunk on different sessions');
	is($next->('SELECT count(*) FROM pg_locks WHERE locktype = \'advisory\''), 0, 'C46: no lock stays with a session');
	$_->quit foreach @sessions;
}

# C52: a temporary file that cannot grow.
{
	sql(q{INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, summary)
		SELECT date_trunc('hour', now()) - interval '8 hours' + n * interval '1 second', 'large', 'a', 'test.case', md5(n::text) || md5((n + 7)::text)
		  FROM generate_series(1, 4000) AS n});
	# A reload reaches workers that are waiting for work, too.
	sql("ALTER SYSTEM SET temp_file_limit = '64kB'");
	$node->set(max_attempts => 1);
	my $id = $node->request(of_tenant('large'));
	$node->poll("SELECT count(*) > 0 FROM evidence.attempt WHERE export_id = '$id' AND outcome IS NOT NULL");
	is(sql("SELECT string_agg(DISTINCT outcome || ' ' || error_code, ' ') FROM evidence.attempt WHERE export_id = '$id'"),
		'failed 53400', 'C52: a temporary file that may not grow fails the attempt with what the server says');
	is(sql("SELECT count(*) FROM evidence.archive_chunk WHERE export_id = '$id'"), 0, 'C52: nothing half-written is stored');
	is(join(' ', glob($node->data_dir . '/base/pgsql_tmp/*')), '', 'C52: no temporary file is left');
	is($node->export_state($id), 'FAILED', 'C52: nor is there an archive');
	is($node->ledger_faults, '', 'C52: the ledger is in order');
	sql('ALTER SYSTEM RESET temp_file_limit');
	$node->set(max_attempts => 3);
	$id = $node->export(of_tenant('large'));
	is(sql("SELECT record_count FROM evidence.audit_export WHERE id = '$id'"), 4000, 'C52: with room again it is made');
}

# C57: the audit row is the download: without it no grant, and one grant is one
# row, however often and by however many sessions it is used.
{
	my $id = $node->export(of_tenant('beside'));
	sql(<<~'SQL');
		CREATE FUNCTION public.audit_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF new.action = 'audit_export.download' THEN
				RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full';
			END IF;
			RETURN new;
		END $$;
		CREATE TRIGGER full_now BEFORE INSERT ON evidence.audit_log FOR EACH ROW EXECUTE FUNCTION public.audit_is_full();
		SQL
	my ($code) = $node->error_of("SELECT evidence.grant_audit_export_download('$id')");
	is($code, '53100', 'C57: when the audit row cannot be written there is no grant');
	is(sql("SELECT count(*) FROM evidence.download_grant WHERE export_id = '$id'"), 0, 'C57: not even a row of it');
	sql('DROP FUNCTION public.audit_is_full CASCADE');

	my $grant = sql("SELECT evidence.grant_audit_export_download('$id')");
	my @runs = map {
		my $out = '';
		[ IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'),
					'-c', "SELECT md5(string_agg((f).data, '' ORDER BY (f).seq)) FROM (SELECT evidence.fetch_audit_export('$grant') AS f) AS c" ],
				'<', \undef, '>', \$out), \$out ]
	} 1 .. 20;
	$_->[0]->finish foreach @runs;
	my %answers = map { ${ $_->[1] } => 1 } @runs;
	is(scalar keys %answers, 1, 'C57: 20 sessions at once get the same bytes');
	like((keys %answers)[0], qr/^[0-9a-f]{32}$/, 'C57: and all of them');
	is(sql("SELECT count(*) FROM evidence.audit_log WHERE action = 'audit_export.download' AND target_id = '$id'"),
		1, 'C57: which the one audit row of their grant has announced');
}

# C60: limits that an administrator sets for all sessions, and what a worker
# holds while it does not read.
{
	sql("ALTER DATABASE postgres SET $_ = '50ms'") foreach qw(statement_timeout idle_in_transaction_session_timeout);
	{
		# For the sessions of this test they do not hold.
		local $ENV{PGOPTIONS} = '-c statement_timeout=0 -c idle_in_transaction_session_timeout=0';
		my $id = $node->export(purpose => 'timeouts', of_tenant('slow'));
		is(sql("SELECT attempts, ready_at - started_at > interval '50 milliseconds' FROM evidence.background_job AS j JOIN evidence.audit_export AS e ON e.id = j.export_id WHERE e.id = '$id'"),
			'1|t', 'C60: timeouts of sessions do not end a worker, however long it reads');
		sql('ALTER DATABASE postgres RESET ALL');
	}

	my $offset = $node->pause_before('assembled');
	my $id = $node->request(of_tenant('moving'));
	my $pid = $node->wait_paused('assembled', $offset);
	is(sql("SELECT backend_xmin IS NULL, backend_xid IS NULL, xact_start IS NULL FROM pg_stat_activity WHERE pid = $pid"),
		't|t|t', 'C60: no snapshot is held once the rows are read');
	$node->resume;
	$node->wait_state($id, 'READY');
}

# C62: what an ordinary role learns from the settings.
{
	sql("CREATE ROLE curious LOGIN");
	is(sql(q{SET ROLE curious; SELECT count(*) FROM pg_settings WHERE name = 'pg_evidence.fingerprint_key_file'}),
		0, 'C62: an ordinary role does not see where the key lies');
	is(sql('SELECT count(*) FROM pg_db_role_setting, unnest(setconfig) AS s WHERE s LIKE \'pg_evidence.%\''),
		0, 'C62: nothing of ours is kept per role or database');
	is(($node->error_of("ALTER ROLE curious SET pg_evidence.fingerprint_key_file = '/x'"))[0],
		'55P02', 'C62: nor can it be');
	is(($node->error_of("SET pg_evidence.secret_key = 'x'"))[0], '42602', 'C62: a setting of ours that does not exist cannot be made up');
}

# C63: row-level security on the log, forced, and a requester whom a policy
# would show half of the rows.
{
	sql(<<~'SQL');
		CREATE ROLE half LOGIN;
		SELECT evidence.grant_capability('half', 'requester');
		ALTER TABLE evidence.audit_log ENABLE ROW LEVEL SECURITY;
		ALTER TABLE evidence.audit_log FORCE ROW LEVEL SECURITY;
		CREATE POLICY even ON evidence.audit_log FOR SELECT TO half USING (id % 2 = 0);
		SQL
	my $id = $node->export(of_tenant('locked'), role => 'half');
	is(sql("SELECT record_count FROM evidence.audit_export WHERE id = '$id'"), 10,
		'C63: the scope is that of the contract, not of a policy: nothing is filtered in silence');
	is(sql("SET ROLE half; SELECT bool_and(ok) FROM evidence.verify_audit_export('$id')"), 't', 'C63: count and rows alike, also when verified');
	sql('ALTER DATABASE postgres SET row_security = off');
	$id = $node->export(of_tenant('locked'), role => 'half');
	is(sql("SELECT record_count FROM evidence.audit_export WHERE id = '$id'"), 10, 'C63: whatever row_security says');
	sql(<<~'SQL');
		ALTER DATABASE postgres RESET row_security;
		DROP POLICY even ON evidence.audit_log;
		ALTER TABLE evidence.audit_log NO FORCE ROW LEVEL SECURITY;
		ALTER TABLE evidence.audit_log DISABLE ROW LEVEL SECURITY;
		SQL
}

# C65: a dump, restored by another superuser, whose extension it then is.
{
	my $dump = "$folder/dump.sql";
	$node->command_ok([ 'pg_dump', '--no-owner', '-f', $dump, '-d', $node->connstr('postgres') ], 'C65: dumped');
	my $copy = EvidenceNode->new('copy', database => 'copy');
	$copy->start;
	$copy->safe_psql('postgres', 'CREATE ROLE other_super SUPERUSER LOGIN; CREATE ROLE pooled; CREATE ROLE half; CREATE ROLE curious; CREATE DATABASE copy TEMPLATE template0');
	$copy->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'other_super', '-d', $copy->connstr('copy'), '-f', $dump ], 'C65: restored by another superuser');
	is($copy->safe_psql('copy', q{SELECT pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'pg_evidence'}),
		'other_super', 'C65: whose extension it is');
	is($copy->safe_psql('copy', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'evidence'::regnamespace AND relowner <> 'other_super'::regrole}),
		0, 'C65: with all that is in it');
	is($copy->safe_psql('copy', q{SELECT evidence.adopt_instance('moved house') > 0}), 't', 'C65: it can be adopted');
	my $id = $copy->safe_psql('copy', q{SET ROLE half; SELECT evidence.request_audit_export(now() - interval '2 days', now(), 'after', filters => '{"tenant_id": ["locked"]}')});
	chomp $id;
	ok($copy->poll_query_until('copy', "SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$id'"), 'C65: and its workers act as the new owner');
	is($copy->safe_psql('copy', "SELECT record_count FROM evidence.audit_export WHERE id = '$id'"), 10, 'C65: with all rows of before');
	$copy->stop;
}

# C66: what users built on our tables is not dropped behind their backs, and a
# script that fails leaves nothing.
{
	sql('CREATE VIEW public.dependent AS SELECT id, action FROM evidence.audit_log');
	my ($code, $text) = $node->error_of('DROP EXTENSION pg_evidence');
	is($code, '2BP01', 'C66: DROP EXTENSION does not take a user\'s view along');
	is(($node->error_of('CREATE EXTENSION pg_evidence'))[0], '42710', 'C66: a second installation is refused');
	cmp_ok(sql('SELECT count(*) FROM public.dependent'), '>', 100, 'C66: and the view still works');
}

$node->stop;
done_testing();
