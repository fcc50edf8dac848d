
=pod

=head1 NAME

KillMatrix - every step of an export, and processes that die before it

=head1 SYNOPSIS

  use KillMatrix;

  my $matrix = KillMatrix->new(lease => 60);
  $matrix->check_steps('store', sub { $matrix->node->export });
  foreach my $case ($matrix->cases('store'))
  {
      my $place = $matrix->hold('exporter', $case->{step});
      my $id = $matrix->request;
      my $pid = $matrix->wait_held($case->{step}, $place);

      $matrix->kill_held($case, $pid);
      $matrix->is_made($case, $id, $attempts, $deferrals);
  }
  $matrix->finish;

=head1 DESCRIPTION

A case of the matrix is the death of a process, by SIGTERM or by kill -9, before
one of the steps that stand in KillSteps.  This module has the cases, brings
processes to their deaths and judges what the ledger shows afterwards; the rest,
and all other methods, are KillStage's.

=cut

package KillMatrix;

use strict;
use warnings;

use EvidenceNode;
use File::Basename qw(basename);
use KillStage;
use KillSteps;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

our @ISA = ('KillStage');

my @phases = KillSteps::phases();
my %phases = map { $_->{name} => $_ } @phases;

# After a commit no signal is served any more before the step is done.
my %held_off = map { $_ => 1 } qw(waking telling);

=pod

=head1 METHODS

=over

=item $matrix->cases($phase, $step, ...)

The cases of a phase, two per step; only those of the named steps, if any are
named.

=cut

sub cases
{
	my ($self, $phase, @only) = @_;
	my %wanted = map { $_ => 1 } @only;
	my @cases;

	die "no phase $phase" unless $phases{$phase};
	foreach my $step (@{ $phases{$phase}{steps} })
	{
		next if @only && !$wanted{$step};
		push @cases,
		  {
			phase => $phase,
			process => $phases{$phase}{process},
			step => $step,
			signal => $_,
			name => "$phase: $phases{$phase}{process} dies of SIG$_"
			  . " before \"$step\""
		  }
		  foreach qw(TERM KILL);
	}
	return @cases;
}

=pod

=item $matrix->is_after($case, $step)

Whether the case's step comes after the other one in its phase.

=cut

sub is_after
{
	my ($self, $case, $step) = @_;
	my @steps = @{ $phases{ $case->{phase} }{steps} };
	my ($place) = grep { $steps[$_] eq $case->{step} } 0 .. $#steps;
	my ($other) = grep { $steps[$_] eq $step } 0 .. $#steps;

	return $place > $other;
}

=pod

=item $matrix->bring_to($case, $go)

Holds the case's process before the case's step, calls $go, which makes it go
there, and waits for it.  Returns the process id and what $go returned.

=item $matrix->hold_exporter($other)

Requests an export whose exporter stands still until release(), while another
process is to be held at step $other.  If that is a pause point, the exporter is
held by a row, before it stores; else in the middle of reading.  Returns its
process id and the export's id.

=cut

sub bring_to
{
	my ($self, $case, $go) = @_;
	my ($process, $step) = @$case{qw(process step)};
	my $from = $phases{ $case->{phase} }{from};
	my ($place, @result);

	if (defined $from && $step =~ /^[A-Z]+ /)
	{
		$place = $self->hold($process, $from);
		@result = $go->();
		$self->wait_held($from, $place);
		$place = $self->hold($process, $step);
		$self->unpause;
	}
	else
	{
		$place = $self->hold($process, $step);
		@result = $go->();
	}
	return ($self->wait_held($step, $place), @result);
}

sub hold_exporter
{
	my ($self, $other) = @_;
	my $step = $other =~ /^[a-z]/ ? 'INSERT archive_chunk 0' : 'half-read';
	my $place = $self->hold('exporter', $step);
	my $id = $self->request;

	return ($self->wait_held($step, $place), $id);
}

=pod

=item $matrix->kill_held($case, $pid)

Lets the process of a case die, and releases whatever else stands still.
After kill -9 the server has restarted when this returns.

=cut

sub kill_held
{
	my ($self, $case, $pid) = @_;

	if ($case->{signal} eq 'KILL')
	{
		$self->kill_hard($pid);
		return;
	}
	kill('TERM', $pid) == 1 or die "could not end process $pid: $!";
	# Whoever cannot be ended yet must go on for that; all others must not.
	$self->wait_gone($pid) unless $held_off{ $case->{step} };
	$self->release;
	$self->wait_gone($pid);
	return;
}

=pod

=item $matrix->is_made($case, $id, $attempts, $deferrals, $outcome)

The whole promise about one export: READY, after that many attempts that
counted and were given back, with the same records as all others, equal to the
live rows; and nothing is wrong in the ledger.  The outcome is what the table
of results says, if it is not about attempts.

=item $matrix->is_in_state($case, $id, $state, ...)

The same for an export that ends otherwise.  More values are those of its
columns cancelled and stopped (whether the two times are set), error_code.

=cut

sub is_made
{
	my ($self, $case, $id, $attempts, $deferrals, $outcome) = @_;

	$self->wait_until(
		"SELECT state NOT IN ('QUEUED', 'PROCESSING') FROM evidence.audit_export WHERE id = '$id'");
	my $found = $self->sql(<<"SQL");
SELECT concat_ws(' ', e.state, e.record_count, e.records_sha256, j.attempts, j.deferrals,
                 (SELECT count(*) FROM evidence.verify_audit_export(e.id) WHERE NOT ok))
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL

	$self->{sha256} //= (split / /, $found)[2];
	is($found, "READY 500 $self->{sha256} $attempts $deferrals 0",
		$case->{name});
	$self->is_sound($case,
		$outcome
		  // 'made once, '
		  . ( $deferrals ? 'given back before'
			: $attempts > 1 ? 'by the second attempt'
			: 'by the first attempt'));
	push @{ $self->{exports} }, $id;
	return;
}

