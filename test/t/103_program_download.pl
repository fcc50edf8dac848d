# The client program downloads from a stand-in for the server side, which can be
# made to send wrong bytes, to lose the connection and to stand still.

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use EvidenceNode;
use File::Basename qw(dirname);
use IPC::Run;
use JSON::PP;
use MockLedger;
use PostgreSQL::Test::Utils;
use Test::More;

my $lib = abs_path(dirname(__FILE__)) . '/lib';
my $folder = PostgreSQL::Test::Utils::tempdir();
my $uuid = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
my @range = ('--start=2026-11-01T00:00Z', '--end=2026-12-01T00:00Z');
my $mock = MockLedger->new;

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

	# First, so that a function that stands still does so no longer.
	$mock->sql("DELETE FROM evidence.mock_export WHERE id = '$id'");
	$mock->reset;
	$mock->sql(<<"SQL");
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
	  $mock->program('download', $export_id, '-o', "$folder/out");
	is($code, 0, 'download: exit code') or diag($err);
	is( $out, "$folder/out/evidence-$export_id.zip\n",
		'download prints the file name');
	chomp $out;
	ok(slurp_binary($out) eq $good, 'download: same bytes');
	is((stat $out)[2] & 0777, 0600, 'download: private');
	folder_is("evidence-$export_id.zip", 'download: nothing else is left');
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		1, 'download: one grant');

	# An existing file is kept, and nothing is recorded in vain.
	$mock->reset;
	append_to_file($out, 'more');
	my $out_name = $out;
	($code, undef, $err) =
	  $mock->program('download', $export_id, '-o', "$folder/out");
	is($code, 13, 'existing file: exit code');
	like($err, qr/exists already\nHINT: .*--force/, 'existing file: text');
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		0, 'existing file: no grant');
	is( ($mock->program('request', @range, '--purpose=plain', '-o', $out_name))[0],
		13, 'existing file: nothing is requested');
	is($mock->sql('SELECT is_called FROM evidence.mock_calls'),
		'f', 'existing file: no call');
	is(($mock->program('download', $export_id, '-o', "$folder/no/where.zip"))[0],
		13, 'no folder: exit code');
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		0, 'no folder: no grant');
	($code, $out, $err) = $mock->program('download', $export_id, '-o',
		"$folder/out", '--force', '--json', '--reason=once more');
	is($code, 0, '--force: exit code');
	my $document = JSON::PP->new->decode($out);
	ok(slurp_binary($document->{file}) eq $good, '--force: replaced');
	is($document->{verify}{intact}, JSON::PP::true, 'JSON: intact');
	is($document->{export}{id}, $export_id, 'JSON: export');
	is($mock->sql('SELECT reason FROM evidence.mock_grant'),
		'once more', '--reason is sent');
	unlike("$out$err", qr/grant-\d/, 'the grant is not shown');

	unlink glob "$folder/out/*";

	# Without --output the file lies where the program runs.
	my $here = getcwd();
	chdir "$folder/out" or die;
	($code, $out, $err) = $mock->program('download', $export_id);
	chdir $here or die;
	is("$code $out", "0 evidence-$export_id.zip\n",
		'download without --output prints the file name');
	ok(slurp_binary("$folder/out/evidence-$export_id.zip") eq $good,
		'download without --output: same bytes');
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
	my ($code, $out, $err) = $mock->program('download', $export_id, '-o',
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
	  $mock->program('download', $export_id, '-o', "$folder/out/x.zip");
	is($code, 9, 'forged content with right hash: exit code');
	like($err, qr/not intact: sha256: /, 'forged content: text');
	folder_is('', 'forged content: no file');

	my $other = '11111111-1111-1111-1111-111111111111';
	store($good, id => $other);
	($code, $out, $err) =
	  $mock->program('download', $other, '-o', "$folder/out/x.zip");
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
	is(($mock->program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		$states{$state}, "download of $state: exit code");
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		0, "download of $state: no grant");
}
{
	store($good);
	is( ($mock->program('download', $export_id, '-o', "$folder/out/x.zip",
				'--reason=code PE007'))[0],
		16, 'downloads paused: exit code');
	folder_is('', 'downloads paused: no file');
}

