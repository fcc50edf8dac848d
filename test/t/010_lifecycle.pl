# The launcher's life: when it starts, what it waits for, what wakes it, what
# it shows, and that it leaves an idle server alone.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main');

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Start, extension, end.
$node->start;
$node->wait_for_log(qr/pg_evidence launcher started for database "postgres"/);
$node->wait_for_log(
	qr/launcher waits: extension "pg_evidence" version \S+ is not installed/);
pass('the launcher says that it started and what it waits for');

my $offset = -s $node->logfile;

$node->create_extension;
$node->wait_for_log(qr/pg_evidence launcher serves database "postgres"/,
	$offset);
pass('the launcher notices CREATE EXTENSION');

$offset = -s $node->logfile;
sql('DROP EXTENSION pg_evidence');
$node->wait_for_log(qr/launcher waits: extension "pg_evidence"/, $offset);
pass('the launcher notices DROP EXTENSION');

$offset = -s $node->logfile;
$node->create_extension;
$node->wait_for_log(qr/launcher serves/, $offset);
$node->fill(1000, 10);
my $id = $node->request;

$node->wait_state($id, 'READY');
pass('it serves an extension that was created again');

# One database only.
sql('CREATE DATABASE other');
my ($code, $text) =
  $node->error_of('CREATE EXTENSION pg_evidence', dbname => 'other');
is($code, '55000', 'CREATE EXTENSION in another database is refused');
like($text, qr/HINT:.*pg_evidence\.database/,
	'with a hint at the setting that decides');

# What it shows.
is( sql(<<'SQL'),
SELECT application_name, backend_type, datname, wait_event_type, state
  FROM pg_stat_activity WHERE backend_type LIKE 'pg_evidence%'
 ORDER BY 1
SQL
	"pg_evidence exporter|pg_evidence exporter|postgres|Extension|idle\n"
	  . 'pg_evidence launcher|pg_evidence launcher|postgres|Extension|idle',
	'launcher and waiting exporter show themselves in pg_stat_activity');

# An exporter waits for another job, until the settings change.
my $worker = $node->worker_pid('exporter');
$id = $node->request(purpose => 'another');
$node->wait_state($id, 'READY');
is($node->worker_pid('exporter'),
	$worker, 'one exporter makes one package after the other');
is(sql("SELECT pid FROM evidence.attempt WHERE export_id = '$id'"),
	$worker, 'and its attempts say so');
$node->reload;
$node->poll("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker");
$id = $node->request(purpose => 'after a reload');
$node->wait_state($id, 'READY');
isnt($node->worker_pid('exporter'),
	$worker, 'after a reload the next job gets a new exporter');

$offset = $node->pause_before('half-read');
$id = $node->request;
$node->wait_paused('half-read', $offset);
is( sql(<<'SQL'),
SELECT application_name, datname, wait_event_type, state, query
  FROM pg_stat_activity WHERE backend_type = 'pg_evidence exporter'
SQL
	"pg_evidence exporter|postgres|Extension|active|pg_evidence: read export $id",
	'an exporter shows what it does');
is( sql(
		"SELECT rows_total > 1000, rows_done BETWEEN 100 AND 999, progress > 0"
		  . " FROM evidence.audit_export_status WHERE id = '$id'"),
	't|t|t',
	'and how far it has come');
$node->resume;
$node->wait_state($id, 'READY');

