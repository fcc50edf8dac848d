# The command line of the client program: help, usage errors, and that no
# secret can be given on it.  Needs no server.

use strict;
use warnings;

use EvidenceNode;
use IPC::Run;
use JSON::PP;
use Test::More;

my $program = EvidenceNode::program_path();
my $id = '0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f';
my @range = ('--start=2026-11-01', '--end=2026-11-02', '--purpose=test');

# Nothing here may reach a server that happens to run on this machine.
$ENV{PGHOST} = '/nonexistent';
delete @ENV{qw(PGSERVICE PGDATABASE PGUSER PGPORT PGPASSWORD)};

sub run_program
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ $program, @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# usage_error(name, text, argument...): exit code 1, the text, no output.
sub usage_error
{
	my ($name, $text, @arguments) = @_;
	my ($code, $out, $err) = run_program(@arguments);

	is($code, 1, "$name: exit code");
	like($err, qr/^pg_evidence: error: .*\Q$text\E/, "$name: text");
	like($err, qr/^HINT: /m, "$name: hint");
	is($out, '', "$name: nothing on standard output");
	return;
}

my ($code, $out, $err) = run_program('--version');
is($code, 0, '--version: exit code');
like($out, qr/^pg_evidence \d+\.\d+\n$/, '--version');

# Help of the program and of each command, with every exit code.
my %help;

foreach my $command ('', qw(request wait list show cancel download verify))
{
	my @words = $command eq '' ? () : ($command);

	($code, $out, $err) = run_program(@words, '--help');
	is($code, 0, "help of \"$command\": exit code");
	is($err, '', "help of \"$command\": nothing on standard error");
	like($out, qr/^Usage:\n  pg_evidence/m, "help of \"$command\": usage");
	like($out, qr/^ +$_  /m, "help of \"$command\": exit code $_")
	  foreach (0 .. 16, 70);
	unlike($out, qr/\t|.{81}/, "help of \"$command\": 80 columns, no tabs");
	$help{$command} = $out;
}
is((run_program('list', '-?'))[1], $help{list}, '-? is --help');
is((run_program('--help', 'list'))[1], $help{list}, '--help before a command');
is((run_program('show', '--help'))[0], 0, 'help needs no id');
foreach my $option (
	qw(start end purpose key source filter filters columns
	wait output force timeout))
{
	like($help{request}, qr/--$option\b/, "help of request names --$option");
}

# Usage errors.
usage_error('no command', 'no command given');
usage_error('unknown command', 'unknown command "frobnicate"', 'frobnicate');
usage_error('unknown option', 'unknown option "--frob"', 'list', '--frob=5');
usage_error('unknown letter', 'unknown option "-z"', 'list', '-z');
usage_error('value missing', '"--host" needs a value', 'list', '-h');
usage_error('value too much', '"--json" takes no value', 'list', '--json=x');
usage_error('no id', 'needs an export id', 'show');
usage_error('two ids', 'too many words', 'show', $id, $id);
usage_error('no uuid', 'is not an export id', 'show', '../../etc/passwd');
usage_error('id with braces', 'is not an export id', 'show', "{$id}");
usage_error('no file', 'needs a file', 'verify');
usage_error('foreign option', '"--force" is not used by command "show"',
	'show', $id, '--force');
usage_error('server for verify', '"--host" is not used by command "verify"',
	'verify', 'x.zip', '-h', 'localhost');
usage_error('no range', 'needs --start, --end and --purpose', 'request');
usage_error('no reason', 'needs --reason', 'cancel', $id);
usage_error('empty reason', 'needs --reason', 'cancel', $id, '--reason=');
usage_error('state', 'is not a state', 'list', '--state=DONE');
usage_error('limit 0', 'needs a number from 1', 'list', '--limit=0');
usage_error('limit x', 'needs a number from 1', 'list', '--limit=2x');
usage_error('timeout', 'needs a number from 1', 'wait', $id, '--timeout=-1');
usage_error('timeout alone', 'needs --wait', 'request', @range,
	'--timeout=5');
usage_error('force alone', 'needs --output', 'request', @range, '--force');
usage_error('empty output', 'is empty', 'download', $id, '--output=');
usage_error('filter form', 'KEY=VALUE', 'request', @range, '--filter=action');
usage_error('filter key', 'KEY=VALUE', 'request', @range,
	'--filter=Act ion=x');
usage_error('filter bytes', 'not valid UTF-8', 'request', @range,
	"--filter=action=\xff");
usage_error('many filters', 'more than 1000 filters', 'request', @range,
	('--filter=action=x') x 1001);
usage_error('both filters', 'exclude each other', 'request', @range,
	'--filter=action=x', '--filters={}');

# No secret on the command line, and none repeated in an error.
my $secret = 'correct horse';

foreach my $string (
	"host=localhost password='$secret'",
	'postgresql://user:correct%20horse@localhost/db',
	"postgres:///db?password=$secret",
	"sslpassword='$secret' host=localhost")
{
	usage_error("password in \"$string\"", 'password on the command line',
		'list', '-d', $string);
}
foreach my $arguments (
	[ 'list', '-d', "host=localhost passwrod='$secret'" ],
	[ 'list', '-d', "postgresql://user:$secret\@[/db" ],
	[ 'list', "--password=$secret" ],
	[ 'list', "--pass=$secret" ])
{
	($code, $out, $err) = run_program(@$arguments);
	is($code, 1, "mistyped password in \"@$arguments\": exit code");
	unlike($err . $out, qr/horse/, 'it is not repeated');
}

# With --json an error is one document too.
foreach my $arguments ([ '--json', 'frob' ], [ 'frob', '--json' ],
	[ '--frob', '--json' ])
{
	($code, $out, $err) = run_program(@$arguments);
	is($code, 1, "@$arguments: exit code");
	my $document = JSON::PP->new->decode($out);
	is($document->{error}{exit_code}, 1, 'JSON: exit code');
	is($document->{error}{status}, 'usage', 'JSON: status');
}

# No server, and no file.
($code, $out, $err) = run_program('list');
is($code, 2, 'no server: exit code');
like($err, qr/could not connect to the server: .*nonexistent/,
	'no server: text');
($code, $out, $err) = run_program('list', '--json');
is(JSON::PP->new->decode($out)->{error}{status},
	'connection', 'no server, --json: status');
($code, $out, $err) = run_program('verify', '/nonexistent/x.zip', '--json');
is($code, 13, 'no file: exit code');
is(JSON::PP->new->decode($out)->{error}{status},
	'file', 'no file, --json: status');
like($err, qr/could not open file "\/nonexistent\/x.zip": No such file/,
	'no file: text');
($code, $out, $err) = run_program('verify', '/');
is($code, 13, 'folder instead of a file: exit code');

# A result that cannot be written is no success.
SKIP:
{
	skip 'no /dev/full here', 1 unless -c '/dev/full';
	system("$program --help >/dev/full 2>/dev/null");
	is($? >> 8, 13, 'full standard output: exit code');
}

done_testing();