# A lost connection goes on where it stopped, with the same grant.
{
	store($good, fetch_mode => 'lose 1', fetch_at => 40);
	my ($code, $out, $err) =
	  $mock->program('download', $export_id, '-o', "$folder/out/x.zip");
	is($code, 0, 'connection lost: exit code') or diag($err);
	like($err, qr/connection lost after 512 bytes/,
		'connection lost: goes on after the first page');
	ok(slurp_binary("$folder/out/x.zip") eq $good,
		'connection lost: same bytes');
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		1, 'connection lost: one grant');
	unlink "$folder/out/x.zip";

	store($good, fetch_mode => 'lose 1000', fetch_at => 40);
	is(($mock->program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		2, 'connection lost at one place for ever: exit code');
	folder_is('', 'connection lost for ever: no file');

	# A server that comes back as another version is not asked for more.
	store($good, fetch_mode => 'hold', fetch_at => 40);
	my ($download) = $mock->start_program('download', $export_id, '-o',
		"$folder/out/x.zip");

	$mock->lose_connection_for_good($mock->wait_standing);
	$download->finish;
	is($? >> 8, 15, 'another version after a lost connection: exit code');
	folder_is('', 'another version after a lost connection: no file');
	$mock->sql('ALTER DATABASE postgres RESET mock.version');

	# A grant that runs out on the way is asked for anew.
	store($good, fetch_mode => 'expire', fetch_at => 40);
	is(($mock->program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		0, 'grant runs out: exit code');
	is($mock->sql('SELECT count(*) FROM evidence.mock_grant'),
		2, 'grant runs out: a second one');
	unlink "$folder/out/x.zip";

	# An export that is gone on the way stays gone.
	store($good, fetch_mode => 'code PE003', fetch_at => 40);
	is(($mock->program('download', $export_id, '-o', "$folder/out/x.zip"))[0],
		7, 'gone on the way: exit code');
	folder_is('', 'gone on the way: no file');
}

# Signals and leftovers.  The server stands still in the middle of the archive
# until it is told otherwise.
my @download = ('download', $export_id, '-o', "$folder/out/x.zip");

sub temporary
{
	my @found = glob "$folder/out/.x.zip.*.part";

	return @found;
}

foreach my $signal (qw(TERM INT HUP))
{
	store($good, fetch_mode => 'hold', fetch_at => 40);
	my ($download) = $mock->start_program(@download);

	$mock->wait_standing;
	my ($part) = temporary();
	is((stat $part)[2] & 0777, 0600, "SIG$signal: the part is private");
	$download->signal($signal);
	$download->finish;
	is($? & 127, { TERM => 15, INT => 2, HUP => 1 }->{$signal},
		"SIG$signal: ended by it");
	folder_is('', "SIG$signal: no file");
}
{
	# A file that somebody else makes meanwhile is kept.
	store($good, fetch_mode => 'hold', fetch_at => 40);
	my ($late, undef, $said) = $mock->start_program(@download);

	$mock->wait_standing;
	append_to_file("$folder/out/x.zip", 'first');
	$mock->sql("UPDATE evidence.mock_export SET fetch_mode = ''");
	$late->finish;
	is($? >> 8, 13, 'file made meanwhile: exit code');
	like($$said, qr/could not give file .* its name: File exists/,
		'file made meanwhile: text');
	is(slurp_file("$folder/out/x.zip"), 'first', 'file made meanwhile: kept');
	folder_is('x.zip', 'file made meanwhile: nothing else');
	unlink "$folder/out/x.zip";
}
{
	# What a killed program left is removed, a running program's is not.
	store($good, fetch_mode => 'hold', fetch_at => 40);
	my ($killed) = $mock->start_program(@download);

	$mock->wait_for(sub { temporary() > 0 });
	$killed->signal('KILL');
	$killed->finish;
	my ($left) = temporary();
	ok(defined $left, 'SIGKILL leaves a part');

	my ($running) = $mock->start_program(@download);

	$mock->wait_for(sub { grep { $_ ne $left } temporary() });
	ok(!-e $left, 'the next run removes the part');
	# Stopped it does not come to its end when the server goes on.
	$running->signal('STOP');
	$mock->sql("UPDATE evidence.mock_export SET fetch_mode = ''");
	is(($mock->program(@download))[0],
		0, 'a second download of the same name');
	ok(temporary(), 'it leaves the part of a running program alone');
	$running->signal('TERM');
	$running->signal('CONT');
	$running->finish;
	folder_is('x.zip', 'one file, no part');
	unlink "$folder/out/x.zip";

	# The same once more, and something else under such a name is left alone.
	store($good, fetch_mode => 'hold', fetch_at => 40);
	($killed) = $mock->start_program(@download);
	$mock->wait_for(sub { temporary() > 0 });
	$killed->signal('KILL');
	$killed->finish;
	my $link = '.x.zip.' . '0' x 16 . '.part';
	symlink 'elsewhere', "$folder/out/$link" or die "no link: $!";
	$mock->sql("UPDATE evidence.mock_export SET fetch_mode = ''");
	is(($mock->program(@download))[0], 0, 'a download after a killed one');
	folder_is("$link x.zip", 'the part is gone, the link is not followed');
	unlink "$folder/out/$link", "$folder/out/x.zip";

	# A disk that is full, or a limit on the size of files.
	store($good . "\0" x 4096, archive_sha256 => 'ab' x 32);
	my ($out, $err) = ('', '');
	IPC::Run::run(
		[
			'sh', '-c', 'ulimit -f 1; exec "$@"', 'sh',
			EvidenceNode::program_path(), @download
		],
		'<', \undef, '>', \$out, '2>', \$err);
	is($? >> 8, 13, 'file too large: exit code');
	like($err, qr/could not write file .*: File too large/,
		'file too large: text');
	folder_is('', 'file too large: no file');
}

# Everything at once.
{
	$mock->reset;
	my ($code, $out, $err) = $mock->program('request', @range,
		'--purpose=timed', '-o', "$folder/out/y.zip", '--timeout=1');
	is($code, 12, 'request --output --timeout: exit code');
	like($out, qr/^$uuid\n$/, 'the id is printed before waiting');
	folder_is('', 'request --output --timeout: no file');

	# The name within a folder is that of an export yet to be made.
	($code, $out, $err) = $mock->program('request', @range,
		'--purpose=timed', '-o', "$folder/out", '--timeout=1');
	is($code, 12, 'request into a folder: exit code');
}

$mock->node->stop;
done_testing();