# A request wakes it.  The bound is generous; the figure is for reading.
{
	my @latencies;

	foreach my $try (1 .. 15)
	{
		$id = $node->request(filters => '{"actor_id": ["user-1"]}');
		$node->wait_state($id, 'READY');
		push @latencies, sql(<<"SQL");
SELECT round(1000 * extract(epoch FROM j.started_at - e.requested_at))
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id WHERE e.id = '$id'
SQL
	}
	@latencies = sort { $a <=> $b } @latencies;
	note "request to claim in ms: @latencies";
	cmp_ok($latencies[ $#latencies / 2 ], '<', 1000,
		"a request wakes the launcher (median $latencies[$#latencies / 2] ms to the claim)"
	);
}

# An idle launcher: rounds go by, nothing is written.  autovacuum and the
# background writer would write for reasons of their own.
{
	$node->append_conf('postgresql.conf', 'autovacuum = off');
	$node->append_conf('postgresql.conf', 'bgwriter_lru_maxpages = 0');
	$offset = -s $node->logfile;
	$node->restart;
	$node->wait_for_log(qr/launcher serves/, $offset);
	sql('CHECKPOINT');

	my $writes = 'SELECT pg_current_wal_insert_lsn(),'
	  . ' pg_snapshot_xmax(pg_current_snapshot())';
	my $rounds = "SELECT max(state_change) FROM pg_stat_activity"
	  . " WHERE backend_type = 'pg_evidence launcher'";
	my $seen = sql($rounds);
	my ($before, $round);

	# The first round after a start may set hint bits and plan.
	$node->poll("SELECT ($rounds) > '$seen'");
	$before = sql($writes);
	foreach (1 .. 2)
	{
		$seen = sql($rounds);
		$node->poll("SELECT ($rounds) > '$seen'");
	}
	is(sql($writes), $before,
		'an idle launcher writes no WAL and takes no transaction id');
}

# Settings change while it runs.
{
	$node->set(max_exporters => 0);
	$id = $node->request;
	$node->poll("SELECT state = 'DELIVERED' FROM evidence.outbox_event"
		  . " WHERE export_id = '$id'");
	is($node->worker_pid('exporter'),
		'', 'max_exporters = 0: delivered, and no exporter starts');
	is($node->export_state($id), 'QUEUED', 'max_exporters = 0: it waits');
	$node->set(max_exporters => 1);
	$node->wait_state($id, 'READY');
	pass('max_exporters = 1 after a reload: it is made');

	($code) = $node->error_of("SET pg_evidence.max_records = 1");
	is($code, '55P02', 'no session raises a limit for itself');
	($code) = $node->error_of("ALTER SYSTEM SET pg_evidence.max_exporters = 17");
	is($code, '22023', 'a value out of range is refused');
}

# A run_once() that holds the only place must not make the launcher start
# exporters that find none.
{
	$node->append_conf('postgresql.conf', "log_min_messages = debug1\n");
	$node->set(max_exporters => 0);
	$offset = $node->pause_before('half-read');
	$id = $node->request;
	my $session = $node->background_psql('postgres');

	$session->query_until(qr//, "CALL evidence.run_once();\n");
	$node->wait_paused('half-read', $offset);
	my $next = $node->request;

	$node->set(max_exporters => 1);
	my $start = -s $node->logfile;
	my $seen = sql('SELECT clock_timestamp()');

	# A second and more of rounds.
	foreach (1 .. 3)
	{
		$node->poll("SELECT state_change > '$seen' FROM pg_stat_activity"
			  . " WHERE backend_type = 'pg_evidence launcher'");
		$seen = sql('SELECT clock_timestamp()');
	}
	my $started = () = slurp_file($node->logfile, $start) =~
	  /starting background worker process "pg_evidence exporter/g;
	cmp_ok($started, '<=', 1,
		"while run_once() holds the only place no exporter is started ($started)");
	$node->resume;
	$node->wait_state($_, 'READY') foreach $id, $next;
	$session->quit;
	$node->append_conf('postgresql.conf', "log_min_messages = warning\n");
	$node->reload;
}

# A clean stop: nobody's fault, and put back once.
{
	$node->append_conf('postgresql.conf', "log_min_messages = log\n");
	$node->reload;
	$offset = $node->pause_before('half-read');
	$id = $node->request;
	$node->wait_paused('half-read', $offset);
	$node->write_settings(debug_pause => '');
	$node->restart;
	$node->wait_state($id, 'READY');
	is( sql(<<"SQL"),
SELECT attempts, deferrals FROM evidence.background_job WHERE export_id = '$id'
SQL
		'1|1',
		'a restart of the server burns no attempt');
	my $log = slurp_file($node->logfile, $offset);
	my @lines = $log =~ /(recovered .*)/g;

	is_deeply(
		\@lines,
		[ 'recovered 1 attempts: 1 exports queued again, 0 failed, 0 had been cancelled' ],
		'the work is put back once, and the log says so');
	is($node->ledger_faults, '', 'one archive and nothing else');
}

# Without the preloaded library.
{
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
	$node->restart;
	is( sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'evidence'"),
		'0', 'not preloaded: no launcher');
	$id = $node->request;
	is($node->export_state($id), 'QUEUED', 'not preloaded: requests are kept');
	sql('CALL evidence.run_once()');
	is($node->export_state($id), 'READY', 'not preloaded: run_once() makes them');

	my $file = PostgreSQL::Test::Utils::tempdir() . '/evidence.zip';

	$node->export_to_file($id, $file);
	is(($node->program('verify', $file))[0],
		0, 'not preloaded: the downloaded package is intact');
	($code) = $node->error_of('BEGIN; CALL evidence.run_once(); COMMIT');
	is($code, '25001', 'run_once() is refused in a transaction block');
	sql('CREATE EXTENSION IF NOT EXISTS pg_evidence');
	is( $node->psql('other', 'CREATE EXTENSION pg_evidence'),
		0, 'not preloaded: any database may have the extension');
}

$node->stop;
done_testing();
