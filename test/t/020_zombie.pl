# Workers that stand still, wake up too late, die every time, or live longer
# than their lease.
#
# A lease is long, so that no worker loses it because the machine is busy.  It
# is over when the test moves the clock.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', lease => 60);
my $clock = 0;

$node->start;
$node->create_extension;
$node->fill(2000, 10);

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub attempts_of
{
	my ($id) = @_;

	return sql(
		"SELECT attempts FROM evidence.background_job WHERE export_id = '$id'");
}

# An exporter that waits for work does so no longer when the configuration is
# read anew.
sub wait_gone
{
	my ($pid) = @_;

	$node->reload;
	$node->poll(
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	return;
}

sub move_clock
{
	my ($seconds, %settings) = @_;

	$clock += $seconds;
	$node->set(clock_offset => $clock, %settings);
	return;
}

# One exporter may run, and it stands still: another one takes its place once
# the lease is over.
foreach my $step (qw(claimed half-read assembled stored))
{
	my $name = "C43: exporter stands still before \"$step\"";
	my $offset = $node->pause_before($step);
	my $id = $node->request;
	my $zombie = $node->wait_paused($step, $offset);

	kill 'STOP', $zombie;
	$node->resume;
	$node->wait_given_up($offset);
	move_clock(120);
	$node->wait_state($id, 'READY');
	is(attempts_of($id), '2', "$name: another worker made the archive");

	my $before = $node->ledger_of($id);
	kill 'CONT', $zombie;
	wait_gone($zombie);
	is($node->ledger_of($id), $before, "$name: waking up it changes nothing");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# Having done all but the commit, it holds the row of its attempt.
{
	my $name = 'C43: exporter stands still before its last commit';
	my $offset = $node->pause_before('completed');
	my $id = $node->request;
	my $zombie = $node->wait_paused('completed', $offset);

	kill 'STOP', $zombie;
	$node->resume;
	$node->wait_given_up($offset);
	kill 'CONT', $zombie;
	$node->wait_state($id, 'READY');
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# With the launcher stopped as well nobody ends the zombie, so it wakes up and
# goes on to write.  Its token refuses it.
foreach my $case (
	[ 'claimed', '' ], [ 'half-read', '' ], [ 'half-read', 'INT' ],
	[ 'assembled', '' ], [ 'stored', '' ])
{
	my ($step, $signal) = @$case;
	my $what = $signal ? 'fail' : 'finish';
	my $name = "C43: zombie from before \"$step\" tries to $what";
	my $offset = $node->pause_before($step);
	my $id = $node->request;
	my $zombie = $node->wait_paused($step, $offset);
	my $launcher = $node->stop_launcher;

	kill 'STOP', $zombie;
	$node->resume;
	move_clock(120);
	sql('CALL evidence.run_once()');
	is($node->export_state($id), 'READY',
		"$name: run_once() made the archive meanwhile");

	my $before = $node->ledger_of($id);
	kill $signal, $zombie if $signal;
	kill 'CONT', $zombie;
	$node->wait_for_log(qr/attempt 1 of export $id stopped: it lost its lease/,
		$offset);
	kill 'CONT', $launcher;
	wait_gone($zombie);
	is($node->ledger_of($id), $before, "$name: nothing changed");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# The same while the other worker is still at work, so that the states alone
# would let the zombie pass.
foreach my $case ([ 'assembled', '' ], [ 'half-read', 'INT' ])
{
	my ($step, $signal) = @$case;
	my $what = $signal ? 'fail' : 'finish';
	my $name = "C43: zombie tries to $what what another works on";
	my $offset = $node->pause_before($step);
	my $id = $node->request;
	my $zombie = $node->wait_paused($step, $offset);
	my $launcher = $node->stop_launcher;

	kill 'STOP', $zombie;
	$offset = $node->pause_before('half-read');
	move_clock(120);
	my $session = $node->background_psql('postgres');

	$session->query_until(qr//, "CALL evidence.run_once();\n");
	$node->wait_paused('half-read', $offset);

	my $before = $node->ledger_of($id);
	kill $signal, $zombie if $signal;
	kill 'CONT', $zombie;
	$node->wait_for_log(qr/attempt 1 of export $id stopped: it lost its lease/,
		$offset);
	wait_gone($zombie);
	is($node->ledger_of($id), $before, "$name: nothing changed");
	kill 'CONT', $launcher;
	$node->resume;
	$node->wait_state($id, 'READY');
	$session->quit;
	is(attempts_of($id), '2', "$name: the other one finished it");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# A worker that dies of its job every time.
{
	my $name = 'C42: poison job';

	my $offset = $node->pause_before('reading');
	my $id = $node->request;

	foreach my $attempt (1 .. 3)
	{
		my $pid = $node->wait_paused('reading', $offset);

		is(attempts_of($id), $attempt,
			"$name: attempt $attempt is counted when it begins");
		$node->set(max_exporters => 0) if $attempt == 2;
		$offset = -s $node->logfile;
		$node->signal('KILL', $pid, keep_pause => $attempt < 3);
		next if $attempt != 2;
		# Instead of waiting for the end of the pause between attempts.
		$node->wait_state($id, 'QUEUED');
		move_clock(600, max_exporters => 1);
	}
	$node->wait_state($id, 'FAILED');
	is( sql(<<"SQL"),
SELECT e.error_code, e.error_message, e.error_hint <> '', e.failed_at IS NOT NULL,
       j.state, j.attempts
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL
		'PE004|the worker ended without a result|t|t|FAILED|3',
		"$name: FAILED with its reason after max_attempts");
	is($node->ledger_faults, '', "$name: nothing else is left");

	my $next = $node->request;

	$node->wait_state($next, 'READY');
	is(attempts_of($id), '3', "$name: the queue goes on without it");
}

# Nobody renews the lease of run_once(), so both must be over: the lease and
# the session.
{
	my $name = 'run_once() in a session that dies';

	$node->set(max_exporters => 0);
	my $offset = $node->pause_before('half-read');
	my $id = $node->request;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr//, "CALL evidence.run_once();\n");
	my $pid = $node->wait_paused('half-read', $offset);

	move_clock(120);
	sql('CALL evidence.run_once()');
	is($node->export_state($id),
		'PROCESSING', "$name: it keeps its attempt beyond the lease");

	sql("SELECT pg_terminate_backend($pid, 10000)");
	eval { $session->quit };
	$node->wait_state($id, 'QUEUED');
	is(attempts_of($id), '1', "$name: then the attempt is over and counted");

	$session = $node->background_psql('postgres', on_error_stop => 0);
	$offset = -s $node->logfile;
	$session->query_until(qr//, "CALL evidence.run_once();\n");
	$pid = $node->wait_paused('half-read', $offset);
	sql("SELECT pg_terminate_backend($pid, 10000)");
	eval { $session->quit };
	sql('CALL evidence.run_once()');
	is($node->export_state($id),
		'PROCESSING', "$name: a dead session has its lease to the end");
	move_clock(120);
	$node->wait_state($id, 'QUEUED');
	# Instead of waiting for the end of the pause between attempts.
	move_clock(600, debug_pause => '', max_exporters => 1);
	$node->wait_state($id, 'READY');
	is(attempts_of($id), '3', "$name: then another worker goes on");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
}

# An export that takes many leases; the rules only make it slow.
{
	my $name = 'export longer than its lease';
	my $id;

	$node->set(lease => 4, max_records => 1_000_000);
	sql("SELECT evidence.add_redaction_rule('slow' || n, '(?i)(never[a-z ]*){3}there' || n, 'test')"
		  . " FROM generate_series(1, 40) AS n");
	$node->fill(450_000, 5);
	$id = $node->request;
	$node->wait_state($id, 'READY');
	my $seconds = sql(
		"SELECT extract(epoch FROM ready_at - started_at)::numeric(9, 1)"
		  . " FROM evidence.audit_export AS e"
		  . " JOIN evidence.background_job AS j ON j.export_id = e.id"
		  . " WHERE e.id = '$id'");

	cmp_ok($seconds, '>', 4, "$name: it took $seconds s with a lease of 4 s");
	is( sql(<<"SQL"),
SELECT count(*), min(outcome) FROM evidence.attempt WHERE export_id = '$id'
SQL
		'1|succeeded',
		"$name: renewed as long as it showed signs of life");
}

$node->stop;
done_testing();
