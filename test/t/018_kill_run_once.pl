# On a server that does not preload the library a session makes the package,
# and dies before each of its steps.  Nobody notices its death; once its lease
# has run out the next run_once() goes on.

use strict;
use warnings;

use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;

my $matrix = KillMatrix->new(preload => 0);
my $clock = 0;

sub run_once
{
	$matrix->sql('CALL evidence.run_once()');
	return;
}

sub start_run_once
{
	return $matrix->start(
		'SET synchronous_commit = local; CALL evidence.run_once()');
}

sub let_leases_end
{
	$clock += 120;
	$matrix->set(clock_offset => $clock);
	return;
}

# The records of three commits, of delivery, claim and result, come one after
# the other.
sub bring_to_commit_record
{
	my ($phase, $id) = @_;
	my $session =
	  $matrix->start('SET synchronous_commit = on; CALL evidence.run_once()');
	my @visible = ("SELECT state = 'DELIVERED' FROM evidence.outbox_event"
		  . " WHERE export_id = '$id'");

	push @visible,
	  "SELECT state = 'PROCESSING' FROM evidence.audit_export WHERE id = '$id'"
	  if $phase =~ /store/;
	foreach my $change (@visible)
	{
		my $pid = $matrix->wait_commit_record('client backend');

		$matrix->sql("SELECT pg_cancel_backend($pid)");
		$matrix->wait_until($change);
	}
	return ($matrix->wait_commit_record('client backend'), $session);
}

# An attempt whose session is dead and whose lease is over.
sub leave_attempt
{
	my $place = $matrix->hold('backend', 'half-read');
	my $id = $matrix->request;
	my $session = start_run_once();
	my $pid = $matrix->wait_held('half-read', $place);

	$matrix->kill_held({ signal => 'TERM', step => 'half-read' }, $pid);
	$matrix->end_session($session);
	let_leases_end();
	return $id;
}

# The first export ever also makes the row that the next ones lock.
{
	my $id = $matrix->request;

	run_once();
	$matrix->is_made({ name => 'the first export' }, $id, 1, 0);
	$id = $matrix->request;
	$matrix->check_steps('backend',
		[ map { "run_once, $_" } qw(deliver claim read store) ],
		\&run_once);
	$matrix->is_made({ name => 'nobody dies' }, $id, 1, 0);
}

foreach
  my $case (map { $matrix->cases("run_once, $_") } qw(deliver claim read store))
{
	my ($step, $phase) = @$case{qw(step phase)};
	my $id = $matrix->request;
	my ($pid, $session) =
	  $step eq '(commit record)'
	  ? bring_to_commit_record($phase, $id)
	  : $matrix->bring_to($case, \&start_run_once);

	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);

	my $open =
		$phase =~ /claim/ ? $matrix->is_after($case, 'claiming')
	  : $phase =~ /store/ ? !$matrix->is_after($case, 'completed')
	  : $phase =~ /read/;
	if ($open)
	{
		run_once();
		is( $matrix->sql(
				"SELECT state FROM evidence.audit_export WHERE id = '$id'"),
			'PROCESSING',
			"$case->{name}: its lease protects it to the end");
		let_leases_end();
	}
	run_once();
	$matrix->is_made($case, $id, $open ? 2 : 1, 0);
}

{
	my $id = leave_attempt();

	$matrix->check_steps('backend',
		[ map { "run_once, $_" } qw(recover claim read store) ],
		\&run_once);
	$matrix->is_made({ name => 'nobody dies' }, $id, 2, 0);
}
foreach my $case ($matrix->cases('run_once, recover'))
{
	my $id = leave_attempt();
	my ($pid, $session) = $matrix->bring_to($case, \&start_run_once);

	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);
	run_once();
	$matrix->is_made($case, $id, 2, 0);
}

# Nobody can tell the session that an export is cancelled; it asks for itself.
{
	my $place = $matrix->hold('backend', 'reading');
	my $id = $matrix->request;
	my $session = start_run_once();

	$matrix->wait_held('reading', $place);
	$matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')");
	# It would stand still there, had it read on.
	$matrix->hold('backend', 'read');
	$matrix->is_in_state({ name => 'a session whose export is cancelled' },
		$id, 'CANCELLED', 1, 0);
	$matrix->release;
	$matrix->end_session($session);
}

$matrix->finish;
done_testing();
