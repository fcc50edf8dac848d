# An exporter dies before each of its steps: claiming, reading, storing, and
# recording that it failed or stopped.  Up to the commit of the claim no attempt
# exists; after it, an orderly stop gives the attempt back and a crash counts
# it.

use strict;
use warnings;

use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;

my $matrix = KillMatrix->new(worker_role => 'worker');
my $node = $matrix->node;

# Its commits wait for a standby when its role says so.
$matrix->sql('CREATE ROLE worker LOGIN');

sub has_temporary_file
{
	my @files = glob $node->data_dir . '/base/pgsql_tmp/*';

	return scalar @files > 0;
}

# The record of the claim's commit, or the second one, of the result's.
sub bring_to_commit_record
{
	my ($commit) = @_;

	$matrix->sql('ALTER ROLE worker SET synchronous_commit = on');
	# An exporter that connected before knows nothing of it.
	$matrix->set;
	my $id = $matrix->request;
	my $pid = $matrix->wait_commit_record('pg_evidence exporter');

	if ($commit == 2)
	{
		$matrix->sql("SELECT pg_cancel_backend($pid)");
		$matrix->wait_until("SELECT state = 'PROCESSING'"
			  . " FROM evidence.audit_export WHERE id = '$id'");
		$pid = $matrix->wait_commit_record('pg_evidence exporter');
	}
	$matrix->sql('ALTER ROLE worker RESET synchronous_commit');
	return ($pid, $id);
}

# What is counted when the attempt was open.
sub counted
{
	my ($case) = @_;

	return $case->{signal} eq 'TERM' ? (1, 1) : (2, 0);
}

$matrix->check_pause_points;

# The first export ever also makes the row that the next ones lock.
$matrix->is_made({ name => 'the first export' }, $matrix->request, 1, 0);
$matrix->check_steps(
	'exporter',
	[qw(claim read store)],
	sub { $matrix->is_made({ name => 'nobody dies' }, $matrix->request, 1, 0) });

foreach my $case (map { $matrix->cases($_) } qw(claim read store))
{
	my ($step, $phase) = @$case{qw(step phase)};
	my ($pid, $id) =
	  $step eq '(commit record)'
	  ? bring_to_commit_record($phase eq 'claim' ? 1 : 2)
	  : $matrix->bring_to($case, sub { return $matrix->request });

	ok(has_temporary_file(), "$case->{name}: it has a temporary file")
	  if $phase ne 'claim' && $step ne 'ready';
	$matrix->kill_held($case, $pid);

	my $open =
		$phase eq 'claim' ? $matrix->is_after($case, 'claiming')
	  : $phase eq 'store' ? !$matrix->is_after($case, 'completed')
	  : 1;
	$matrix->is_made($case, $id, $open ? counted($case) : (1, 0));
}

# Too many records: a failure that no retry can mend.
$matrix->set(max_records => 499);
$matrix->check_steps(
	'exporter',
	[ 'claim', 'prepared', 'reading', 'fail' ],
	sub {
		$matrix->is_in_state({ name => 'nobody dies' },
			$matrix->request, 'FAILED', 1, 0, 'PE002');
	});
foreach my $case ($matrix->cases('fail'))
{
	my ($pid, $id) =
	  $matrix->bring_to($case, sub { return $matrix->request });

	$matrix->kill_held($case, $pid);
	$matrix->is_in_state($case, $id, 'FAILED',
		$case->{step} eq 'failed' ? (1, 0) : counted($case), 'PE002');
}
$matrix->set(max_records => 50_000);

# Stopping because the export was cancelled.  Whoever holds the exporter at a
# pause point cannot use another one for the step, and the other way round.
sub cancel_running
{
	my ($case) = @_;
	my $by_row = $case->{step} !~ /^[A-Z]+ /;
	my $start = $by_row ? 'INSERT archive_chunk 0' : 'half-read';
	my $place = $matrix->hold('exporter', $start);
	my $id = $matrix->request;

	$matrix->wait_held($start, $place);
	$place = $matrix->hold('exporter', $case->{step});
	$matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')");
	return ($matrix->wait_held($case->{step}, $place), $id);
}

$matrix->check_steps(
	'exporter',
	[ 'claim', 'read', 'INSERT archive_chunk 0', 'stop' ],
	sub {
		my $place = $matrix->hold('exporter', 'INSERT archive_chunk 0');
		my $id = $matrix->request;

		$matrix->wait_held('INSERT archive_chunk 0', $place);
		$matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')");
		$matrix->is_in_state({ name => 'nobody dies' }, $id, 'CANCELLED', 1, 0);
	});
$matrix->release;
foreach my $case ($matrix->cases('stop'))
{
	my ($pid, $id) = cancel_running($case);

	$matrix->kill_held($case, $pid);
	$matrix->is_in_state($case, $id, 'CANCELLED', 1, 0);
}

# After the last crash, too, the role is the one that the setting names.
{
	my ($exporter, $id) = $matrix->hold_exporter('(none)');

	is( $matrix->sql("SELECT usename FROM pg_stat_activity WHERE pid = $exporter"),
		'worker',
		'an exporter connects as the worker role');
	$matrix->release;
	$matrix->is_made({ name => 'nobody dies' }, $id, 1, 0);
}

$matrix->finish;
done_testing();
