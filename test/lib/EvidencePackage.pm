
=pod

=head1 NAME

EvidencePackage - looks into evidence packages, for TAP tests

=head1 SYNOPSIS

  use EvidencePackage;

  package_ok($node, $zip, 'the package');
  cells_ok($node, $zip, $where, 'the package');
  my $manifest = manifest_of($zip);
  my $records = records_of($zip);

=head1 DESCRIPTION

None of this shares code with the extension: archives are opened by common
unpackers, records are read by Python, and rows are taken from the table with
SQL that a test writes itself.

=cut

package EvidencePackage;

use strict;
use warnings;

use EvidenceNode;
use Exporter 'import';
use IPC::Run;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(bytes_of cells_ok export_hostile_rows export_host_events
  manifest_of member_of package_ok packed_member_of query_to_file records_of
  reference_ok rows_to_file run_script run_tool);

# Columns of the log that may be exported, in their order.
our @columns = qw(id created_at tenant_id actor_id actor_role action
  target_type target_id outcome error_code request_id source_fingerprint
  summary);

my $rows_files = 0;

=pod

=head1 FUNCTIONS

=over

=item run_tool(command, argument, ...)

Runs a program; returns whether it ended with 0, and all it printed.

=cut

sub run_tool
{
	my (@command) = @_;
	my $output = '';
	my $good = IPC::Run::run(\@command, '<', \undef, '>&', \$output);

	return ($good, $output);
}

=pod

=item member_of($zip, $name)

The bytes of one member of a package.

=item packed_member_of($zip, $name)

The same bytes as they stand in the archive.

=item bytes_of($file)

The bytes of a file.

=cut

sub member_of
{
	my ($zip, $name) = @_;
	my $bytes = '';

	IPC::Run::run([ 'unzip', '-p', $zip, $name ], '>', \$bytes)
	  or die "could not unpack $name of $zip";
	return $bytes;
}

sub packed_member_of
{
	my ($zip, $name) = @_;
	my $script = <<~'PYTHON';
		import sys, zipfile
		with zipfile.ZipFile(sys.argv[1]) as package, open(sys.argv[1], "rb") as file:
		    member = package.getinfo(sys.argv[2])
		    file.seek(member.header_offset + 30 + len(sys.argv[2]))
		    sys.stdout.buffer.write(file.read(member.compress_size))
		PYTHON
	my $bytes = '';

	IPC::Run::run([ 'python3', '-c', $script, $zip, $name ], '>', \$bytes)
	  or die "could not read $name of $zip";
	return $bytes;
}

sub bytes_of
{
	my ($file) = @_;

	open my $handle, '<:raw', $file or die "could not open $file: $!";
	local $/ = undef;
	my $bytes = <$handle>;
	close $handle;
	return $bytes;
}

=pod

=item manifest_of($zip)

The manifest as Perl data.

=item records_of($zip)

The records as a list of hashes by column name, with every value as text;
NULL and empty text look alike here.

=cut

sub manifest_of
{
	my ($zip) = @_;

	return JSON::PP->new->utf8->decode(member_of($zip, 'manifest.json'));
}

sub records_of
{
	my ($zip) = @_;
	my $script = <<~'PYTHON';
		import csv, io, json, sys, zipfile
		csv.field_size_limit(1 << 30)
		text = zipfile.ZipFile(sys.argv[1]).read("records.csv").decode("utf-8")
		json.dump(list(csv.DictReader(io.StringIO(text, newline=""))), sys.stdout)
		PYTHON
	my $output = '';

	IPC::Run::run([ 'python3', '-c', $script, $zip ], '>', \$output)
	  or die "could not read the records of $zip";
	return JSON::PP->new->utf8->decode($output);
}

=pod

=item rows_to_file($node, $where, column, ...)

Writes the rows of the log that the condition selects, in the order of an
export, as a JSON array for the reference reader; returns the file's name.
All exportable columns unless told otherwise.  The server writes the file, so
that no client can lose a character; from a SQL_ASCII database text goes there
byte by byte.

=cut

