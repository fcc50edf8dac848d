# The whole server goes down while an export is made: in an orderly way, at
# once, or by kill -9 of every process, which leaves temporary files behind.

use strict;
use warnings;

use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $matrix = KillMatrix->new;
my $node = $matrix->node;

sub temporary_files
{
	my @files = glob $node->data_dir . '/base/pgsql_tmp/*';

	return scalar @files;
}

# The postmaster's children, or all who are left of a list.
sub children_of
{
	my ($postmaster) = @_;

	return grep {
		my $status = eval { slurp_file("/proc/$_/status") } // '';
		$status =~ /^PPid:\s+$postmaster$/m
	} map { m{/proc/(\d+)}g } glob '/proc/[0-9]*';
}

sub wait_ended
{
	my (@pids) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (my @left = grep { kill 0, $_ } @pids)
	{
		die "processes @left do not end" if time > $deadline;
		usleep(10_000);
	}
	return;
}

# Nobody is left who could tidy up.
sub kill_all
{
	my $postmaster = $node->{_pid};
	my @children;

	# Stopped, it cannot end its children in its own way.
	kill 'STOP', $postmaster;
	@children = children_of($postmaster);
	kill 'KILL', @children;
	$node->kill9;
	wait_ended(@children);
	return;
}

sub kill_postmaster
{
	my @children = children_of($node->{_pid});

	$node->kill9;
	wait_ended(@children);
	return;
}

# An export stands still before the step while the server goes down.
sub survives
{
	my ($case, $go_down, @counters) = @_;
	my $place = $matrix->hold('exporter', $case->{step});
	my $id = $matrix->request;

	$matrix->wait_held($case->{step}, $place);
	cmp_ok(temporary_files(), '>', 0, "$case->{name}: a temporary file exists");
	$matrix->forget_session;
	$go_down->();
	cmp_ok(temporary_files(), '>', 0, "$case->{name}: it was left behind")
	  if $go_down == \&kill_all;
	$node->write_settings(debug_pause => '');
	$node->start;
	$matrix->is_made($case, $id, @counters);
	unlike(
		slurp_file($node->logfile, $place),
		qr/recovered.*recovered \d+ attempts/s,
		"$case->{name}: put back once, in the log");
	return;
}

foreach my $case ($matrix->cases('server'))
{
	survives(
		$case,
		$case->{signal} eq 'TERM'
		? (sub { $node->stop('fast') }, 1, 1)
		: (\&kill_all, 2, 0));
}
survives({ name => 'server stopped in mode immediate', step => 'half-read' },
	sub { $node->stop('immediate') }, 2, 0);
survives({ name => 'postmaster killed', step => 'half-read' },
	\&kill_postmaster, 2, 0);

$matrix->finish;
done_testing();
