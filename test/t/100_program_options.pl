# The command line of the client program: help, usage errors, and that no
# secret can be given on it.  Needs no server.

use strict;
use warnings;

use EvidenceNode;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils ();
use Test::More;

my $program = EvidenceNode::program_path();
my $id = '0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f';
my @range = ('--start=2026-11-01', '--end=2026-11-02', '--purpose=test');

# Nothing here may reach a server that happens to run on this machine.
$ENV{PGHOST} = '/nonexistent';
delete @ENV{qw(PGSERVICE PGDATABASE PGUSER PGPORT PGPASSWORD)};
delete $ENV{$_} foreach grep { /^AWS_/ } keys %ENV;

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

foreach my $command ('',
	qw(request wait list show cancel download verify upload reconcile doctor))
{
	my @words = $command eq '' ? () : ($command);

	($code, $out, $err) = run_program(@words, '--help');
	is($code, 0, "help of \"$command\": exit code");
	is($err, '', "help of \"$command\": nothing on standard error");
	like($out, qr/^Usage:\n  pg_evidence/m, "help of \"$command\": usage");
	like($out, qr/^ +$_  /m, "help of \"$command\": exit code $_")
	  foreach (0 .. 18, 70);
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
	'postgres:///db?password=correct%20horse',
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

# The commands that use an object store.
my @upload = ('upload', '--bucket=b');

foreach my $command (qw(upload reconcile doctor))
{
	usage_error("$command without bucket", 'needs --bucket', $command);
	like($help{$command}, qr/--$_\b/, "help of $command names --$_")
	  foreach qw(bucket prefix endpoint region ca-file allow-http path-style
	  virtual-host credentials-file profile limit-rate config log-format);
}
foreach my $option (qw(once part-size multipart-threshold lock-mode lock-days legal-hold))
{
	like($help{upload}, qr/--$option\b/, "help of upload names --$option");
}
like($help{reconcile}, qr/--$_\b/, "help of reconcile names --$_")
  foreach qw(fix grace);
like($help{doctor}, qr/--apply-lifecycle\b/, 'help of doctor names --apply-lifecycle');

usage_error("prefix \"$_\"", 'a prefix consists of', @upload, "--prefix=$_")
  foreach ('', '/', 'a/', '/a', 'a//b', 'A', 'a b', '../a', 'a%2fb', "a\nb", 'a' x 201);
usage_error("part size \"$_\"", 'option "--part-size"', @upload, "--part-size=$_")
  foreach ('0', '4MB', '8 MB', '8MBs', '-8MB', 'x', '99999999999GB', '');
usage_error("grace \"$_\"", 'needs a time', 'reconcile', '--bucket=b', "--grace=$_")
  foreach ('', 'x', '1w', '-1h', '99999999d');
usage_error('lock mode', 'GOVERNANCE or COMPLIANCE', @upload, '--lock-mode=x', '--lock-days=1');
usage_error('lock mode alone', 'need each other', @upload, '--lock-mode=GOVERNANCE');
usage_error('lock days alone', 'need each other', @upload, '--lock-days=1');
usage_error('log format', '"text" or "json"', @upload, '--log-format=xml');
usage_error('fix an upload', '"--fix" is not used by command "upload"', @upload, '--fix');
usage_error('no such option', 'unknown option "--secret-key"', @upload, "--secret-key=$secret");

# A configuration file: its names, its mistakes, and who wins.
{
	my $file = PostgreSQL::Test::Utils::tempdir() . '/upload.conf';
	my $config = sub {
		open my $handle, '>', $file or die "could not write $file: $!";
		print $handle @_;
		close $handle;
		return;
	};
	local @ENV{qw(AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY)} = ('made-up', 'made-up');

	$config->("# a comment\n\nbucket = b\n  allow-http = on  \nlegal-hold=no\npart-size = 8MB\ngrace = 2h\n");
	($code, $out, $err) = run_program('upload', "--config=$file");
	is($code, 2, 'a configuration that can be used') || diag($err);

	foreach my $case (
		[ "bucket = b\nfrobnicate = 1\n", 'there is no setting of this name', 2 ],
		[ "once = on\n", 'there is no setting of this name', 1 ],
		[ "bucket\n", 'not of the form NAME = VALUE', 1 ],
		[ "bucket = b\nallow-http = perhaps\n", '"on" or "off"', 2 ],
		[ "\n\nlock-days = 0\n", 'needs a number', 3 ],
		[ "part-size = big\n", 'needs a size', 1 ],
		[ "password = $secret\n", 'a secret does not belong here', 1 ],
		[ "aws_secret_access_key = $secret\n", 'a secret does not belong here', 1 ],
		[ "bucket = b\nsession-token = $secret\n", 'a secret does not belong here', 2 ])
	{
		my ($text, $error, $line) = @$case;

		$config->($text);
		($code, $out, $err) = run_program('upload', "--config=$file");
		is($code, 1, "configuration with \"$error\": exit code");
		like($err, qr/\Q$error\E/, "configuration with \"$error\": text");
		like($err, qr/line $line of configuration file "\Q$file\E"/i, "configuration with \"$error\": line");
		unlike($err, qr/horse/, 'no value is repeated');
	}
	$config->("prefix = WRONG\n");
	usage_error('a value of the file', 'a prefix consists of', @upload, "--config=$file");
	($code) = run_program(@upload, "--config=$file", '--prefix=right');
	is($code, 2, 'the command line counts more');
	$config->("dbname = password='$secret'\n");
	usage_error('password in the file', 'password on the command line', @upload, "--config=$file");
	($code, $out, $err) = run_program(@upload, "--config=$file.none");
	is($code, 13, 'no such file: exit code');
	like($err, qr/could not open configuration file/, 'no such file: text');
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
