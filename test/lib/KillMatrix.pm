
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
one of the steps that stand in KillSteps.

=cut

package KillMatrix;

use strict;
use warnings;

use EvidenceNode;
use File::Basename qw(basename);
use KillSteps;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;
use Time::HiRes qw(usleep);

my @phases = KillSteps::phases();
my %phases = map { $_->{name} => $_ } @phases;

# After a commit no signal is served any more before the step is done.
my %held_off = map { $_ => 1 } qw(waking telling);

=pod

=head1 METHODS

=over

=item KillMatrix->new(setting => value, ...)

Makes and starts a server with the extension, whose log holds 500 events and
whose every row write can be held.  C<< preload => 0 >> makes one that does
not preload the library, where nothing works but by hand.

=cut

sub new
{
	my ($class, %settings) = @_;
	my $preload = delete $settings{preload} // 1;
	my $node = EvidenceNode->new('main', max_active_per_requester => 500,
		%settings);
	my $self = bless { node => $node, results => [], exports => [] }, $class;

	$node->append_conf('postgresql.conf', <<'CONF');
log_line_prefix = '%m [%p] %b '
wal_level = replica
max_wal_senders = 1
synchronous_standby_names = 'nobody'
synchronous_commit = local
CONF
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n")
	  unless $preload;
	$node->start;
	$node->create_extension;
	$self->_fill;
	$self->_install_gates;
	($self->{start}, $self->{end}) = split /\|/, $self->sql(<<'SQL');
SELECT min(created_at), max(created_at) + interval '1 second'
  FROM evidence.audit_log WHERE action = 'record.read'
SQL
	return $self;
}

# Hex digits at random fill two chunks of an archive with few rows.
sub _fill
{
	my ($self) = @_;

	$self->sql(<<'SQL');
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT now() - interval '2 days' + n * interval '1 minute', 'user-' || n % 7, 'record.read',
       (SELECT string_agg(md5(format('%s/%s', n, m)), ' ') FROM generate_series(1, 12) AS m)
  FROM generate_series(1, 500) AS n
SQL
	return;
}

# The table is unlogged, so that a crash opens all gates.
sub _install_gates
{
	my ($self) = @_;

	$self->sql(<<'SQL');
CREATE SCHEMA kill;
CREATE UNLOGGED TABLE kill.gate (process text, step text);
CREATE FUNCTION kill.pass() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    application text := current_setting('application_name');
    me text := CASE WHEN application ~ '^pg_evidence (launcher|exporter)$' THEN substr(application, 13) ELSE 'backend' END;
    here text := TG_OP || ' ' || TG_TABLE_NAME;
    announced boolean := false;
BEGIN
    IF TG_TABLE_NAME = 'archive_chunk' THEN
        here := here || ' ' || NEW.seq;
    END IF;
    IF current_setting('pg_evidence.debug_pause', true) = 'trace' THEN
        RAISE LOG 'pg_evidence process % passes "%"', pg_backend_pid(), here;
    END IF;
    WHILE EXISTS (SELECT FROM kill.gate AS g WHERE (g.process, g.step) = (me, here)) LOOP
        IF NOT announced THEN
            RAISE LOG 'pg_evidence process % pauses at "%"', pg_backend_pid(), here;
            announced := true;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$body$;
DO $body$
DECLARE
    one regclass;
BEGIN
    FOR one IN SELECT oid FROM pg_class WHERE relnamespace = 'evidence'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('CREATE TRIGGER kill BEFORE INSERT OR UPDATE OR DELETE ON %s'
                       ' FOR EACH ROW EXECUTE FUNCTION kill.pass()', one);
    END LOOP;
END
$body$;
SQL
	return;
}

=pod

=item $matrix->node

The server, an EvidenceNode.

=item $matrix->sql($query)

Like safe_psql, over one connection that stays open from crash to crash.

=item $matrix->wait_until($condition)

Waits within the server until the condition holds.

=cut

sub node
{
	my ($self) = @_;

	return $self->{node};
}

sub sql
{
	my ($self, $query) = @_;

	$self->{session} //= $self->{node}->background_psql('postgres');
	$self->{session}->set_query_timer_restart;
	return $self->{session}->query_safe($query);
}

sub wait_until
{
	my ($self, $condition) = @_;
	my $limit = $PostgreSQL::Test::Utils::timeout_default;

	$self->sql(<<"SQL");
DO \$wait\$
DECLARE
    deadline timestamptz := clock_timestamp() + interval '$limit seconds';
BEGIN
    WHILE ($condition) IS NOT TRUE LOOP
        IF clock_timestamp() > deadline THEN
            RAISE EXCEPTION 'timed out';
        END IF;
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END
\$wait\$
SQL
	return;
}

# Log lines come quickly; EvidenceNode waits for rarer ones.
sub _wait_log
{
	my ($self, $line, $place) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (1)
	{
		my $log = slurp_file($self->{node}->logfile, $place);

		return $1 // 1 if $log =~ $line;
		die "timed out waiting for $line" if time > $deadline;
		usleep(10_000);
	}
}

=pod

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

=item $matrix->set(setting => value, ...)

Changes pg_evidence settings, if any; when it returns, the postmaster knows
them, its children have been told, and no exporter waits for work.

=cut

sub set
{
	my ($self, %settings) = @_;

	$self->{node}->write_settings(%settings);
	$self->_reload;
	return;
}

