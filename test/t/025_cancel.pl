# Cancelling an export in every state, how fast the worker stops, and who
# wins when cancellation and completion meet.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 500_000;
my $node =
  EvidenceNode->new('main', max_records => 10_000_000,
	max_active_per_requester => 100);

$node->start;
$node->create_extension;
$node->fill(2000, 10);

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub cancel
{
	my ($id) = @_;

	return sql("SELECT evidence.cancel_audit_export('$id', 'test')");
}

# The job and everything around it is at its end, and the times make sense.
sub stopped_well
{
	my ($id, $name) = @_;

	$node->poll("SELECT stopped_at IS NOT NULL FROM evidence.audit_export"
		  . " WHERE id = '$id'");
	is( sql(<<"SQL"),
SELECT e.state, j.state, e.stopped_at >= e.cancelled_at,
       (SELECT count(*) FROM evidence.attempt AS a
         WHERE a.export_id = e.id AND a.ended_at IS NULL),
       (SELECT string_agg(v.event, ' ' ORDER BY v.id) FROM evidence.export_event AS v
         WHERE v.export_id = e.id AND v.event IN ('cancelled', 'stopped')),
       (SELECT count(*) FROM evidence.audit_log
         WHERE action = 'audit_export.cancel' AND target_id = e.id::text)
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL
		'CANCELLED|CANCELLED|t|0|cancelled'
		  . ($name =~ /QUEUED/ ? '' : ' stopped') . '|1',
		"$name: CANCELLED, accepted and stopped at two times");
	return;
}

# Waiting in the queue.
{
	$node->set(max_exporters => 0);
	my $id = $node->request;

	is(cancel($id), 'CANCELLED', 'QUEUED: accepted');
	stopped_well($id, 'QUEUED');
	is( sql(<<"SQL"),
SELECT o.state, cancelled_at = stopped_at
  FROM evidence.audit_export AS e JOIN evidence.outbox_event AS o ON o.export_id = e.id
 WHERE e.id = '$id' AND o.state IN ('CLOSED', 'DELIVERED')
SQL
		sql("SELECT state, true FROM evidence.outbox_event WHERE export_id = '$id'"),
		'QUEUED: stopped at once, its event settled');
	is(cancel($id), 'CANCELLED', 'cancelling again changes nothing');
	is( sql(
			"SELECT count(*) FROM evidence.export_event"
			  . " WHERE export_id = '$id' AND event = 'cancelled'"),
		'1',
		'cancelling again leaves no second event');
	$node->set(max_exporters => 1);
}

# At each step of a worker.
foreach my $step (
	qw(claimed reading half-read read assembled stored))
{
	my $offset = $node->pause_before($step);
	my $id = $node->request(filters => '{"actor_id": ["user-1"]}');

	$node->wait_paused($step, $offset);
	is(cancel($id), 'CANCELLED', "before \"$step\": accepted");
	$node->resume;
	stopped_well($id, "before \"$step\"");
	is($node->ledger_faults, '', "before \"$step\": nothing is left");
	$node->wait_for_log(qr/export $id stopped: the export was cancelled/,
		$offset);
}

# Between completion and its commit the worker wins.
{
	my $offset = $node->pause_before('completed');
	my $id = $node->request(filters => '{"actor_id": ["user-1"]}');

	$node->wait_paused('completed', $offset);
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(
		qr/started/,
		"\\set VERBOSITY verbose\n\\echo started\n"
		  . "SELECT evidence.cancel_audit_export('$id', 'late');\n");
	$node->poll("SELECT count(*) = 1 FROM pg_stat_activity"
		  . " WHERE wait_event_type = 'Lock' AND query ~ 'cancel_audit_export'");
	$node->resume;
	$node->wait_state($id, 'READY');
	$session->query('SELECT 1');
	like($session->{stderr}, qr/55000/,
		'completed first: the cancellation gets 55000');
	$session->quit;
	is($node->ledger_faults, '', 'completed first: the archive stays');

	my ($code, $text) = $node->error_of(
		"SELECT evidence.cancel_audit_export('$id', 'test')");
	is($code, '55000', 'READY: cannot be cancelled');
	like($text, qr/HINT:.*revoke_audit_export/, 'READY: hint to revoke');
}

