# The client program against a stand-in for the server side
# (lib/mock_schema.sql), which can be made to fail in every way: conflicts
# without end, lost connections, wrong bytes, every error code.

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceNode;
use File::Basename qw(dirname);
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $program = EvidenceNode::program_path();
my $lib = abs_path(dirname(__FILE__)) . '/lib';
my $folder = PostgreSQL::Test::Utils::tempdir();
my $uuid = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
my $unknown = '00000000-0000-0000-0000-000000000000';
my @range = ('--start=2026-11-01T00:00Z', '--end=2026-12-01T00:00Z');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE bare');
$node->psql('postgres', slurp_file("$lib/mock_schema.sql"),
	on_error_die => 1);

# The server is to see the name that the program gives itself.
delete @ENV{qw(PGSERVICE PGPASSWORD PGPASSFILE PGTZ PGAPPNAME)};
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';

sub run_program
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ $program, @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

sub scalar_of
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Counters start again.
my $reset = <<'SQL';
ALTER SEQUENCE evidence.mock_calls RESTART;
ALTER SEQUENCE evidence.mock_grants RESTART;
ALTER SEQUENCE evidence.mock_losses RESTART;
TRUNCATE evidence.mock_grant;
SQL

sub reset_mock
{
	scalar_of($reset);
	return;
}

sub new_export
{
	my (%columns) = @_;
	my $names = join ', ', sort keys %columns;
	my $values = join ', ', map { "'$columns{$_}'" } sort keys %columns;

	return scalar_of("INSERT INTO evidence.mock_export ($names)"
		  . " VALUES ($values) RETURNING id");
}

# Connecting.
{
	my ($code, $out, $err) = run_program('list', '-d', 'bare');
	is($code, 15, 'no extension: exit code');
	like($err, qr/not installed in database "bare".*CREATE EXTENSION/s,
		'no extension: text and hint');

	($code, $out, $err) = run_program('list', '-d', 'nowhere');
	is($code, 2, 'no database: exit code');

	scalar_of(q{ALTER DATABASE postgres SET mock.version = '1.1'});
	($code, $out, $err) = run_program('list');
	is($code, 15, 'other minor version: exit code');
	like($err, qr/program is of version 1\.0, extension .* of version 1\.1/,
		'other minor version: text');
	scalar_of(q{ALTER DATABASE postgres SET mock.version = '1.0.3'});
	is((run_program('list'))[0], 0, 'other patch version fits');
	scalar_of(q{ALTER DATABASE postgres SET mock.version = '11.0'});
	is((run_program('list'))[0], 15, 'a longer number does not fit');
	scalar_of('ALTER DATABASE postgres RESET mock.version');

	scalar_of('CREATE ROLE nobody LOGIN');
	($code, $out, $err) = run_program('list', '-U', 'nobody');
	is($code, 3, 'no right: exit code');
	like($err, qr/HINT: .*grant_capability\('nobody', 'requester'\)/,
		'no right: hint');

	append_to_file("$folder/service.conf", "[audit]\nhost="
		  . $node->host . "\nport=" . $node->port . "\ndbname=postgres\n");
	local $ENV{PGSERVICEFILE} = "$folder/service.conf";
	local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ('/nonexistent', 1, 'nowhere');
	is((run_program('list', '-d', 'service=audit'))[0],
		0, 'service file by -d');
	delete local @ENV{qw(PGHOST PGPORT PGDATABASE)};
	local $ENV{PGSERVICE} = 'audit';
	is((run_program('list'))[0], 0, 'service file by PGSERVICE');
}

