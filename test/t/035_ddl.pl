# What administrators do to the tables and the database while exports run:
# nothing of it may deadlock, hang for good or break an export.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

my $node = EvidenceNode->new('main', max_records => 10_000_000,
	max_active_per_requester => 100);

$node->append_conf('postgresql.conf', "deadlock_timeout = '100ms'");
$node->start;
$node->create_extension;

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Seconds that a statement takes.
sub timed
{
	my ($sql, $dbname) = @_;
	my ($out, $err) = ('', '');
	my $start = Time::HiRes::time();

	$node->psql($dbname // 'postgres', $sql, stdout => \$out, stderr => \$err);
	return (sprintf('%.2f', Time::HiRes::time() - $start), $err);
}

# Whoever needs the log's table gets it, and the export begins anew.
{
	my $name = 'VACUUM FULL of the log';

	$node->fill(5000, 10);
	my $offset = $node->pause_before('half-read');
	my $id = $node->request;

	$node->wait_paused('half-read', $offset);
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/started/,
		"\\echo started\nVACUUM FULL evidence.audit_log;\n");
	$node->poll("SELECT count(*) = 1 FROM pg_stat_activity"
		  . " WHERE query LIKE 'VACUUM FULL%' AND wait_event_type = 'Lock'");
	# It stands behind the reader, and the reader is not near its end.
	$node->resume;
	$session->query('SELECT 1');
	is($session->{stderr} =~ /ERROR.*/ ? $& : '', '', "$name: succeeds");
	$session->quit;
	$node->wait_state($id, 'READY');
	is( sql(<<"SQL"),
SELECT attempts, deferrals >= 1, (SELECT count(*) FROM evidence.export_event AS v
        WHERE v.export_id = j.export_id AND v.event = 'deferred' AND v.reason = '55P03') >= 1
  FROM evidence.background_job AS j WHERE export_id = '$id'
SQL
		'1|t|t',
		"$name: the export made way, which burnt no attempt");
	is( sql("SELECT count(*) FROM evidence.verify_audit_export('$id') WHERE NOT ok"),
		'0', "$name: and holds the right records");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# Somebody holds the log's table for long.
{
	my $name = 'the log is locked';
	my $session = $node->background_psql('postgres');

	$session->query_safe(
		'BEGIN; LOCK TABLE evidence.audit_log IN ACCESS EXCLUSIVE MODE');
	sql("ALTER DATABASE postgres SET lock_timeout = '300ms'");
	# A request writes to the log itself, so it has to come before.
	$session->query_safe('ROLLBACK');
	my $offset = $node->pause_before('claimed');
	my $id = $node->request;

	$node->wait_paused('claimed', $offset);
	$session->query_safe(
		'BEGIN; LOCK TABLE evidence.audit_log IN ACCESS EXCLUSIVE MODE');
	$node->resume;
	$node->poll("SELECT deferrals >= 1 FROM evidence.background_job"
		  . " WHERE export_id = '$id'");
	is($node->export_state($id) =~ /QUEUED|PROCESSING/ ? 1 : 0,
		1, "$name: lock_timeout defers the export");
	$session->query_safe('ROLLBACK');
	$session->quit;
	$node->wait_state($id, 'READY');
	is( sql("SELECT attempts FROM evidence.background_job WHERE export_id = '$id'"),
		'1', "$name: without burning an attempt");
	sql('ALTER DATABASE postgres RESET ALL');
}

# DROP EXTENSION at different moments of an export.
{
	my $name = 'DROP EXTENSION beside an export';
	my $offset = -s $node->logfile;
	my @seconds;
	my @errors;

	foreach my $try (1 .. 10)
	{
		$node->fill(20_000, 5) if $try > 1;
		my $id = $node->request;

		$node->poll("SELECT state <> 'QUEUED' FROM evidence.audit_export"
			  . " WHERE id = '$id'")
		  if $try % 2;
		sql('SELECT pg_sleep(' . 0.01 * $try . ')');
		my ($seconds, $error) = timed('DROP EXTENSION pg_evidence');

		push @seconds, $seconds;
		push @errors, $error if $error ne '';
		$node->create_extension;
	}
	is("@errors", '', "$name: succeeds, 10 of 10 times");
	note "$name took @seconds s";
	cmp_ok((sort { $a <=> $b } @seconds)[-1],
		'<', 5, "$name: never takes long");
	unlike(slurp_file($node->logfile, $offset),
		qr/deadlock detected/, "$name: no deadlock");
}

# And at the moments where the worker holds most: each step, DROP first in the
# queue, then the worker goes on.
foreach my $step (qw(claiming claimed reading read assembled stored completed))
{
	my $name = "DROP EXTENSION while an exporter is before \"$step\"";

	$node->fill(500, 5);
	my $offset = $node->pause_before($step);
	my $id = $node->request;

	$node->wait_paused($step, $offset);
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/started/,
		"\\echo started\nDROP EXTENSION pg_evidence;\n\\echo dropped\n");
	# Either it succeeds at once or it waits for the worker.
	$node->poll(<<'SQL');
SELECT NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_evidence')
    OR EXISTS (SELECT FROM pg_stat_activity
                WHERE query LIKE 'DROP EXTENSION%' AND wait_event_type = 'Lock')
SQL
	$node->resume;
	$session->query('SELECT 1');
	is($session->{stderr} =~ /ERROR.*/ ? $& : '', '', "$name: succeeds");
	$session->quit;
	unlike(slurp_file($node->logfile, $offset),
		qr/deadlock detected/, "$name: no deadlock");
	$node->poll("SELECT count(*) = 0 FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence exporter'");
	$node->create_extension
	  if sql("SELECT count(*) FROM pg_extension WHERE extname = 'pg_evidence'") eq '0';
	$node->poll("SELECT count(*) = 1 FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence launcher'");
}

