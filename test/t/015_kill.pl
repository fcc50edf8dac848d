# Whatever process dies at whatever moment: a committed request is carried out
# exactly once, and nothing of the attempts that died is left.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', lease => 30);
my $file = PostgreSQL::Test::Utils::tempdir() . '/evidence.zip';

$node->start;
$node->create_extension;
$node->fill(2000, 10);

# A range in the past, so that every export of this test holds the same rows
# and must have the same records.csv.
my ($start, $end) = split /\|/, $node->safe_psql('postgres', <<'SQL');
SELECT date_trunc('hour', now()) - interval '20 days',
       date_trunc('hour', now()) - interval '1 day'
SQL
my $expected = $node->safe_psql('postgres',
	"SELECT count(*) FROM evidence.audit_log WHERE created_at < '$end'");
my $digest;

sub request
{
	return $node->request(start_at => $start, end_at => $end, @_);
}

# The whole promise about one export.
sub carried_out_once
{
	my ($id, $name, $attempts, $deferrals) = @_;
	my ($sha256, $records, @counters) =
	  split /\|/, $node->safe_psql('postgres', <<"SQL");
SELECT e.records_sha256, e.record_count, j.attempts, j.deferrals
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL

	$digest //= $sha256;
	is($node->ledger_faults, '', "$name: one archive and nothing else");
	is_deeply(\@counters, [ $attempts, $deferrals ],
		"$name: $attempts attempts counted, $deferrals given back");
	is("$records $sha256", "$expected $digest", "$name: the same records");
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM evidence.verify_audit_export('$id') WHERE NOT ok"
		),
		'0',
		"$name: verified against the live rows");
	$node->export_to_file($id, $file);
	is(($node->program('verify', $file))[0],
		0, "$name: the downloaded package is intact");
	return;
}

sub in_recovery_log
{
	my ($offset) = @_;
	my $log = slurp_file($node->logfile, $offset);
	my @lines = $log =~ /recovered (\d+) attempts/g;

	return join ' ', @lines;
}

# An exporter is killed before each step.  Up to the commit of the claim no
# attempt exists; after it, an orderly stop gives the attempt back and a
# crash counts it.
my %before_claim = (claim => 1, claiming => 1);
foreach my $step (
	qw(claim claiming claimed reading half-read read assembled stored completed)
  )
{
	foreach my $signal (qw(TERM KILL))
	{
		my $name = "exporter, SIG$signal before \"$step\"";
		my $offset = $node->pause_before($step);
		my $id = request();
		my $pid = $node->wait_paused($step, $offset);

		$node->signal($signal, $pid);
		$node->resume;
		$node->wait_state($id, 'READY');
		if ($before_claim{$step})
		{
			carried_out_once($id, $name, 1, 0);
		}
		elsif ($signal eq 'TERM')
		{
			carried_out_once($id, $name, 1, 1);
			is(in_recovery_log($offset), '1', "$name: put back once, in the log");
		}
		else
		{
			carried_out_once($id, $name, 2, 0);
			is(in_recovery_log($offset), '1', "$name: put back once, in the log");
		}
	}
}

foreach my $step (qw(launcher-round launcher-delivered))
{
	foreach my $signal (qw(TERM KILL))
	{
		my $name = "launcher, SIG$signal before \"$step\"";
		my $offset = $node->pause_before($step);
		my $id = request();
		my $pid = $node->wait_paused($step, $offset);

		is($pid, $node->worker_pid('launcher'), "$name: it is the launcher");
		$node->signal($signal, $pid);
		$node->resume;
		$node->wait_state($id, 'READY');
		carried_out_once($id, $name, 1, 0);
	}
}

# A launcher that starts anew must not take a worker that it does not know
# for dead.
{
	my $name = 'launcher, SIGTERM while an exporter works';

	# In new shared memory no heart has beaten yet.
	$node->restart;
	my $offset = $node->pause_before('claimed');
	my $id = request();
	my $exporter = $node->wait_paused('claimed', $offset);
	my $launcher = $node->worker_pid('launcher');
	my $seen = -s $node->logfile;

	$node->signal('TERM', $launcher);
	$node->wait_for_log(qr/pg_evidence launcher serves/, $seen);
	# Two rounds later it has looked at all its workers.
	my $second = $node->request(
		start_at => $start,
		end_at => $end,
		purpose => 'second');
	$node->poll("SELECT state = 'DELIVERED' FROM evidence.outbox_event"
		  . " WHERE export_id = '$second'");
	$node->resume;
	$node->wait_state($id, 'READY');
	$node->wait_state($second, 'READY');
	carried_out_once($id, $name, 1, 0);
	unlike(
		slurp_file($node->logfile, $seen),
		qr/stands still|lost its lease/,
		"$name: the exporter was left alone");
}

# The requesting session.
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');
	my $before = $node->safe_psql('postgres',
		'SELECT count(*) FROM evidence.audit_export');

	$session->query("BEGIN; SELECT evidence.request_audit_export('$start', '$end', 'lost')");
	$node->signal('KILL', $pid);
	eval { $session->quit };
	is( $node->safe_psql('postgres', <<'SQL'),
SELECT (SELECT count(*) FROM evidence.audit_export),
       (SELECT count(*) FROM evidence.audit_log WHERE summary = 'lost')
SQL
		"$before|0",
		'session killed before its commit: no export and no audit row');

	my $offset = $node->pause_before('launcher-round');
	$node->wait_paused('launcher-round', $offset);
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$pid = $session->query('SELECT pg_backend_pid()');
	my $id = $session->query(
		"SELECT evidence.request_audit_export('$start', '$end', 'kept')");
	$node->signal('KILL', $pid);
	eval { $session->quit };
	$node->wait_state($id, 'READY');
	carried_out_once($id, 'session killed after its commit', 1, 0);
}

# The whole server.
foreach my $mode (qw(immediate fast))
{
	my $name = "server stopped in mode $mode";
	my $offset = $node->pause_before('half-read');
	my $id = request();

	$node->wait_paused('half-read', $offset);
	$node->stop($mode);
	$node->write_settings(debug_pause => '');
	$node->start;
	$node->wait_state($id, 'READY');
	carried_out_once($id, $name,
		$mode eq 'fast' ? (1, 1) : (2, 0));
	is(in_recovery_log($offset), '1', "$name: put back once, in the log");
}

$node->stop;
done_testing();