# Passwords: from the environment, a file, the terminal; never without -w.
{
	scalar_of(q{CREATE ROLE auditor LOGIN PASSWORD 'correct horse';}
		  . 'GRANT USAGE ON SCHEMA evidence TO auditor;'
		  . 'GRANT SELECT ON ALL TABLES IN SCHEMA evidence TO auditor');
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $old = slurp_file($hba);

	unlink $hba;
	append_to_file($hba, "local all auditor scram-sha-256\n$old");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_hba_file_rules"
		  . " WHERE user_name = '{auditor}'");

	my ($code, $out, $err) = run_program('list', '-U', 'auditor', '-w');
	is($code, 2, 'password missing: exit code');
	like($err, qr/no password supplied/, 'password missing: text');
	{
		local $ENV{PGPASSWORD} = 'correct horse';
		is((run_program('list', '-U', 'auditor'))[0], 0, 'PGPASSWORD');
		local $ENV{PGPASSWORD} = 'wrong';
		($code, $out, $err) = run_program('list', '-U', 'auditor');
		is($code, 2, 'wrong password: exit code');
		unlike($err, qr/wrong/, 'the password is not repeated');
	}
	append_to_file("$folder/pgpass", "*:*:*:auditor:correct horse\n");
	chmod 0600, "$folder/pgpass";
	local $ENV{PGPASSFILE} = "$folder/pgpass";
	is((run_program('list', '-U', 'auditor'))[0], 0, 'password file');
	$ENV{PGPASSFILE} = '/nonexistent';

	my $ask = <<'PYTHON';
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
try:
    while data := os.read(terminal, 1000):
        seen += data
        if seen.endswith(b"Password: "):
            os.write(terminal, b"correct horse\n")
except OSError:
    pass
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
	IPC::Run::run(
		[ 'python3', '-c', $ask, $program, 'list', '-U', 'auditor' ],
		'<', \undef, '>', \$out, '2>', \$err);
	is($? >> 8, 0, 'password asked for on the terminal');
	unlike($out, qr/horse/, 'the password is not echoed');

	unlink $hba;
	append_to_file($hba, $old);
	$node->reload;
}

# Requesting.
{
	my ($code, $out, $err) =
	  run_program('request', @range, '--purpose=plain');
	is($code, 0, 'request: exit code');
	like($out, qr/^$uuid\n$/, 'request prints the id and nothing else');
	like($err, qr/wait $uuid/, 'request tells how to wait');
	chomp $out;
	is( scalar_of(
			"SELECT source, start_at = '2026-11-01Z', filters, columns,"
			  . " key ~ '^cli-[0-9a-f]{32}\$' FROM evidence.mock_export"
			  . " WHERE id = '$out'"),
		'audit_log|t|{}||t',
		'request sends defaults and a key of its own');

	($code, $out, $err) = run_program(
		'request', @range, '--purpose=all', '--source=payments',
		'--key=my key', '--filter=tenant_id=b"\\', '--filter=action=x.*',
		"--filter=tenant_id=\xc3\xa4=1", '--columns=id,odd "one"', '-q');
	is($code, 0, 'request with everything: exit code');
	is($err, '', '--quiet: nothing on standard error');
	chomp $out;
	is( scalar_of(
			"SELECT source, key, filters = "
			  . q{'{"action": ["x.*"], "tenant_id": ["b\"\\\\", "ä=1"]}',}
			  . q{ columns = ARRAY['id', 'odd "one"']}
			  . " FROM evidence.mock_export WHERE id = '$out'"),
		'payments|my key|t|t',
		'request sends source, key, filters and columns');

	($code, $out, $err) = run_program('request', @range, '--purpose=x',
		'--filters={"outcome": ["denied"]}', '--json');
	is($code, 0, 'request --json: exit code');
	my $document = JSON::PP->new->decode($out);
	is($document->{export}{state}, 'QUEUED', 'request --json: state');
	is( $document->{export}{start_at},
		'2026-11-01T00:00:00.000000Z',
		'request --json: times in UTC');

	($code, $out, $err) = run_program('request', '--start=yesterdayish',
		'--end=today', '--purpose=x');
	is($code, 4, 'a time that is none: exit code');
}

