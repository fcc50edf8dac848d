# What a real store cannot be brought to do: clocks that differ, keys that
# expire, storms of refusals, a bucket in the host name, a store that keeps no
# metadata and knows no create-only.

use strict;
use warnings;

use Delivery;
use FakeStore;
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(time);

# The client that ObjectStore has, as far as Delivery needs it.
package FakeStore::Client;
our @ISA = ('FakeStore');

sub environment
{
	my ($self) = @_;

	return (
		AWS_ENDPOINT_URL_S3 => $self->endpoint,
		AWS_ACCESS_KEY_ID => 'FAKEACCESSKEY',
		AWS_SECRET_ACCESS_KEY => $self->secret_key,
		AWS_REGION => 'eu-north-1');
}

sub secret_key { return 'made/up+secret'; }

package main;

my $store = FakeStore::Client->new;
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my ($code, $out, $err);

sub attempts
{
	my ($id) = @_;

	return $delivery->value("SELECT attempts FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'archive.upload'");
}

my $id = $delivery->staged;
($code, $out, $err) = $delivery->upload;
is($code, 0, 'a store that is well: exit code') || diag($err);
is($node->export_state($id), 'READY', 'a store that is well: READY');
my ($put) = $store->requests('PUT');
like($put->{headers}{authorization}, qr{/eu-north-1/s3/aws4_request}, 'the region is signed for');
is($put->{headers}{'x-amz-content-sha256'}, $put->{headers}{'x-amz-meta-sha256'}, 'the digest is that of the bytes');
is($put->{headers}{'if-none-match'}, '*', 'the key must not be taken');
$store->clear;

# The clock of this host is wrong, says the store: no archive is to blame.
{
	my $later = strftime('Date: %a, %d %b %Y %H:%M:%S GMT', gmtime(time + 3600));

	$id = $delivery->staged;
	$store->answer(-1, 'PUT', '\.zip', 403, 'RequestTimeTooSkewed', $later);
	($code, $out, $err) = $delivery->upload;
	is($code, 17, 'skewed clock: exit code');
	like($err, qr/clock/i, 'skewed clock: what to look at') || diag($err);
	is(scalar(() = $store->requests('PUT')), 1, 'skewed clock: it is not tried blindly');
	is(attempts($id), 0, 'skewed clock: it does not count');
	($code, $out, $err) = $delivery->run('courier', 'doctor', '--bucket=archive', '--allow-http');
	$store->clear;
	$store->answer(-1, 'GET', '.*', 200, '', $later);
	($code, $out, $err) = $delivery->run('courier', 'doctor', '--bucket=archive', '--allow-http');
	like($out, qr/^warning +clock +this host is 3\d\d\d s behind the store/m, 'doctor tells by how much') || diag($out);
	$store->clear;
	$delivery->drain;
	is($node->export_state($id), 'READY', 'skewed clock: all is well when it is mended');
	$store->clear;
}

# Keys expire while the uploader runs; new ones are taken from the file.
{
	my $keys = $delivery->folder . '/keys';
	my $write = sub {
		open my $file, '>', "$keys.new" or die;
		print $file "[default]\naws_access_key_id = $_[0]\naws_secret_access_key = made/up+secret\naws_session_token = $_[1]\n";
		close $file;
		chmod 0600, "$keys.new";
		rename "$keys.new", $keys or die;
	};

	$write->('FIRSTKEY', 'first-token');
	my $uploader = $delivery->start({}, "--credentials-file=$keys");

	$uploader->wait_for(qr/uploader/);
	$store->answer(1, 'PUT', '\.zip', 403, 'ExpiredToken');
	$id = $delivery->requested;
	$uploader->wait_for(qr/warning: export $id/);
	$write->('SECONDKEY', 'second-token');
	$node->wait_state($id, 'READY');
	my @puts = $store->requests('PUT');
	like($puts[0]{headers}{authorization}, qr/FIRSTKEY/, 'the first keys');
	is($puts[0]{headers}{'x-amz-security-token'}, 'first-token', 'with their token');
	like($puts[-1]{headers}{authorization}, qr/SECONDKEY/, 'the second keys, without being told');
	is($puts[-1]{headers}{'x-amz-security-token'}, 'second-token', 'with theirs');
	is(attempts($id), 0, 'expired keys: it does not count');
	$uploader->signal('TERM');
	is($uploader->end, 0, 'the uploader ends');
	unlike($uploader->said, qr/(first|second)-token/, 'tokens are not shown');
	$store->clear;
}

