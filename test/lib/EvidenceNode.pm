
=pod

=head1 NAME

EvidenceNode - a PostgreSQL server with pg_evidence, for TAP tests

=head1 SYNOPSIS

  use EvidenceNode;

  my $node = EvidenceNode->new('main', lease => 2);
  $node->start;
  $node->create_extension;
  $node->fill(1000, 10);
  my $id = $node->request(idempotency_key => 'a');
  $node->wait_state($id, 'READY');
  $node->export_to_file($id, 'evidence.zip');

=head1 DESCRIPTION

A PostgreSQL::Test::Cluster that preloads pg_evidence and serves database
postgres, with what most tests do again and again.  Every wait polls a
condition and ends the test when it does not come true in time; there is no
fixed sleep.

=cut

package EvidenceNode;

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceLedger;
use File::Basename qw(dirname);
use IPC::Run ();
use PostgreSQL::Test::Cluster;
# No more than this: its command_ok would stand in front of the method.
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;
use Time::HiRes qw(usleep);

our @ISA = ('PostgreSQL::Test::Cluster');

my $project = abs_path(dirname(__FILE__) . '/../..');

=pod

=head1 METHODS

=over

=item EvidenceNode->new(name, setting => value, ...)

Makes and initialises a node, not started yet.  Settings are those of
pg_evidence without the prefix (C<< lease => 2 >>); others go in with
append_conf.  Developer mode is on unless told otherwise, so that tests can
move the clock.  C<< encoding => 'LATIN1' >> is the encoding of all databases;
UTF8 without it.  C<< locale => 'tr_TR.UTF-8' >> is their locale; C without it.

=cut

sub new
{
	my ($class, $name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $encoding = delete $settings{encoding} // 'UTF8';
	my $locale = delete $settings{locale} // 'C';

	bless $node, $class;
	$node->init(extra => [ "--locale=$locale", "--encoding=$encoding" ]);
	$node->configure(%settings);
	return $node;
}

=pod

=item $node->configure(setting => value, ...)

Writes the preload line and pg_evidence's settings.  Also for a node that was
made from a backup.

=cut

sub configure
{
	my ($node, %settings) = @_;
	my %values = (
		database => 'postgres',
		developer_mode => 'on',
		%settings);

	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = 'pg_evidence'\n");
	# As outside of tests; the test framework switches it off.
	$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
	$node->append_conf('postgresql.conf', _line($_, $values{$_}))
	  foreach sort keys %values;
	return;
}

sub _line
{
	my ($name, $value) = @_;

	$value =~ s/'/''/g;
	return "pg_evidence.$name = '$value'\n";
}

=pod

=item $node->set(setting => value, ...)

Changes pg_evidence settings of a running server and waits until a new
session sees them.

=cut

sub set
{
	my ($node, %settings) = @_;

	my $before = _scalar($node, 'SELECT clock_timestamp()');

	$node->write_settings(%settings);
	$node->reload;
	$node->poll("SELECT pg_conf_load_time() > '$before'");
	return;
}

=pod

=item $node->write_settings(setting => value, ...)

Changes the configuration file only; a start or reload makes it count.  The
file is replaced as a whole, since a process that has just been told of the
change before may be reading it.

=cut

sub write_settings
{
	my ($node, %settings) = @_;

	my $path = $node->data_dir . '/postgresql.conf';
	my @lines = grep {
		!(/^pg_evidence\.(\w+)\s*=/ && exists $settings{$1})
	} split /^/, slurp_file($path);

	push @lines, map { _line($_, $settings{$_}) } sort keys %settings;
	open my $file, '>', "$path.new" or die "could not create $path.new: $!";
	print $file @lines;
	close $file or die "could not write $path.new: $!";
	rename "$path.new", $path or die "could not replace $path: $!";
	return;
}

=pod

=item $node->create_extension

=cut

sub create_extension
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'CREATE EXTENSION pg_evidence');
	return;
}

=pod

=item $node->fill(rows, days)

Appends that many events, spread evenly over the last days, oldest first.

=cut

sub fill
{
	my ($node, $rows, $days) = @_;

	$node->safe_psql('postgres', <<~"SQL");
		INSERT INTO evidence.audit_log
		       (created_at, tenant_id, actor_id, actor_role, action,
		        target_type, target_id, outcome, request_id, summary)
		SELECT date_trunc('hour', now()) - interval '$days days'
		       + (n * interval '$days days') / $rows,
		       'tenant-' || n % 3, 'user-' || n % 17, 'clerk',
		       (ARRAY['session.login', 'record.read', 'record.update'])[1 + n % 3],
		       'record', n::text,
		       CASE n % 10 WHEN 0 THEN 'failure' ELSE 'success' END,
		       'request-' || n / 4, 'event number ' || n
		  FROM generate_series(0, $rows - 1) AS n;
		SQL
	return;
}

=pod

=item $node->request(start_at => ..., end_at => ..., role => ..., ...)