# The bounded retry of a whole transaction.
foreach my $state ('40001', '40P01', '55P03')
{
	reset_mock();
	my ($code, $out, $err) =
	  run_program('request', @range, "--purpose=conflict $state 3");
	is($code, 0, "three times $state: exit code");
	is(scalar_of('SELECT last_value FROM evidence.mock_calls'),
		4, "three times $state: four attempts");
}
{
	reset_mock();
	my ($code, $out, $err) =
	  run_program('request', @range, '--purpose=conflict 40001 1000', '--json');
	is($code, 14, '40001 without end: exit code');
	is(scalar_of('SELECT last_value FROM evidence.mock_calls'),
		8, '40001 without end: eight attempts');
	is(JSON::PP->new->decode($out)->{error}{sqlstate},
		'40001', '40001 without end: code in JSON');

	# Nobody knows whether a lost commit went through: the same key tells.
	reset_mock();
	my $log = -s $node->logfile;
	($code, $out, $err) = run_program('request', @range, '--purpose=lose 2');
	is($code, 0, 'connection lost twice: exit code');
	my %keys;
	my @seen =
	  slurp_file($node->logfile, $log) =~ /mock request with key (cli-\w+)/g;
	$keys{$_} = 1 foreach @seen;
	is(scalar @seen, 3, 'connection lost twice: three attempts');
	is(scalar keys %keys, 1, 'connection lost twice: one key');

	reset_mock();
	($code, $out, $err) =
	  run_program('request', @range, '--purpose=lose 1000');
	is($code, 2, 'connection lost again and again: exit code');
}

# Every SQLSTATE has its exit code.
my %codes = (
	'22023' => 4, '42501' => 3, '53400' => 5, '55000' => 6,
	'PE001' => 8, 'PE002' => 5, 'PE003' => 7, 'PE005' => 6,
	'PE006' => 9, 'PE007' => 16, 'XX000' => 70, '57014' => 70);

foreach my $state (sort keys %codes)
{
	my ($code, $out, $err) =
	  run_program('request', @range, "--purpose=code $state", '--json');
	my $error = JSON::PP->new->decode($out)->{error};

	is($code, $codes{$state}, "$state: exit code");
	is("$error->{exit_code} $error->{sqlstate}",
		"$codes{$state} $state", "$state: in JSON");
	like(
		$err,
		qr/^pg_evidence: error: could not request the export: mock failure $state\nDETAIL:  Mock detail\.\nHINT:  Mock hint\.\n$/,
		"$state: for people");
}

# Waiting.
my %ends = (READY => 0, FAILED => 10, CANCELLED => 11, EXPIRED => 7,
	REVOKED => 7);

foreach my $state (sort keys %ends)
{
	my $id = new_export(state => $state, error_message => 'too many rows',
		error_code => 'PE002', error_hint => 'Ask for less.');
	my ($code, $out, $err) = run_program('wait', $id);

	is($code, $ends{$state}, "wait for $state: exit code");
	like($err, qr/has failed: too many rows\nHINT:  Ask for less\./,
		'wait for FAILED: reason and hint')
	  if $state eq 'FAILED';
}
{
	my $id = new_export(ready_after => '1.5 seconds');
	my ($code, $out, $err) = run_program('wait', $id);
	is("$code $out", "0 READY\n", 'wait until it is ready');
	unlike($err, qr/[\r#]/, 'no progress bar without a terminal');

	$id = new_export(ready_after => '1 hour');
	my $before = time;
	($code, $out, $err) = run_program('wait', $id, '--timeout=1', '--json');
	is($code, 12, 'wait --timeout: exit code');
	ok(time - $before < 10, 'wait --timeout: in time');
	is(JSON::PP->new->decode($out)->{error}{export_id},
		$id, 'wait --timeout: id in JSON');
	is((run_program('wait', $unknown))[0], 3, 'wait for an unknown id');

	# A restart of the server in between is only a pause.
	$id = new_export(state => 'PROCESSING');
	my ($wait_out, $wait_err) = ('', '');
	my $wait = IPC::Run::start([ $program, 'wait', $id ],
		'<', \undef, '>', \$wait_out, '2>', \$wait_err);
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity"
		  . " WHERE application_name = 'pg_evidence'");
	$node->restart;
	scalar_of("UPDATE evidence.mock_export SET state = 'READY'"
		  . " WHERE id = '$id'");
	$wait->finish;
	is(($? >> 8) . " $wait_out", "0 READY\n", 'wait survives a restart');
	like($wait_err, qr/connecting again/, 'wait tells of the restart');

	# A server that hangs does not outlast the timeout.
	$id = new_export(state => 'PROCESSING');
	$wait = IPC::Run::start([ $program, 'wait', $id, '--timeout=4' ],
		'<', \undef, '>', \$wait_out, '2>', \$wait_err);
	my $backend = "SELECT pid FROM pg_stat_activity"
	  . " WHERE application_name = 'pg_evidence'";
	$node->poll_query_until('postgres', "SELECT EXISTS ($backend)");
	my $pid = scalar_of($backend);
	kill 'STOP', $pid;
	$before = time;
	$wait->finish;
	is($? >> 8, 12, 'wait --timeout on a hanging server: exit code');
	ok(time - $before < 30, 'wait --timeout on a hanging server: in time');
	kill 'CONT', $pid;

	# Polling leaves no transaction open.
	$id = new_export(state => 'PROCESSING');
	$wait = IPC::Run::start([ $program, 'wait', $id ],
		'<', \undef, '>', \$wait_out, '2>', \$wait_err);
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity"
		  . " WHERE application_name = 'pg_evidence' AND state = 'idle'");
	is( scalar_of("SELECT count(*) FROM pg_stat_activity"
			  . " WHERE state LIKE 'idle in transaction%'"),
		0, 'no transaction is open while waiting');
	$wait->kill_kill;
}