# A storm of refusals: a few archives are tried, then the uploader pauses.
{
	my @ids = map { $delivery->staged } 1 .. 6;
	my $uploader;
	my $started = time;

	$store->answer(12, 'PUT', '\.zip', 503, 'SlowDown');
	$uploader = $delivery->start({});
	$node->wait_state($_, 'READY') foreach @ids;
	my @puts = $store->requests('PUT');
	is(scalar @puts, 18, 'a storm: every refusal was one request') || diag(scalar @puts);
	like($uploader->said, qr/put off|store answers again/, 'a storm: it paused');
	$uploader->signal('TERM');
	is($uploader->end, 0, 'a storm: and goes on by itself');
	$store->clear;

	# The store says how long.
	$id = $delivery->staged;
	$store->answer(1, 'PUT', '\.zip', 503, 'SlowDown', 'Retry-After: 5');
	($code, $out, $err) = $delivery->upload;
	is($code, 18, 'Retry-After: exit code');
	cmp_ok($delivery->value("SELECT extract(epoch FROM next_attempt_at - now())::int FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'archive.upload'"),
		'>=', 3, 'Retry-After: it is not due before');
	$delivery->drain;
	is($node->export_state($id), 'READY', 'Retry-After: READY');
	$store->clear;
}

# What looks final and is not, and what looks well and is not.
foreach my $case ([ 400, 'RequestTimeout' ], [ 408, 'RequestTimeout' ], [ 409, 'ConditionalRequestConflict' ],
	[ 500, 'InternalError' ], [ 502, 'BadGateway' ])
{
	my ($status, $word) = @$case;

	$id = $delivery->staged;
	$store->answer(1, 'PUT', '\.zip', $status, $word);
	($code, $out, $err) = $delivery->upload;
	is($code, 18, "$status $word: exit code") || diag($err);
	$delivery->drain;
	is($node->export_state($id), 'READY', "$status $word: it is tried again");
	$store->clear;
}
foreach my $case ([ 400, 'EntityTooLarge' ], [ 403, 'InvalidObjectState' ], [ 301, 'PermanentRedirect' ],
	[ 501, 'NotImplemented' ])
{
	my ($status, $word) = @$case;

	$id = $delivery->staged;
	$store->answer(-1, 'PUT', '\.zip', $status, $word, 'Location: http://127.0.0.1:1/');
	($code, $out, $err) = $delivery->upload;
	cmp_ok($code, '>=', 17, "$status $word: exit code") || diag($err);
	like($err, qr/\b$word\b|\b$status\b/, "$status $word: text");
	is($node->export_state($id), 'STAGED', "$status $word: nothing is lost");
	$store->clear;
	$delivery->requeue;
	$delivery->drain;
	is($node->export_state($id), 'READY', "$status $word: READY when it is mended");
	$store->clear;
}

# The bucket in the host name.
{
	my $endpoint = 'http://localhost:' . $store->port;

	$delivery->endpoint($endpoint);
	$id = $delivery->staged;
	($code, $out, $err) = $delivery->upload('--virtual-host');
	is($code, 0, 'virtual host: exit code') || diag($err);
	is($node->export_state($id), 'READY', 'virtual host: READY');
	($put) = $store->requests('PUT');
	is($put->{headers}{host}, 'archive.localhost:' . $store->port, 'virtual host: the host');
	like($put->{target}, qr{^/pg-evidence/$id/}, 'virtual host: the path');
	$delivery->endpoint($store->endpoint);
	$store->clear;
}

is(join("\n", $delivery->secrets), '', 'no secret was printed');

done_testing();