# The library and the installed extension are of different versions: nobody
# touches the tables.
{
	my $name = 'ALTER EXTENSION UPDATE';
	my $share = $node->config_data('--sharedir') . '/extension';
	my $version = sql(
		"SELECT extversion FROM pg_extension WHERE extname = 'pg_evidence'");
	my $other = "$version.test";
	my @scripts = ("$share/pg_evidence--$version--$other.sql",
		"$share/pg_evidence--$other--$version.sql");

  SKIP:
	{
		skip 'the extension folder cannot be written to', 5 unless -w $share;

		append_to_file($_, "SELECT 1;\n") foreach @scripts;
		my $offset = $node->pause_before('half-read');

		$node->fill(5000, 5);
		my $id = $node->request;

		$node->wait_paused('half-read', $offset);
		$offset = -s $node->logfile;
		sql("ALTER EXTENSION pg_evidence UPDATE TO '$other'");
		$node->wait_for_log(
			qr/launcher waits: extension "pg_evidence" version \Q$version\E is not installed/,
			$offset);
		pass("$name: the launcher says that it waits for its version");
		$node->resume;
		$node->wait_state($id, 'READY');
		pass("$name: an export that runs already is finished");

		$id = $node->request;
		my ($seconds, $error) = timed(
			"SET lock_timeout = '10s'; ALTER EXTENSION pg_evidence UPDATE TO '$version'");

		is($error, '', "$name: is not held up by the launcher");
		$node->wait_state($id, 'READY');
		pass("$name: with the right version again the queue goes on");
		is($node->ledger_faults, '', "$name: one archive each and nothing else");
		unlink @scripts;
	}
}

# DROP DATABASE.
{
	my $name = 'DROP DATABASE WITH (FORCE)';
	my $offset = $node->pause_before('half-read');
	my $id;

	$node->fill(5000, 5);
	$id = $node->request;
	$node->wait_paused('half-read', $offset);
	sql('CREATE DATABASE keeper TEMPLATE template1');
	my ($seconds, $error) =
	  timed('DROP DATABASE postgres WITH (FORCE)', 'keeper');

	is($error, '', "$name: succeeds beside launcher and exporter");
	cmp_ok($seconds, '<', 5, "$name: soon ($seconds s)");

	$offset = -s $node->logfile;
	is($node->psql('keeper', 'CREATE DATABASE postgres'),
		0, "$name: the database can be created again");
	$node->wait_for_log(qr/pg_evidence launcher started for database "postgres"/,
		$offset);
	pass("$name: and the launcher comes back by itself");
	$node->resume;
	$node->create_extension;
	$node->fill(100, 5);
	$id = $node->request;
	$node->wait_state($id, 'READY');
	pass("$name: and serves it");
}

$node->stop;
done_testing();