# The progress bar, on a terminal.
{
	my $id = new_export(ready_after => '2 seconds', record_count => 1000);
	my $show = <<'PYTHON';
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while data := os.read(terminal, 1000):
        sys.stdout.buffer.write(data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
	my $out = '';
	IPC::Run::run([ 'python3', '-c', $show, $program, 'wait', $id ],
		'<', \undef, '>', \$out);
	like(
		$out,
		qr{\r\[[#-]{16}\] +[\d.]+ %  PROCESSING  420/1000 rows  71k/s  3-5 s left\033},
		'the bar tells percent, state, rows, rate and the time left');
	like($out, qr/\r\n.*ready: 1000 records/, 'the bar ends with its line');

	# A bar that wraps cannot be written over.
	$show =~ s/execv\(/execvp(/;
	IPC::Run::run(
		[
			'python3', '-c', $show, 'sh', '-c',
			'stty columns 40; exec "$@"', 'sh',
			$program, 'wait', new_export(ready_after => '1 second')
		],
		'<', \undef, '>', \$out);
	my @lines = $out =~ /\r([^\r\n]*)\033\[K/g;
	ok(@lines > 0 && !(grep { length > 39 } @lines),
		'the bar fits a narrow terminal');
}

# list, show, cancel.
{
	scalar_of('DELETE FROM evidence.mock_export');
	my ($code, $out, $err) = run_program('list');
	is("$code:$out", '0:', 'nothing to list');

	my @ids = map { new_export(purpose => "number $_") } 1 .. 3;
	my $odd = new_export(purpose => "a\033[2J\xe2\x80\xaeb",
		state => 'FAILED', error_code => 'PE002');
	($code, $out, $err) = run_program('list', '--json');
	my $exports = JSON::PP->new->utf8->decode($out)->{exports};
	is(join(' ', map { $_->{id} } @$exports),
		join(' ', $odd, reverse @ids), 'list: newest first');
	is($exports->[0]{error}{code}, 'PE002', 'list: error in JSON');
	is($exports->[0]{purpose}, "a\033[2J\x{202e}b", 'list: purpose in JSON');
	is($exports->[1]{error}, undef, 'list: no error in JSON');
	($code, $out, $err) = run_program('list', '--limit=2', '--state=QUEUED');
	like($out, qr/number 3.*number 2/s, 'list --limit --state');
	unlike($out, qr/number 1|FAILED/, 'list --limit --state: no more');
	($code, $out, $err) = run_program('show', $odd);
	like($out, qr/^purpose +a<U\+001B>\[2J<U\+202E>b$/m,
		'a purpose cannot play with the terminal');
	($code, $out, $err) = run_program('show', $odd, '--json');
	is(JSON::PP->new->utf8->decode($out)->{export}{id},
		$odd, 'show --json');
	($code, $out, $err) = run_program('show', $unknown);
	is($code, 3, 'show of an unknown id: exit code');
	like($err, qr/does not exist or is not yours/,
		'show of an unknown id: text');

	($code, $out, $err) = run_program('cancel', $ids[0], '--reason=mistake');
	is("$code $out", "0 CANCELLED\n", 'cancel prints the state');
	($code, $out, $err) =
	  run_program('cancel', $ids[1], '--reason=code 55000');
	is($code, 6, 'cancel of a ready export: exit code');
	($code, $out, $err) = run_program('cancel', $ids[1], '--reason=lose');
	is($code, 2, 'cancel with a lost connection: exit code');
	like($err, qr/may have been cancelled all the same/,
		'cancel with a lost connection: hint');
}

# Downloading.
IPC::Run::run([ 'python3', '-c', <<'PYTHON', $lib, $folder ]) or die;
import sys
sys.path.insert(0, sys.argv[1])
import package_maker as m
def write(name, case):
    package = m.Package()
    case(package)
    open(f"{sys.argv[2]}/{name}", "wb").write(package.file())
write("good.zip", lambda p: None)
write("forged.zip", m.CASES["one_letter_changed"][0])
PYTHON
my $export_id = '0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f';
my $good = slurp_binary("$folder/good.zip");
my $chunk = 16;
my $chunks = int((length($good) + $chunk - 1) / $chunk);

ok($chunks > 70, 'the package has several pages of chunks');

sub slurp_binary
{
	my ($path) = @_;

	open my $file, '<:raw', $path or die "$path: $!";
	local $/ = undef;
	return scalar <$file>;
}

# store(archive, column => value, ...): export of these bytes, READY.
sub store
{
	my ($archive, %columns) = @_;
	my $id = delete $columns{id} // $export_id;
	my $hex = unpack 'H*', $archive;
	my $changes = join '', map {
		"UPDATE evidence.mock_export SET $_ = '$columns{$_}'"
		  . " WHERE id = '$id';"
	} sort keys %columns;

	scalar_of(<<"SQL");
$reset
DELETE FROM evidence.mock_export WHERE id = '$id';
DELETE FROM evidence.mock_chunk WHERE export_id = '$id';
INSERT INTO evidence.mock_export (id, purpose) VALUES ('$id', 'download');
SELECT evidence.mock_store('$id', '\\x$hex', $chunk);
$changes
SQL
	return;
}

sub folder_is
{
	my ($expected, $name) = @_;

	opendir my $handle, "$folder/out" or die;
	my @files = sort grep { !/^\.\.?$/ } readdir $handle;
	is("@files", $expected, $name);
	return;
}

mkdir "$folder/out";
{
	store($good);
	my ($code, $out, $err) =
	  run_program('download', $export_id, '-o', "$folder/out");
	is($code, 0, 'download: exit code') or diag($err);
	is( $out, "$folder/out/evidence-$export_id.zip\n",
		'download prints the file name');
	chomp $out;
	ok(slurp_binary($out) eq $good, 'download: same bytes');
	is((stat $out)[2] & 0777, 0600, 'download: private');
	folder_is("evidence-$export_id.zip", 'download: nothing else is left');
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		1, 'download: one grant');

	# An existing file is kept, and nothing is recorded in vain.
	reset_mock();
	append_to_file($out, 'more');
	my $out_name = $out;
	($code, undef, $err) =
	  run_program('download', $export_id, '-o', "$folder/out");
	is($code, 13, 'existing file: exit code');
	like($err, qr/exists already\nHINT: .*--force/, 'existing file: text');
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		0, 'existing file: no grant');
	is( (run_program('request', @range, '--purpose=plain', '-o', $out_name))[0],
		13, 'existing file: nothing is requested');
	is(scalar_of('SELECT is_called FROM evidence.mock_calls'),
		'f', 'existing file: no call');
	is((run_program('download', $export_id, '-o', "$folder/no/where.zip"))[0],
		13, 'no folder: exit code');
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		0, 'no folder: no grant');
	($code, $out, $err) = run_program('download', $export_id, '-o',
		"$folder/out", '--force', '--json', '--reason=once more');
	is($code, 0, '--force: exit code');
	my $document = JSON::PP->new->decode($out);
	ok(slurp_binary($document->{file}) eq $good, '--force: replaced');
	is($document->{verify}{intact}, JSON::PP::true, 'JSON: intact');
	is($document->{export}{id}, $export_id, 'JSON: export');
	is(scalar_of('SELECT reason FROM evidence.mock_grant'),
		'once more', '--reason is sent');
	unlike("$out$err", qr/grant-\d/, 'the grant is not shown');

	unlink glob "$folder/out/*";
}

# Whatever is wrong with the bytes, no file is left.
my %wrong = (
	'stream ends early' => { fetch_mode => 'stop', fetch_at => 40 },
	'stream ends at a page' => { fetch_mode => 'stop', fetch_at => 32 },
	'no chunk at all' => { fetch_mode => 'stop', fetch_at => 0 },
	'chunk left out' => { fetch_mode => 'skip', fetch_at => 5 },
	'empty chunk' => { fetch_mode => 'empty', fetch_at => 5 },
	'null chunk' => { fetch_mode => 'null', fetch_at => 5 },
	'one bit flipped' => { fetch_mode => 'flip', fetch_at => 40 },
	'byte too many' => { fetch_mode => 'grow', fetch_at => $chunks - 1 },
	'ledger says another hash' => { archive_sha256 => 'ab' x 32 },
	'ledger says too few bytes' => { archive_bytes => 100 },
	'ledger says too many bytes' => { archive_bytes => 1000000 },
	'server says so' => { fetch_mode => 'code PE006', fetch_at => 3 });

foreach my $name (sort keys %wrong)
{
	store($good, %{ $wrong{$name} });
	my ($code, $out, $err) = run_program('download', $export_id, '-o',
		"$folder/out/x.zip", '--json');
	is($code, 9, "$name: exit code");
	like($err, qr/error: /, "$name: text");
	is(JSON::PP->new->decode($out)->{error}{status},
		'mismatch', "$name: JSON");
	folder_is('', "$name: no file");
}
{
	store(slurp_binary("$folder/forged.zip"));
	my ($code, $out, $err) =
	  run_program('download', $export_id, '-o', "$folder/out/x.zip");
	is($code, 9, 'forged content with right hash: exit code');
	like($err, qr/not intact: sha256: /, 'forged content: text');
	folder_is('', 'forged content: no file');

	my $other = '11111111-1111-1111-1111-111111111111';
	store($good, id => $other);
	($code, $out, $err) =
	  run_program('download', $other, '-o', "$folder/out/x.zip");
	is($code, 9, 'package of another export: exit code');
	like($err, qr/identity: /, 'package of another export: text');
	folder_is('', 'package of another export: no file');
}

# States in which there is nothing to download.
my %states = (QUEUED => 6, PROCESSING => 6, MERGING => 6, STAGED => 6,
	FAILED => 10, CANCELLED => 11, EXPIRED => 7, REVOKED => 7);

foreach my $state (sort keys %states)
{
	store($good, state => $state);
	is((run_program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		$states{$state}, "download of $state: exit code");
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		0, "download of $state: no grant");
}
{
	store($good);
	is( (run_program('download', $export_id, '-o', "$folder/out/x.zip",
				'--reason=code PE007'))[0],
		16, 'downloads paused: exit code');
	folder_is('', 'downloads paused: no file');
}

# A lost connection goes on where it stopped, with the same grant.
{
	store($good, fetch_mode => 'lose 1', fetch_at => 40);
	my ($code, $out, $err) =
	  run_program('download', $export_id, '-o', "$folder/out/x.zip");
	is($code, 0, 'connection lost: exit code') or diag($err);
	like($err, qr/connection lost after 512 bytes/,
		'connection lost: goes on after the first page');
	ok(slurp_binary("$folder/out/x.zip") eq $good,
		'connection lost: same bytes');
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		1, 'connection lost: one grant');
	unlink "$folder/out/x.zip";

	store($good, fetch_mode => 'lose 1000', fetch_at => 40);
	is((run_program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		2, 'connection lost at one place for ever: exit code');
	folder_is('', 'connection lost for ever: no file');

	# A grant that runs out on the way is asked for anew.
	store($good, fetch_mode => 'expire', fetch_at => 40);
	is((run_program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		0, 'grant runs out: exit code');
	is(scalar_of('SELECT count(*) FROM evidence.mock_grant'),
		2, 'grant runs out: a second one');
	unlink "$folder/out/x.zip";

	# An export that is gone on the way stays gone.
	store($good, fetch_mode => 'code PE003', fetch_at => 40);
	is((run_program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		7, 'gone on the way: exit code');
	folder_is('', 'gone on the way: no file');
}

# Signals and leftovers.
sub temporary
{
	my @found = glob "$folder/out/.x.zip.*.part";

	return @found;
}

foreach my $signal (qw(TERM INT HUP))
{
	store($good, fetch_mode => 'slow');
	my ($out, $err) = ('', '');
	my $download = IPC::Run::start(
		[ $program, 'download', $export_id, '-o', "$folder/out/x.zip" ],
		'<', \undef, '>', \$out, '2>', \$err);
	my $tries = 0;
	usleep(50_000) until temporary() || $tries++ > 400;
	my ($part) = temporary();
	is((stat $part)[2] & 0777, 0600, "SIG$signal: the part is private");
	$download->signal($signal);
	$download->finish;
	is($? & 127, { TERM => 15, INT => 2, HUP => 1 }->{$signal},
		"SIG$signal: ended by it");
	folder_is('', "SIG$signal: no file");
}
{
	# What a killed program left is removed, a running program's is not.
	store($good, fetch_mode => 'slow');
	my ($out, $err) = ('', '');
	my @command =
	  ($program, 'download', $export_id, '-o', "$folder/out/x.zip");
	my $killed = IPC::Run::start(\@command, '<', \undef, '>', \$out,
		'2>', \$err);
	my $tries = 0;
	usleep(50_000) until temporary() || $tries++ > 400;
	$killed->signal('KILL');
	$killed->finish;
	my ($left) = temporary();
	ok(defined $left, 'SIGKILL leaves a part');

	my $running = IPC::Run::start(\@command, '<', \undef, '>', \$out,
		'2>', \$err);
	$tries = 0;
	usleep(50_000)
	  until (grep { $_ ne $left } temporary()) || $tries++ > 400;
	ok(!-e $left, 'the next run removes the part');
	scalar_of("UPDATE evidence.mock_export SET fetch_mode = ''");
	is((run_program(@command[ 1 .. $#command ]))[0],
		0, 'a second download of the same name');
	ok(temporary(), 'it leaves the part of a running program alone');
	$running->signal('TERM');
	$running->finish;
	folder_is('x.zip', 'one file, no part');
	unlink "$folder/out/x.zip";

	# A disk that is full, or a limit on the size of files.
	store($good . "\0" x 4096, archive_sha256 => 'ab' x 32);
	IPC::Run::run(
		[ 'sh', '-c', 'ulimit -f 1; exec "$@"', 'sh', @command ],
		'<', \undef, '>', \$out, '2>', \$err);
	is($? >> 8, 13, 'file too large: exit code');
	like($err, qr/could not write file .*: File too large/,
		'file too large: text');
	folder_is('', 'file too large: no file');
}

# Everything at once.
{
	reset_mock();
	my ($code, $out, $err) = run_program('request', @range,
		'--purpose=timed', '-o', "$folder/out/y.zip", '--timeout=1');
	is($code, 12, 'request --output --timeout: exit code');
	like($out, qr/^$uuid\n$/, 'the id is printed before waiting');
	folder_is('', 'request --output --timeout: no file');
}

$node->stop;
done_testing();