sub rows_to_file
{
	my ($node, $where, @wanted) = @_;
	my $path =
	  PostgreSQL::Test::Utils::tempdir() . '/rows' . ++$rows_files . '.json';
	my %text = (
		id => 'id::text',
		created_at => q{to_char(created_at AT TIME ZONE 'UTC',}
		  . q{ 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
	my $text = '%s';

	$text = q{CASE WHEN %1$s IS NOT NULL THEN}
	  . q{ json_build_object('hex', encode(convert_to(%1$s, 'SQL_ASCII'), 'hex')) END}
	  if $node->safe_psql('postgres', 'SHOW server_encoding') eq 'SQL_ASCII';
	my $object = join ', ',
	  map { "'$_', " . ($text{$_} // sprintf $text, $_) }
	  @wanted ? @wanted : @columns;

	query_to_file($node, $path, <<~"SQL");
		SELECT coalesce(json_agg(json_build_object($object)
		                         ORDER BY created_at, id), '[]')
		  FROM evidence.audit_log WHERE $where
		SQL
	return $path;
}

=pod

=item query_to_file($node, $path, $sql)

Has the server write the one text value of a query to a file, in UTF-8 and
without a line end.

=cut

sub query_to_file
{
	my ($node, $path, $sql) = @_;

	$node->safe_psql('postgres', <<~"SQL");
		SELECT lo_from_bytea(54321, convert_to(($sql)::text, 'UTF8'));
		SELECT lo_export(54321, '$path');
		SELECT lo_unlink(54321);
		SQL
	return;
}

=pod

=item reference_ok($zip, $rows, $name, option, ...)

Tests that the reference reader finds the package in order and its cells equal
to those of the file of rows.  More options of the reader may follow.

=item cells_ok($node, $zip, $where, $name, column, ...)

The same with the rows that the condition selects.

=cut

sub reference_ok
{
	my ($zip, $rows, $name, @options) = @_;
	my ($good, $output) = run_tool('python3',
		EvidenceNode::tool_path('../foreign/reference_reader.py'),
		$zip, '--table', $rows, @options);

	return ok($good, "$name: every cell is that of the table")
	  || diag(substr $output, 0, 4000);
}

sub cells_ok
{
	my ($node, $zip, $where, $name, @wanted) = @_;

	return reference_ok($zip, rows_to_file($node, $where, @wanted), $name);
}

=pod

=item package_ok($node, $zip, $name)

Tests that every unpacker at hand, the program and the server find the archive
in order.

=cut

sub package_ok
{
	my ($node, $zip, $name) = @_;
	my $python = 'import sys, zipfile;'
	  . ' sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)';
	my @faults;
	my $try = sub {
		my ($who, $good, $output) = @_;
		push @faults, "$who: " . substr $output, 0, 2000 unless $good;
	};

	$try->('unzip', run_tool('unzip', '-tq', $zip));
	$try->('7z', run_tool('7z', 't', '-bd', $zip));
	$try->('zipfile', run_tool('python3', '-c', $python, $zip));
	$try->('headers',
		run_tool('python3', EvidenceNode::shared_path('tools/zipcheck.py'),
			$zip))
	  if defined EvidenceNode::shared_path('tools/zipcheck.py');

	my ($code, $out, $err) = $node->program('verify', $zip);
	$try->('program', $code == 0, "exit code $code $out $err");

	my $id = manifest_of($zip)->{export_id};
	my $wrong = $node->safe_psql('postgres',
		"SELECT * FROM evidence.verify_audit_export('$id') WHERE NOT ok");
	$try->('server', $wrong eq '', $wrong);

	return is(join("\n", @faults), '',
		"C34: $name: unpackers, program and server find it in order");
}

=pod

=item run_script($node, $file, psql option, ...)

Runs a file of SQL as superuser; any error ends the test.

=item export_hostile_rows($node, $zip)

Loads the rows that were made to do harm and exports exactly them; returns
the id of the export and the condition that selects the rows.

=item export_host_events($node, $zip, $events)

The same with events of many machines, some of which hold secrets; they are
in table planted.

=cut

sub run_script
{
	my ($node, $file, @options) = @_;
	local %ENV = $node->_get_env(PGDATABASE => 'postgres');
	my ($good, $output) = run_tool('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1',
		@options, '-f', $file);

	die "$file: $output" unless $good;
	return;
}

sub export_hostile_rows
{
	my ($node, $zip) = @_;
	my $where = q{request_id ~ '^C\d\d-' AND created_at < now()};

	run_script($node, EvidenceNode::tool_path('../data/hostile_rows.sql'));
	my $tenants = $node->safe_psql('postgres',
		"SELECT json_agg(DISTINCT tenant_id) FROM evidence.audit_log WHERE $where");
	my $id = $node->export(
		purpose => 'hostile rows',
		filters => qq({"outcome": ["success"], "tenant_id": $tenants}),
		start_at => $node->safe_psql('postgres',
			"SELECT min(created_at) FROM evidence.audit_log WHERE $where"));
	$node->export_to_file($id, $zip);
	return ($id, $where);
}

sub export_host_events
{
	my ($node, $zip, $events) = @_;

	run_script($node, EvidenceNode::tool_path('../data/host_events.sql'),
		'-v', "events=$events");
	my $id = $node->export(
		purpose => 'events of many machines',
		filters => '{"action": ["host.*"]}');
	$node->export_to_file($id, $zip);
	return ($id, q{starts_with(action, 'host.')});
}

=pod

=back

=cut

1;