# Somebody cancels in a transaction and leaves it open, and the worker dies.
{
	my $name = 'cancelled in an open transaction';

	# The export's own place stays taken.
	$node->set(max_exporters => 2);
	my $offset = $node->pause_before('half-read');
	my $id = $node->request(filters => '{"actor_id": ["user-1"]}');
	my $pid = $node->wait_paused('half-read', $offset);
	my $session = $node->background_psql('postgres');

	$session->query_safe(
		"BEGIN; SELECT evidence.cancel_audit_export('$id', 'open')");
	kill 'TERM', $pid;
	$node->resume;
	my $other = $node->request(filters => '{"actor_id": ["user-2"]}');

	$node->wait_state($other, 'READY');
	pass("$name: other exports are made meanwhile");
	$session->query_safe('ROLLBACK');
	$session->quit;
	$node->wait_state($id, 'READY');
	is( sql("SELECT attempts, deferrals FROM evidence.background_job"
			  . " WHERE export_id = '$id'"),
		'1|1',
		"$name: rolled back, the export goes on");
	is($node->ledger_faults, '', "$name: one archive and nothing else");
	$node->set(max_exporters => 1);
}

# How long it takes from the cancellation to the worker's stop, at different
# places of a range of which almost nothing matches.
{
	my @latencies;

	$node->fill($rows, 10);
	sql('VACUUM ANALYZE evidence.audit_log');
	foreach my $try (1 .. 16)
	{
		# From one session, since an export is faster than a new session.
		my ($code, $text) = $node->error_of(<<"SQL");
SELECT evidence.request_audit_export(now() - interval '30 days', now(), 'latency $try',
       filters => '{"target_id": ["7", "77777"]}') AS id \\gset
SELECT pg_sleep(0.1 + 0.04 * $try);
SELECT evidence.cancel_audit_export(:'id', 'test');
SQL
		next if $code eq '55000';    # it had finished
		$node->poll("SELECT stopped_at IS NOT NULL FROM evidence.audit_export"
			  . " WHERE purpose = 'latency $try'");
		push @latencies, sql(<<"SQL");
SELECT round(1000 * extract(epoch FROM e.stopped_at - e.cancelled_at))
  FROM evidence.audit_export AS e
  JOIN evidence.export_event AS v ON v.export_id = e.id
 WHERE e.purpose = 'latency $try' AND v.event = 'cancelled' AND v.from_state = 'PROCESSING'
SQL
	}
	my @sorted = sort { $a <=> $b } grep { $_ ne '' } @latencies;

	note "cancel to stop in ms: @sorted";
	cmp_ok(scalar @sorted, '>=', 3, 'workers were cancelled while they read');
	cmp_ok($sorted[ $#sorted / 2 ], '<=', 100,
		"half of them had stopped within 100 ms ($sorted[$#sorted / 2] ms)");
	cmp_ok($sorted[-1], '<=', 2000,
		"all had stopped soon ($sorted[-1] ms), on a machine that does other things"
	);
}

# The race, many times.  Each export ends in one state, told to everybody.
{
	my %ended;
	my $wrong = 0;

	foreach my $try (1 .. 30)
	{
		# A different moment each time: from before the claim to after the
		# end.
		my ($code, $text) = $node->error_of(<<"SQL");
SELECT evidence.request_audit_export(now() - interval '1 day', now(), 'race $try') AS id \\gset
SELECT pg_sleep(0.015 * $try);
SELECT evidence.cancel_audit_export(:'id', 'race');
SQL
		my $id = sql(
			"SELECT id FROM evidence.audit_export WHERE purpose = 'race $try'");

		$node->poll(<<"SQL");
SELECT CASE state WHEN 'CANCELLED' THEN stopped_at IS NOT NULL ELSE state = 'READY' END
  FROM evidence.audit_export WHERE id = '$id'
SQL
		my $state = $node->export_state($id);

		$ended{$state}++;
		$wrong++ if ($code eq '') != ($state eq 'CANCELLED');
		$wrong++ if $code ne '' && $code ne '55000';
	}
	note join ', ', map { "$ended{$_} $_" } sort keys %ended;
	cmp_ok($ended{CANCELLED}, '>', 0, 'race: some are cancelled');
	is($wrong, 0, 'race: the answer is the state, every time');
	is($node->ledger_faults, '', 'race: one final state each, nothing is left');
}

$node->stop;
done_testing();
