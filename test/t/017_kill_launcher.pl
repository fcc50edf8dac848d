# The launcher dies before each of its steps: delivering, starting an exporter,
# renewing a lease, putting back what a dead exporter left.

use strict;
use warnings;

use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;

my $matrix = KillMatrix->new;
my $node = $matrix->node;

# An exporter that stops because of a cancellation and stands still just before
# it can say so: by a row where the launcher needs the pause point.
sub hold_stopping
{
	my ($case) = @_;
	my ($exporter, $id) = $matrix->hold_exporter('recovering');
	my $stop = $case->{step} =~ /^[a-z]/ ? 'UPDATE attempt' : 'stopping';
	my $place = $matrix->hold('exporter', $stop);

	$matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')");
	return ($matrix->wait_held($stop, $place), $id);
}

# Lets that exporter die and the launcher come to the case's step.
sub bring_to_recovery
{
	my ($case, $exporter) = @_;
	my $place = $matrix->hold('launcher', $case->{step});

	kill('TERM', $exporter) == 1 or die "could not end $exporter: $!";
	return $matrix->wait_held($case->{step}, $place);
}

# The first export ever also makes the row that the next ones lock.
$matrix->is_made({ name => 'the first export' }, $matrix->request, 1, 0);
$matrix->check_steps('launcher', ['deliver'],
	sub { $matrix->is_made({ name => 'nobody dies' }, $matrix->request, 1, 0) });

# The job exists since the request; the launcher hands out the permission to
# claim it.  The exporter is held before its claim, so that its own death in
# the crash counts nothing.
foreach my $case ($matrix->cases('deliver'))
{
	$matrix->hold('exporter', 'UPDATE audit_export');
	my ($pid, $id) = $matrix->bring_to($case, sub { return $matrix->request });

	$matrix->kill_held($case, $pid);
	$matrix->is_made($case, $id, 1, 0);
}

# An exporter that waits for work gets the next job, and the launcher dies
# before it has seen what becomes of it.  Again it is held before its claim.
foreach my $case ($matrix->cases('hand over'))
{
	my $place = $matrix->hold('launcher', $case->{step});

	$matrix->is_made({ name => "$case->{name}: the job before" },
		$matrix->request, 1, 0);
	$matrix->hold('exporter', 'UPDATE audit_export');
	my $id = $matrix->request;

	$matrix->kill_held($case, $matrix->wait_held($case->{step}, $place));
	$matrix->is_made($case, $id, 1, 0);
}

# A lease is renewed once a third of it has passed.  It is long while the
# exporter claims, so that it does not run out while the launcher is away, and
# then short, so that the launcher thinks it is time.  That does not shorten
# the lease, so a renewal is seen by the new version of its row.
{
	my ($exporter, $id) = $matrix->hold_exporter('renewing');
	my $version = $matrix->sql(
		"SELECT ctid FROM evidence.attempt WHERE export_id = '$id'");

	$matrix->check_steps(
		'launcher',
		[ 'launcher-round', 'launcher-delivered', 'renew' ],
		sub {
			$matrix->set(lease => 6);
			$matrix->wait_until("SELECT ctid <> '$version' AND lease_until >= started_at"
				  . " + interval '60 seconds'"
				  . " FROM evidence.attempt WHERE export_id = '$id'");
		});
	$matrix->set(lease => 60);
	$matrix->release;
	$matrix->is_made({ name => 'nobody dies' }, $id, 1, 0);
}
foreach my $case ($matrix->cases('renew'))
{
	my ($exporter, $id) = $matrix->hold_exporter($case->{step});
	my $place = $matrix->hold('launcher', $case->{step});

	$matrix->set(lease => 6);
	my $pid = $matrix->wait_held($case->{step}, $place);

	$matrix->set(lease => 60);
	$matrix->kill_held($case, $pid);
	$matrix->is_made($case, $id, $case->{signal} eq 'TERM' ? (1, 0) : (2, 0));
}

# An exporter has been ended in an orderly way.  The next launcher knows that
# too, unless a crash has made the server forget it.
{
	my ($exporter, $id) = $matrix->hold_exporter('recovering');

	$matrix->check_steps(
		'launcher',
		[
			'launcher-round', 'recover',
			'launcher-delivered', 'starting', 'started'
		],
		sub {
			kill 'TERM', $exporter;
			$matrix->wait_gone($exporter);
			$matrix->release;
			$matrix->is_made({ name => 'nobody dies' }, $id, 1, 1);
		});
}
foreach my $case ($matrix->cases('recover'))
{
	my ($exporter, $id) = $matrix->hold_exporter($case->{step});
	my $pid = bring_to_recovery($case, $exporter);

	$matrix->kill_held($case, $pid);
	$matrix->is_made($case, $id,
		$case->{signal} eq 'TERM' || $case->{step} eq 'recovered' ? (1, 1) : (2, 0));
}

# The exporter had been told that its export is cancelled, and died before it
# could say that it had stopped.
{
	my ($exporter, $id) = hold_stopping({ step => 'recovering' });

	$matrix->check_steps(
		'launcher',
		[ 'launcher-round', 'recover, cancelled', 'launcher-delivered' ],
		sub {
			kill 'TERM', $exporter;
			$matrix->is_in_state({ name => 'nobody dies' },
				$id, 'CANCELLED', 1, 0);
		});
	$matrix->release;
}
foreach my $case ($matrix->cases('recover, cancelled'))
{
	my ($exporter, $id) = hold_stopping($case);
	my $pid = bring_to_recovery($case, $exporter);

	$matrix->kill_held($case, $pid);
	$matrix->is_in_state($case, $id, 'CANCELLED', 1, 0);
}

# A launcher that starts anew must not take a worker that it does not know for
# dead.
{
	my $name = 'launcher, SIGTERM while an exporter works';

	# In new shared memory no heart has beaten yet.
	$matrix->forget_session;
	$node->restart;
	my $place = $matrix->hold('exporter', 'claimed');
	my $id = $matrix->request;
	my $exporter = $matrix->wait_held('claimed', $place);
	my $launcher = $node->worker_pid('launcher');
	my $seen = -s $node->logfile;

	kill 'TERM', $launcher;
	$node->wait_for_log(qr/pg_evidence launcher serves/, $seen);
	# Two rounds later it has looked at all its workers.
	my $second = $matrix->request(purpose => 'second');
	$matrix->wait_until("SELECT state = 'DELIVERED' FROM evidence.outbox_event"
		  . " WHERE export_id = '$second'");
	$matrix->release;
	$matrix->is_made({ name => $name }, $id, 1, 0);
	$matrix->wait_until(
		"SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$second'");
	unlike(
		slurp_file($node->logfile, $seen),
		qr/stands still|lost its lease/,
		"$name: the exporter was left alone");
}

$matrix->finish;
done_testing();
