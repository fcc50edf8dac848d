# A worker that was taken for dead and lives on tries each of the writes that a
# worker can make, while another one works on the same export, so that neither
# the states nor the names could tell them apart.  Its token does (case C43).

use strict;
use warnings;

use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;

my $matrix = KillMatrix->new(lease => 60);
my $node = $matrix->node;
my $clock = 0;
my $chunk = 'INSERT archive_chunk 0';

# The exporter stands still, and so does the launcher, which could end it.
# Once the lease is over, which moving the clock brings about, a session takes the
# export over and comes to the same place.
sub take_over
{
	my ($step) = @_;
	my %all = (step => $step, log => -s $node->logfile);
	my $place = $matrix->hold('exporter', $step);

	$all{id} = $matrix->request;
	$all{zombie} = $matrix->wait_held($step, $place);
	$all{launcher} = $node->stop_launcher($matrix->query);
	if ($step ne $chunk)
	{
		kill 'STOP', $all{zombie};
		$matrix->release;
	}
	$clock += 120;
	$matrix->set(clock_offset => $clock);
	$place = $matrix->hold('backend', $chunk);
	$all{session} = $matrix->start('CALL evidence.run_once()');
	$matrix->wait_held($chunk, $place);
	$all{ledger} = $node->ledger_of($all{id}, $matrix->query);
	return \%all;
}

sub let_zombie_go
{
	my ($all) = @_;

	$matrix->sql("DELETE FROM kill.gate WHERE process = 'exporter'");
	kill 'CONT', $all->{zombie};
	return;
}

# Nothing has changed; the other worker comes to its end as if it were alone.
sub changed_nothing
{
	my ($all, $name) = @_;

	is($node->ledger_of($all->{id}, $matrix->query),
		$all->{ledger}, "$name: nothing has changed");
	$matrix->release;
	kill 'CONT', $all->{launcher};
	$matrix->is_made({ name => "$name: the other worker" },
		$all->{id}, 2, 0);
	$matrix->end_session($all->{session});
	return;
}

{
	my $name = 'finish';
	my $all = take_over($chunk);

	let_zombie_go($all);
	$node->wait_for_log(
		qr/attempt 1 of export $all->{id} stopped: it lost its lease/,
		$all->{log});
	changed_nothing($all, $name);
}

{
	my $name = 'fail';
	my $all = take_over($chunk);

	$matrix->sql("SELECT pg_cancel_backend($all->{zombie})");
	$node->wait_for_log(
		qr/attempt 1 of export $all->{id} had lost its lease when it failed/,
		$all->{log});
	changed_nothing($all, $name);
}

{
	my $name = 'give back, making way for a session';
	my $all = take_over('half-read');
	my $owner = $matrix->start(
		'BEGIN; LOCK TABLE evidence.audit_log IN ACCESS EXCLUSIVE MODE');

	$matrix->wait_until('SELECT count(*) = 1 FROM pg_locks'
		  . " WHERE relation = 'evidence.audit_log'::regclass AND NOT granted");
	let_zombie_go($all);
	$node->wait_for_log(
		qr/attempt 1 of export $all->{id} had lost its lease when it failed: export makes way/,
		$all->{log});
	$owner->query_safe('ROLLBACK');
	$owner->quit;
	changed_nothing($all, $name);
}

{
	my $name = 'give back, being ended';
	my $all = take_over($chunk);

	kill 'TERM', $all->{zombie};
	$matrix->wait_gone($all->{zombie});
	kill 'CONT', $all->{launcher};
	# Before it delivers, the launcher puts back what dead workers left.
	my $next = $matrix->request;

	$matrix->wait_until("SELECT state = 'DELIVERED' FROM evidence.outbox_event"
		  . " WHERE export_id = '$next'");
	changed_nothing($all, $name);
	$matrix->is_made({ name => "$name: the next export" }, $next, 1, 0);
}

{
	my $name = 'renew';
	my $all = take_over($chunk);

	# A beat of its heart, and the launcher thinks that it is well.
	my $place = $matrix->hold('exporter', 'INSERT archive_chunk 1');

	$matrix->sql("DELETE FROM kill.gate WHERE (process, step) = ('exporter', '$chunk')");
	$matrix->wait_held('INSERT archive_chunk 1', $place);
	# With a short lease it is time for that.
	$matrix->set(lease => 1);
	$place = $matrix->hold('launcher', 'renewed');
	kill 'CONT', $all->{launcher};
	$matrix->wait_held('renewed', $place);
	$matrix->set(lease => 60);
	changed_nothing($all, $name);
}

{
	my $name = 'progress';
	my $all = take_over($chunk);

	is( $matrix->sql(
			"SELECT state, rows_done IS NULL FROM evidence.audit_export_status WHERE id = '$all->{id}'"
		),
		'PROCESSING|t',
		"$name: is not shown as the other's");
	changed_nothing($all, $name);
}

# Told that the export is cancelled it stops, but it cannot say so for the other
# worker.
{
	my $name = 'stopped';
	my $all = take_over($chunk);

	$matrix->sql("SELECT evidence.cancel_audit_export('$all->{id}', 'test')");
	$node->wait_for_log(
		qr/attempt 1 of export $all->{id} stopped: the export was cancelled/,
		$all->{log});
	is( $matrix->sql(
			"SELECT state, stopped_at IS NULL FROM evidence.audit_export WHERE id = '$all->{id}'"
		),
		'CANCELLED|t',
		"$name: the other worker has not stopped yet");
	$matrix->release;
	kill 'CONT', $all->{launcher};
	$matrix->is_in_state({ name => "$name: the other worker" },
		$all->{id}, 'CANCELLED', 2, 0, 'PE004');
	$matrix->end_session($all->{session});
}

$matrix->finish;
done_testing();
