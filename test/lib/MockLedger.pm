
=pod

=head1 NAME

MockLedger - a server that only plays the server side of pg_evidence

=head1 SYNOPSIS

  use MockLedger;

  my $mock = MockLedger->new;
  my $id = $mock->new_export(state => 'PROCESSING');
  my ($code, $out, $err) = $mock->program('show', $id);

=head1 DESCRIPTION

A server with test/t/lib/mock_schema.sql, which can be made to fail in every
way, for tests of the client program.

=cut

package MockLedger;

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceNode;
use File::Basename qw(dirname);
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils qw(slurp_file);
use Time::HiRes qw(usleep);

my $lib = abs_path(dirname(__FILE__) . '/../t/lib');

=pod

=head1 METHODS

=over

=item MockLedger->new

Makes and starts the server, and points the environment of this test to it.

=item $mock->node

The server, a PostgreSQL::Test::Cluster.

=item $mock->sql($query)

=cut

sub new
{
	my ($class) = @_;
	my $node = PostgreSQL::Test::Cluster->new('main');

	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
	$node->start;
	$node->psql('postgres', slurp_file("$lib/mock_schema.sql"),
		on_error_die => 1);

	# The server is to see the name that the program gives itself.
	delete @ENV{qw(PGSERVICE PGPASSWORD PGPASSFILE PGTZ PGAPPNAME)};
	$ENV{PGHOST} = $node->host;
	$ENV{PGPORT} = $node->port;
	$ENV{PGDATABASE} = 'postgres';
	return bless { node => $node }, $class;
}

sub node
{
	my ($mock) = @_;

	return $mock->{node};
}

sub sql
{
	my ($mock, $query) = @_;

	return $mock->{node}->safe_psql('postgres', $query);
}

=pod

=item $mock->reset

The counters start again.

=item $mock->new_export(column => value, ...)

Makes an export and returns its id.

=cut

sub reset
{
	my ($mock) = @_;

	$mock->sql(<<'SQL');
ALTER SEQUENCE evidence.mock_calls RESTART;
ALTER SEQUENCE evidence.mock_grants RESTART;
ALTER SEQUENCE evidence.mock_losses RESTART;
TRUNCATE evidence.mock_grant;
SQL
	return;
}

sub new_export
{
	my ($mock, %columns) = @_;
	my $names = join ', ', sort keys %columns;
	my $values = join ', ', map { "'$columns{$_}'" } sort keys %columns;

	return $mock->sql("INSERT INTO evidence.mock_export ($names)"
		  . " VALUES ($values) RETURNING id");
}

=pod

=item $mock->program(argument, ...)

Runs the program; returns its exit code, standard output and standard error.

=item $mock->start_program(argument, ...)

Starts it; returns its IPC::Run harness and references to its outputs.

=item $mock->start_on_terminal(command, ...)

Starts a command on a terminal of its own.  Returns its harness and a reference
to what it shows; its exit code is that of the harness.  It is sent "correct
horse" when it asks for a password.

=cut

sub program
{
	my ($mock, @arguments) = @_;
	my ($run, $out, $err) = $mock->start_program(@arguments);

	$run->finish;
	return ($? >> 8, $$out, $$err);
}

sub start_program
{
	my ($mock, @arguments) = @_;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ EvidenceNode::program_path(), @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);

	return ($run, \$out, \$err);
}

my $terminal = <<'PYTHON';
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
try:
    while data := os.read(terminal, 1000):
        seen += data
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        if seen.endswith(b"Password: "):
            os.write(terminal, b"correct horse\n")
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON

sub start_on_terminal
{
	my ($mock, @command) = @_;
	my $out = '';
	my $run = IPC::Run::start(
		[ 'python3', '-c', $terminal, @command ],
		'<',
		\undef,
		'>',
		\$out,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	return ($run, \$out);
}

=pod

=item $mock->wait_for($condition)

Waits until the function gives true.

=item $mock->wait_connected($state)

Waits until the program is connected, in that state if one is given; returns
the process id of its server process.

=item $mock->wait_standing

The same until it waits for a function that stands still.

=item $mock->lose_connection_for_good($pid)

Ends that server process; from then on the server is of another version.

=cut

sub wait_for
{
	my ($mock, $condition) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	until ($condition->())
	{
		die 'timed out waiting' if time > $deadline;
		usleep(20_000);
	}
	return;
}

sub wait_connected
{
	my ($mock, $state) = @_;

	return $mock->_wait_process(defined $state ? "state = '$state'" : 'true');
}

sub wait_standing
{
	my ($mock) = @_;

	return $mock->_wait_process("wait_event = 'PgSleep'");
}

sub lose_connection_for_good
{
	my ($mock, $pid) = @_;

	$mock->sql(q{ALTER DATABASE postgres SET mock.version = '2.0'});
	$mock->sql("SELECT pg_terminate_backend($pid)");
	return;
}

sub _wait_process
{
	my ($mock, $doing) = @_;
	my $query = "SELECT pid FROM pg_stat_activity"
	  . " WHERE application_name = 'pg_evidence' AND $doing";
	my $pid;

	$mock->wait_for(sub { ($pid = $mock->sql($query)) =~ /^\d+$/ });
	return $pid;
}

=pod

=back

=cut

1;
