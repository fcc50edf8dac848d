# pg_evidence download from a real object store: the order of its steps, what
# is on record, and that nothing which is not the archive gets a name.

use strict;
use warnings;

use Delivery;
use EvidencePackage;
use FaultProxy;
use JSON::PP;
use ObjectStore;
use Test::More;

my $store = ObjectStore->new(memory => 1);
my $proxy = FaultProxy->new($store->port);
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my $folder = $delivery->folder;
my ($code, $out, $err);
my $count = 0;

$node->safe_psql('postgres', <<~'SQL');
	CREATE ROLE bob LOGIN;
	SELECT evidence.grant_capability('bob', 'requester');
	SQL

# A download as anna, to a file of its own, whose name is returned last.
sub download
{
	my ($id, @arguments) = @_;
	my $file = "$folder/" . ++$count . '.zip';

	return ($delivery->run('anna', 'download', $id, '--allow-http', "--output=$file", @arguments), $file);
}

# Nothing was kept, neither under that name nor beside it.
sub nothing_kept
{
	my ($file, $name) = @_;

	ok(!-e $file, "$name: no file");
	opendir my $handle, $folder or die;
	is(scalar(grep { /\.part$/ } readdir $handle), 0, "$name: nor a part of one");
	closedir $handle;
	return;
}

sub downloads
{
	my ($id) = @_;

	return $delivery->value("SELECT count(*) FROM evidence.audit_log WHERE action = 'audit_export.open' AND target_id = '$id'");
}

my $file;
my $id = $delivery->staged;
$delivery->drain;

# From end to end.
($code, $out, $err, $file) = download($id);
is($code, 0, 'download: exit code') || diag($err);
package_ok($node, $file, 'download: the package');
is(downloads($id), 1, 'download: on record');
is((stat $file)[2] & 0777, 0600, 'download: the file is private');

# request --output does the same, in one go with a running uploader.
{
	my $uploader = $delivery->start({});

	($code, $out, $err) = $delivery->run('anna', 'request', '--start=2000-01-01', '--end=2000-01-02', '--purpose=test',
		'--allow-http', "--output=$folder/request.zip", '--timeout=120', '--json');
	is($code, 0, 'request --output: exit code') || diag($err);
	is(JSON::PP->new->utf8->decode($out)->{verify}{intact}, JSON::PP::true, 'request --output: intact');
	$uploader->signal('TERM');
	$uploader->end;
}

# Only whoever may, and only with keys.
($code, $out, $err) = $delivery->run('bob', 'download', $id, '--allow-http', "--output=$folder/bob.zip");
is($code, 3, 'somebody else: exit code');
ok(!-e "$folder/bob.zip", 'somebody else: no file');
($code, $out, $err) = $delivery->run('anna', { AWS_ACCESS_KEY_ID => '', AWS_SECRET_ACCESS_KEY => '' },
	'download', $id, '--allow-http', "--output=$folder/keys.zip");
is($code, 13, 'no keys: exit code') || diag($err);
ok(!-e "$folder/keys.zip", 'no keys: no file');
($code, $out, $err) = $delivery->run('anna', { AWS_SECRET_ACCESS_KEY => 'wrong' },
	'download', $id, '--allow-http', "--output=$folder/keys.zip");
is($code, 17, 'wrong keys: exit code') || diag($err);
($code, $out, $err) = $delivery->run('anna', 'download', $id, "--output=$folder/keys.zip");
is($code, 1, 'http is not allowed unasked') || diag($err);

# What the store has is not what the ledger says.  Not a byte is taken before
# the record, and the record is refused.
my $key = $delivery->key_of($id);
my $good = $store->object('archive', $key);
my $sha256 = $good->{headers}{'x-amz-meta-sha256'};
my $before = downloads($id);

foreach my $case (
	[ 'another size', $good->{body} . 'x', 'x-amz-meta-sha256' => $sha256 ],
	[ 'another digest', $good->{body}, 'x-amz-meta-sha256' => '0' x 64 ])
{
	my ($name, $body, %headers) = @$case;

	$store->put('archive', $key, $body, %headers);
	($code, $out, $err, $file) = download($id);
	is($code, 9, "$name: exit code") || diag($err);
	like($err, qr/not the one of the ledger/, "$name: text");
	nothing_kept($file, $name);
}
is(downloads($id), $before, 'what was not handed out is not on record as a download');

# The same size, the right digest in the metadata, and other bytes.
my $other = $good->{body};
substr($other, 100, 1) ^= "\x01";
$store->put('archive', $key, $other, 'x-amz-meta-sha256' => $sha256);
($code, $out, $err, $file) = download($id);
is($code, 9, 'a lie: exit code') || diag($err);
like($err, qr/SHA-256 is another one/, 'a lie: text');
nothing_kept($file, 'a lie');

# No metadata at all: the bytes tell.
$store->put('archive', $key, $good->{body});
($code, $out, $err, $file) = download($id);
is($code, 0, 'no metadata: exit code') || diag($err);
package_ok($node, $file, 'no metadata: the package');
$store->put('archive', $key, $good->{body}, 'x-amz-meta-sha256' => $sha256);

# Cut off on the way: it begins anew, and each beginning is on record.
$delivery->endpoint($proxy->endpoint);
foreach my $fault ([ 'short', 1000 ], ['close'], ['rst'], [ 'status', 503 ], [ 'swallow', 'close' ])
{
	$before = downloads($id);
	$proxy->fault(1, 'GET', $id, @$fault);
	($code, $out, $err, $file) = download($id);
	is($code, 0, "@$fault: exit code") || diag($err);
	package_ok($node, $file, "@$fault: the package");
	cmp_ok(downloads($id), '>', $before, "@$fault: on record");
	$proxy->clear;
}
$proxy->fault(-1, 'GET', $id, 'short', 1000);
($code, $out, $err, $file) = download($id);
is($code, 17, 'cut off each time: exit code');
nothing_kept($file, 'cut off each time');
$proxy->clear;
foreach my $fault (['page'], [ 'redirect', $store->endpoint . "/archive/$key" ])
{
	$proxy->fault(-1, 'GET', $id, @$fault);
	($code, $out, $err, $file) = download($id);
	is($code, 17, "$fault->[0]: exit code") || diag($err);
	nothing_kept($file, $fault->[0]);
	$proxy->clear;
}
$delivery->endpoint($store->endpoint);

# It is gone.
$store->request('DELETE', 'archive', $key);
($code, $out, $err, $file) = download($id);
is($code, 17, 'not in the store: exit code') || diag($err);
like($err, qr/reconcile/, 'not in the store: what to do');
nothing_kept($file, 'not in the store');
$store->put('archive', $key, $good->{body}, 'x-amz-meta-sha256' => $sha256);

# Over, by the clock of the database, although the bytes are still there.
$node->set(clock_offset => '25h');
($code, $out, $err, $file) = download($id);
is($code, 7, 'its time is over: exit code') || diag($err);
nothing_kept($file, 'its time is over');
is($store->object('archive', $key)->{status}, 200, 'though the object is there');
$node->set(clock_offset => '0');
is(join("\n", $delivery->secrets), '', 'no secret was printed');

done_testing();