Requests an export and returns its id.  Any argument of
request_audit_export() may be given; the range is the last 31 days, up to
tomorrow.  role is the role that asks.

=cut

sub request
{
	my ($node, %arguments) = @_;
	my $role = delete $arguments{role};
	my %all = (purpose => 'test', %arguments);

	# 31 days are the longest range; its end lies ahead so that the rows of
	# this very moment belong.  The two are asked for one after the other,
	# which a minute makes up for.
	$all{start_at} //= _scalar($node, "SELECT now() - interval '720 hours'");
	$all{end_at} //= _scalar($node, "SELECT now() + interval '1439 minutes'");

	my $list = join(', ',
		map { "$_ => " . _literal($all{$_}) } sort keys %all);
	my $sql = "SELECT evidence.request_audit_export($list)";

	$sql = "SET ROLE \"$role\"; $sql" if defined $role;
	return _scalar($node, $sql);
}

sub _literal
{
	my ($value) = @_;

	$value =~ s/'/''/g;
	return "'$value'";
}

sub _scalar
{
	my ($node, $sql) = @_;
	my $result = $node->safe_psql('postgres', $sql);

	chomp $result;
	return $result;
}

=pod

=item $node->export_state($id)

The state of an export, with superuser's eyes.

=item $node->wait_state($id, $state)

Waits until the export is in that state.  Fails the test, telling the state
and error it is in instead, when that takes too long.

=cut

sub export_state
{
	my ($node, $id) = @_;

	return _scalar($node,
		"SELECT state FROM evidence.audit_export WHERE id = '$id'");
}

sub wait_state
{
	my ($node, $id, $state) = @_;
	my $reached = $node->poll_query_until('postgres',
		"SELECT state = '$state' FROM evidence.audit_export WHERE id = '$id'"
	);

	return 1 if $reached;
	diag($node->safe_psql('postgres',
		    "SELECT state, error_code, error_message"
		  . " FROM evidence.audit_export_status WHERE id = '$id'"));
	die "export $id did not become $state";
}

=pod

=item $node->export(...)

Requests an export with the arguments of request(), waits until it is READY
and returns its id.

=cut

sub export
{
	my ($node, %arguments) = @_;
	my $id = $node->request(%arguments);

	$node->wait_state($id, 'READY');
	return $id;
}

=pod

=item $node->poll($sql)

Waits until the query gives true.

=cut

sub poll
{
	my ($node, $sql) = @_;

	$node->poll_query_until('postgres', $sql)
	  or die "timed out waiting for: $sql";
	return 1;
}

=pod

=item $node->export_to_file($id, $path, role => ...)

Downloads an archive with SQL alone: the grant in one transaction, the bytes
in another session.

=item $node->fetch_to_file($grant, $path, $query)

The second half of it.  $query runs a query in place of a session of its own.

Both return how many bytes there were.

=cut

sub export_to_file
{
	my ($node, $id, $path, %options) = @_;
	my $become =
	  defined $options{role} ? "SET ROLE \"$options{role}\";" : '';
	my $query = sub { return _scalar($node, "$become $_[0]") };
	my $grant =
	  $query->("SELECT evidence.grant_audit_export_download('$id')");

	return $node->fetch_to_file($grant, $path, $query);
}

sub fetch_to_file
{
	my ($node, $grant, $path, $query) = @_;
	my $hex = $query->(<<~"SQL");
		SELECT string_agg(encode((f).data, 'hex'), '' ORDER BY (f).seq)
		  FROM (SELECT evidence.fetch_audit_export('$grant') AS f) AS chunk
		SQL

	open my $file, '>:raw', $path or die "could not create $path: $!";
	print $file pack('H*', $hex);
	close $file or die "could not write $path: $!";
	return -s $path;
}

=pod

=item $node->error_of($sql, dbname => ..., role => ...)

Runs a statement that shall fail; returns its SQLSTATE and the whole text of
the error, hint included.  Both are empty when the statement succeeds.

=cut