# The postmaster tells its children, among them this session, once it knows.
# Exporters that wait for work end then, so the next job gets a new one.
sub _reload
{
	my ($self) = @_;
	my $before = $self->sql('SELECT pg_conf_load_time()');

	kill('HUP', $self->{node}->{_pid}) == 1 or die "no postmaster: $!";
	usleep(2_000)
	  while $self->sql('SELECT pg_conf_load_time()') eq $before;
	$self->wait_until("SELECT count(*) = 0 FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence exporter' AND state = 'idle'");
	return;
}

=pod

=item $matrix->hold($process, $step)

Makes the next such process that comes to the step stand still before it.
Returns the place in the log from which wait_held() shall look.  One pause
point and any number of row writes can be held at a time.

=item $matrix->wait_held($step, $place)

Waits until a process stands still there; returns its process id.

=item $matrix->bring_to($case, $go)

Holds the case's process before the case's step, calls $go, which makes it go
there, and waits for it.  Returns the process id and what $go returned.

=item $matrix->release

Lets all of them go on.

=cut

sub hold
{
	my ($self, $process, $step) = @_;
	my $place = -s $self->{node}->logfile;

	if ($step =~ /^[A-Z]+ /)
	{
		$self->sql("INSERT INTO kill.gate VALUES ('$process', '$step')");
	}
	else
	{
		$self->set(debug_pause => $step);
		$self->{paused} = 1;
	}
	return $place;
}

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
		$self->set(debug_pause => '');
		$self->{paused} = 0;
	}
	else
	{
		$place = $self->hold($process, $step);
		@result = $go->();
	}
	return ($self->wait_held($step, $place), @result);
}

sub wait_held
{
	my ($self, $step, $place) = @_;

	return $self->_wait_log(
		qr/pg_evidence process (\d+) pauses at "\Q$step\E"/, $place);
}

sub release
{
	my ($self) = @_;

	$self->sql('DELETE FROM kill.gate');
	$self->set(debug_pause => '') if $self->{paused};
	$self->{paused} = 0;
	return;
}

=pod

=item $matrix->wait_commit_record($backend_type)

Waits until a process of that type has written the record of its commit and
waits for the standby; returns its process id.

=cut

sub wait_commit_record
{
	my ($self, $type) = @_;
	my $where =
	  "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = '$type'";

	$self->wait_until("SELECT count(*) = 1 $where");
	return $self->sql("SELECT pid $where");
}

=pod

=item $matrix->kill_held($case, $pid)

Lets the process of a case die, and releases whatever else stands still.
After kill -9 the server has restarted when this returns.

=item $matrix->kill_server($signal, setting => value, ...)

=item $matrix->wait_gone($pid)

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

sub wait_gone
{
	my ($self, $pid) = @_;

	$self->wait_until(
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	return;
}

=pod

=item $matrix->kill_hard($pid)

kill -9, which brings the whole server down and up again.

=cut

sub kill_hard
{
	my ($self, $pid) = @_;
	my $node = $self->{node};
	my $place = -s $node->logfile;

	$node->write_settings(debug_pause => '') if $self->{paused};
	kill('KILL', $pid) == 1 or die "could not kill process $pid: $!";
	$self->_wait_log(
		qr/all server processes terminated.*ready to accept connections/s,
		$place);
	$self->forget_session;
	$self->_reload if $self->{paused};
	$self->{paused} = 0;
	return;
}

=pod

=item $matrix->forget_session

Needed after the server went down.

=cut

sub forget_session
{
	my ($self) = @_;

	eval { $self->{session}->quit } if $self->{session};
	$self->{session} = undef;
	return;
}

=pod

=item $matrix->request(argument => value, ...)

Requests an export of the 500 events, in a session that stays alive, and
returns its id.

=cut

sub request
{
	my ($self, %arguments) = @_;

	return $self->sql('SELECT ' . $self->request_call(%arguments));
}

sub request_call
{
	my ($self, %arguments) = @_;
	my %all = (
		start_at => $self->{start},
		end_at => $self->{end},
		purpose => 'test',
		%arguments);

	return 'evidence.request_audit_export('
	  . join(', ', map { "$_ => '$all{$_}'" } sort keys %all) . ')';
}

=pod

=item $matrix->start($sql)

Sends a statement in a session of its own and does not wait for the answer.
Returns the session, which end_session() ends whether it still lives or not.

=cut

sub start
{
	my ($self, $sql) = @_;
	my $session =
	  $self->{node}->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr//, "$sql;\n");
	return $session;
}

sub end_session
{
	my ($self, $session) = @_;

	eval { $session->quit };
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
	my $faults = $self->{node}->ledger_faults(sub { return $self->sql(@_) });

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

		$self->save($grant, $file);
		push @broken, $id if ($node->program('verify', $file))[0] != 0;
	}
	is("@broken", '',
		scalar @{ $self->{exports} } . ' archives are downloaded and intact');
	is($node->ledger_faults(sub { return $self->sql(@_) }),
		'', 'nothing is wrong in the ledger at the end');
	$self->forget_session;
	$node->stop;
	$self->_hand_on;
	return;
}

=pod

=item $matrix->save($grant, $path)

Fetches an archive into a file and returns how many bytes there were.

=cut

sub save
{
	my ($self, $grant, $path) = @_;
	my $hex = $self->sql(<<"SQL");
SELECT string_agg(encode((f).data, 'hex'), '' ORDER BY (f).seq)
  FROM (SELECT evidence.fetch_audit_export('$grant') AS f) AS chunk
SQL

	open my $file, '>:raw', $path or die "could not create $path: $!";
	print $file pack('H*', $hex);
	close $file or die "could not write $path: $!";
	return -s $path;
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