sub is_in_state
{
	my ($self, $case, $id, $state, @more) = @_;

	$self->wait_until(
		"SELECT state NOT IN ('QUEUED', 'PROCESSING') AND (state <> 'CANCELLED' OR stopped_at IS NOT NULL)"
		  . " FROM evidence.audit_export WHERE id = '$id'");
	my $found = $self->sql(<<"SQL");
SELECT concat_ws(' ', e.state, j.attempts, j.deferrals, e.error_code)
  FROM evidence.audit_export AS e
  JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL

	is($found, join(' ', $state, @more), $case->{name});
	$self->is_sound($case, $state);
	return;
}

=pod

=item $matrix->is_sound($case, $outcome)

Nothing is wrong in the ledger; the outcome goes into the table of results.

=cut

sub is_sound
{
	my ($self, $case, $outcome) = @_;
	my $faults = $self->{node}->ledger_faults($self->query);

	is($faults, '', "$case->{name}: one archive and nothing else");
	push @{ $self->{results} }, { %$case, outcome => $outcome }
	  if defined $case->{phase};
	return;
}

=pod

=item $matrix->check_steps($process, [step or phase, ...], $run)

Runs something that nobody disturbs, and compares the steps that processes of
that type took with these.  In which order one statement writes its rows is
the server's choice.

=cut

sub check_steps
{
	my ($self, $process, $steps, $run) = @_;
	my @expected = grep { !/^\(/ }
	  map { $phases{$_} ? @{ $phases{$_}{steps} } : $_ } @$steps;
	my $type = $process eq 'backend' ? 'client backend' : "pg_evidence $process";
	my (@taken, %seen);

	$self->set(debug_pause => 'trace');
	my $place = -s $self->{node}->logfile;
	$run->();
	$self->wait_until("SELECT count(*) = 0 FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence exporter' AND state = 'active'")
	  if $process eq 'exporter';
	$self->set(debug_pause => '');
	my $log = slurp_file($self->{node}->logfile, $place);

	while ($log =~ /\] $type LOG: +pg_evidence process \d+ passes "([^"]+)"/g)
	{
		my $step = $1;

		# A new round of the launcher, in place of one that found nothing.
		@taken = %seen = ()
		  if $step eq 'launcher-round' && @taken <= 2;
		last if $step eq 'launcher-round' && $seen{$step};
		# What is done in a loop is one step; a row is written only once.
		push @taken, $step unless $seen{$step}++ && $step =~ /^[a-z]/;
	}
	is_deeply([ _in_order(@taken) ], [ _in_order(@expected) ],
		"$process: the steps are those of the matrix: @$steps");
	return;
}

# Sorts the row writes between two pause points.
sub _in_order
{
	my (@ordered, @writes);

	foreach my $step (@_, '')
	{
		if ($step =~ /^[A-Z]+ /)
		{
			push @writes, $step;
			next;
		}
		push @ordered, sort(@writes), $step;
		@writes = ();
	}
	return @ordered;
}

=pod

=item $matrix->check_pause_points

Compares the table with the pause points of the C code, both ways.

=cut

sub check_pause_points
{
	my ($self) = @_;
	my %in_code;
	my %in_table = map { $_ => 1 }
	  grep { /^[a-z]/ } map { @{ $_->{steps} } } @phases;

	foreach my $file (EvidenceNode::source_files('extension/*/*.c'))
	{
		my $text = slurp_file($file);

		$in_code{$1} = 1 while $text =~ /\bev_pause_at\("([^"]+)"\)/g;
	}
	is_deeply(
		[ sort keys %in_code ],
		[ sort keys %in_table ],
		'every pause point of the C code is a step of the matrix');
	return;
}

=pod

=item $matrix->finish

Downloads every archive that was made and has the program verify it, stops
the server and hands the results on to test/tools/kill-matrix, if that runs
the test.

=cut

sub finish
{
	my ($self) = @_;
	my $node = $self->{node};
	my $file = PostgreSQL::Test::Utils::tempdir() . '/evidence.zip';
	my @broken;

	foreach my $id (@{ $self->{exports} })
	{
		my $grant =
		  $self->sql("SELECT evidence.grant_audit_export_download('$id')");

		$node->fetch_to_file($grant, $file, $self->query);
		push @broken, $id if ($node->program('verify', $file))[0] != 0;
	}
	is("@broken", '',
		scalar @{ $self->{exports} } . ' archives are downloaded and intact');
	is($node->ledger_faults($self->query), '',
		'nothing is wrong in the ledger at the end');
	$self->forget_session;
	$node->stop;
	$self->_hand_on;
	return;
}

sub _hand_on
{
	my ($self) = @_;
	my $folder = $ENV{KILL_MATRIX_RESULTS} or return;
	my $path = "$folder/" . basename($0, '.pl');

	open my $file, '>', $path or die "could not create $path: $!";
	foreach my $one (@{ $self->{results} })
	{
		my ($phase) =
		  grep { $phases[$_]{name} eq $one->{phase} } 0 .. $#phases;
		my @steps = @{ $phases[$phase]{steps} };
		my ($step) = grep { $steps[$_] eq $one->{step} } 0 .. $#steps;

		print $file join("\t",
			$phase, $step, @$one{qw(phase process step signal outcome)}), "\n";
	}
	close $file or die "could not write $path: $!";
	return;
}

=pod

=back

=cut

1;