sub error_of
{
	my ($node, $sql, %options) = @_;
	my $become =
	  defined $options{role} ? "SET ROLE \"$options{role}\";\n" : '';
	my ($out, $err) = ('', '');

	$node->psql($options{dbname} // 'postgres',
		"\\set VERBOSITY verbose\n$become$sql",
		stdout => \$out, stderr => \$err);
	my ($code) = $err =~ /(?:ERROR|FATAL):  ([0-9A-Z]{5}): /;
	return ($code // '', $err);
}

=pod

=item $node->pause_before($step)

Makes the next process that comes to the step of that name stand still there.
Returns the place in the log from which wait_paused() shall look.

=item $node->wait_paused($step, $offset)

Waits until a process stands still before the step and returns its process
id.

=item $node->resume

Lets all of them go on.

=cut

sub pause_before
{
	my ($node, $step) = @_;
	my $offset = -s $node->logfile;

	$node->set(debug_pause => $step);
	return $offset;
}

sub wait_paused
{
	my ($node, $step, $offset) = @_;
	my $line = qr/pg_evidence process (\d+) pauses at "$step"/;

	$node->wait_for_log($line, $offset);
	my ($pid) = slurp_file($node->logfile, $offset) =~ $line;
	return $pid;
}

sub resume
{
	my ($node) = @_;

	$node->set(debug_pause => '');
	return;
}

=pod

=item $node->signal($signal, $pid, keep_pause => ...)

Sends a signal to one process of the server.  KILL brings the whole server
down and up again; then this waits until it takes connections, and the pause
is over when it does, unless keep_pause is true.

=cut

sub signal
{
	my ($node, $signal, $pid, %options) = @_;
	my $ends_pause = $signal eq 'KILL' && !$options{keep_pause};

	$node->write_settings(debug_pause => '') if $ends_pause;
	my $offset = -s $node->logfile;

	kill($signal, $pid) == 1 or die "could not send $signal to $pid: $!";
	if ($signal eq 'KILL')
	{
		$node->wait_for_log(qr/all server processes terminated/, $offset);
		$node->poll('SELECT true');
		$node->reload if $ends_pause;
	}
	return;
}

=pod

=item $node->worker_pid($type)

Process id of the launcher or exporter; empty if there is none.  Processes
that are being started have no row yet, so wait with poll() where it matters.

=cut

sub worker_pid
{
	my ($node, $type) = @_;

	return _scalar($node,
		"SELECT min(pid) FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence $type'");
}

=pod

=item $node->wait_given_up($offset)

Waits until the launcher gives up a worker that stands still, which it knows by
the time of day.  The lease is short meanwhile, and then 60 s; nobody else may
work.  $offset is the place in the log from which it looks.

=cut

sub wait_given_up
{
	my ($node, $offset) = @_;

	$node->set(lease => 1);
	$node->wait_for_log(
		qr/exporter in slot \d+ stands still and is given up/, $offset);
	$node->set(lease => 60);
	return;
}

=pod

=item $node->stop_launcher($query)

Stops the launcher while it sleeps, so that it holds no lock that others would
wait for, and returns its process id.

=cut

sub stop_launcher
{
	my ($node, $query) = @_;
	my $pid = $node->worker_pid('launcher');

	$query //= $node->query;
	while (1)
	{
		kill('STOP', $pid) == 1 or die "could not stop the launcher: $!";
		return $pid
		  if $query->("SELECT wait_event_type = 'Extension'"
			  . " FROM pg_stat_activity WHERE pid = $pid") eq 't';
		kill 'CONT', $pid;
		usleep(1_000);
	}
}

=pod

=item $node->ledger_faults($query)

What is wrong with the ledger as a whole while nothing runs; an empty text when
all is well.

=item $node->ledger_of($id, $query)

All that the ledger says about one export, as a text to compare.

In both $query runs a query in place of a session of its own.

=cut

sub ledger_faults
{
	my ($node, $query) = @_;

	return EvidenceLedger::faults($node, $query // $node->query);
}

sub ledger_of
{
	my ($node, $id, $query) = @_;

	return EvidenceLedger::of_export($id, $query // $node->query);
}

=pod

=item $node->query

safe_psql() on database postgres, as a function.

=cut

sub query
{
	my ($node) = @_;

	return sub { return $node->safe_psql('postgres', $_[0]) };
}

=pod

=item $node->program(argument, ...)

Runs the client program against this node and returns its exit code, standard
output and standard error.

=cut

sub program
{
	my ($node, @arguments) = @_;
	my ($out, $err) = ('', '');

	local %ENV = $node->_get_env(PGDATABASE => 'postgres');
	IPC::Run::run([ program_path(), @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# Where it is counted which lines run (make coverage), a process must be let
# to its end in order to write down what it counted.
sub teardown_node
{
	my ($node, %parameters) = @_;

	$node->stop('fast', fail_ok => 1) if $ENV{COVERAGE};
	return $node->SUPER::teardown_node(%parameters);
}

=pod

=back

=head1 FUNCTIONS

=over

=item EvidenceNode::program_path()

The client program: environment variable PG_EVIDENCE, or the one built in
this tree.

=item EvidenceNode::tool_path($name)

A file of test/tools, such as C<check_docs.py>.

=item EvidenceNode::source_files($pattern)

The project's files that match the pattern, such as
C<< extension/*/*.c >>.

=item EvidenceNode::shared_path($name)

A file of the optional test data (EVIDENCE_SHARED, or folder shared beside
the project); undef when it is not there.

=back

=cut

sub program_path
{
	return $ENV{PG_EVIDENCE} // "$project/uploader/pg_evidence";
}

sub tool_path
{
	my ($name) = @_;

	return "$project/test/tools/$name";
}

sub source_files
{
	my ($pattern) = @_;

	return glob "$project/$pattern";
}

sub shared_path
{
	my ($name) = @_;
	my $folder = $ENV{EVIDENCE_SHARED} // "$project/../shared";

	return -r "$folder/$name" ? "$folder/$name" : undef;
}

1;
