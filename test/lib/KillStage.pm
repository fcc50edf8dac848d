
=pod

=head1 NAME

KillStage - a server whose processes stand still at a step, and can be killed

=head1 SYNOPSIS

  use KillStage;

  my $stage = KillStage->new(lease => 60);
  my $place = $stage->hold('exporter', 'INSERT archive_chunk 0');
  my $id = $stage->request;
  my $pid = $stage->wait_held('INSERT archive_chunk 0', $place);

  $stage->kill_hard($pid);
  $stage->release;

=head1 DESCRIPTION

A step is a pause point of the C code or the writing of a row, as in KillSteps.
What comes of a death is judged by KillMatrix.

=cut

package KillStage;

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Time::HiRes qw(usleep);

=pod

=head1 METHODS

=over

=item KillStage->new(setting => value, ...)

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
	my $self = bless { node => $node }, $class;

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
    IF TG_TABLE_NAME = 'archive_chunk' AND TG_OP = 'DELETE' THEN
        here := here || ' ' || OLD.seq;
    ELSIF TG_TABLE_NAME = 'archive_chunk' THEN
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

=item $stage->node

The server, an EvidenceNode.

=item $stage->sql($query)

Like safe_psql, over one connection that stays open from crash to crash.

=item $stage->query

sql() as a function, for those methods of EvidenceNode that take one.

=item $stage->wait_until($condition)

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

sub query
{
	my ($self) = @_;

	return sub { return $self->sql(@_) };
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

=item $stage->set(setting => value, ...)

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

=item $stage->hold($process, $step)

Makes the next such process that comes to the step stand still before it.
Returns the place in the log from which wait_held() shall look.  One pause
point and any number of row writes can be held at a time.

=item $stage->wait_held($step, $place)

Waits until a process stands still there; returns its process id.

=item $stage->release

Lets all of them go on.

=item $stage->unpause

Lets only those go on that stand still at the pause point.

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
	$self->unpause if $self->{paused};
	return;
}

sub unpause
{
	my ($self) = @_;

	$self->set(debug_pause => '');
	$self->{paused} = 0;
	return;
}

=pod

=item $stage->wait_commit_record($backend_type)

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

=item $stage->wait_gone($pid)

=cut

sub wait_gone
{
	my ($self, $pid) = @_;

	$self->wait_until(
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	return;
}

=pod

=item $stage->kill_hard($pid)

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

=item $stage->forget_session

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

=item $stage->request(argument => value, ...)

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

=item $stage->start($sql)

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

=back

=cut

1;
