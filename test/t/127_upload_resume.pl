# An uploader dies between two parts of one upload, and another one goes on:
# what the store has is not sent again, and what it has lost, or has otherwise
# than it should be, is.  A proxy in front of a real store counts what is sent,
# and lies about the parts where the test wants it to.

use strict;
use warnings;

use Delivery;
use FaultProxy;
use MIME::Base64 qw(encode_base64);
use ObjectStore;
use Test::More;

my $store = ObjectStore->new(memory => 1);
my $proxy = FaultProxy->new($store->port);
my $delivery = Delivery->new($store, lease => 60);
my $node = $delivery->node;
my $folder = $delivery->folder;
my $part_size = 5 * 1024 * 1024;
my @parts = ('--multipart-threshold=1', "--part-size=$part_size");

$delivery->endpoint($proxy->endpoint);

# Random bytes in base64, 64 kB a row, make three parts when they are packed.
{
	my $text = "$folder/text";

	open my $random, '<:raw', '/dev/urandom' or die;
	open my $file, '>', $text or die;
	foreach (1 .. 260)
	{
		read $random, my $bytes, 49152;
		print $file encode_base64($bytes, ''), "\n";
	}
	close $file or die;
	$node->set(redaction => 'off');
	$node->safe_psql('postgres', <<~"SQL");
		CREATE TABLE public.blob (content text);
		COPY public.blob FROM '$text';
		INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
		SELECT now() - interval '1 hour', 'somebody', 'blob.write', content FROM public.blob;
		DROP TABLE public.blob;
		SQL
}

# An export whose upload dies when it comes to that part, and whose lease is
# over.  Returns its id and that of the upload.
sub dead_at
{
	my ($part) = @_;
	my $id = $delivery->staged(filters => '{"action": ["blob.write"]}');
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => "part:$part" }, '--once', @parts);

	$uploader->wait_stopped;
	$uploader->signal('KILL');
	is($uploader->end, -9, "killed at part $part");
	is(sent($id), join(' ', 1 .. $part - 1), "killed at part $part: what was sent before");
	my $upload = $delivery->value("SELECT multipart_id FROM evidence.upload_attempt WHERE export_id = '$id'");

	isnt($upload, '', "killed at part $part: the ledger knows the upload");
	$delivery->pass_time(61);
	$proxy->clear;
	return ($id, $upload);
}

# The numbers of the parts that were sent, in their order.
sub sent
{
	my ($id) = @_;

	return join ' ', map { m{^PUT \S*$id\S*partNumber=(\d+)} ? $1 : () } $proxy->requests;
}

# How many uploads were begun for it.
sub begun
{
	my ($id) = @_;

	return $proxy->count('POST', qr/\Q$id\E\S*\?uploads/);
}

# Another uploader does it; these parts are sent, in so many new uploads.
sub resumed
{
	my ($name, $id, $parts, $begun) = @_;
	my ($code, $out, $err) = $delivery->upload(@parts);

	is($code, 0, "$name: exit code") || diag($err);
	is($node->export_state($id), 'READY', "$name: READY");
	is(sent($id), $parts, "$name: the parts that are sent");
	is(begun($id), $begun, "$name: uploads that are begun");
	is($delivery->faults, '', "$name: the archive is there once, with equal bytes");
	$proxy->clear;
	return;
}

# A store that lists these parts: number, length, and what else it says.
sub listed
{
	my ($id, @listed) = @_;
	my $body = '<ListPartsResult>'
	  . join('', map { "<Part><PartNumber>$_->[0]</PartNumber><Size>$_->[1]</Size>$_->[2]</Part>" } @listed)
	  . '</ListPartsResult>';

	open my $file, '>', "$folder/listing" or die;
	print $file "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: ",
	  length $body, "\r\nConnection: close\r\n\r\n", $body;
	close $file or die;
	$proxy->fault(1, 'GET', "$id.*uploadId", 'answer', "$folder/listing");
	return;
}

# The ETag that the store itself gives for a part.
sub etag
{
	my ($id, $upload, $number) = @_;
	my $body = $store->request('GET', 'archive', $delivery->key_of($id),
		query => { uploadId => $upload })->{body};
	my ($etag) = $body =~ m{<PartNumber>$number</PartNumber>.*?(<ETag>.*?</ETag>)}s;

	return $etag // die "the store has no part $number: $body";
}

{
	my ($id) = dead_at(2);

	resumed('one part is stored', $id, '2 3', 0);
	($id) = dead_at(3);
	resumed('two parts are stored', $id, '3', 0);
}

# Told to end between two parts, it gives the work back at once.
{
	my $id = $delivery->staged(filters => '{"action": ["blob.write"]}');
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => 'part:2' }, @parts);

	$uploader->wait_stopped;
	$uploader->signal('TERM');
	$uploader->signal('CONT');
	is($uploader->end, 0, 'told to end: exit code');
	is($delivery->value("SELECT outcome FROM evidence.upload_attempt WHERE export_id = '$id'"),
		'deferred', 'told to end: given back');
	$delivery->pass_time(3);
	$proxy->clear;
	resumed('told to end', $id, '2 3', 0);
}

# The second one dies too; the third has what both have brought.
{
	my ($id) = dead_at(2);
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => 'part:2' }, '--once', @parts);

	$uploader->wait_stopped;
	$uploader->signal('KILL');
	is($uploader->end, -9, 'the second one is killed');
	is(sent($id), '2', 'the second one has sent what was missing');
	$delivery->pass_time(61);
	$proxy->clear;
	resumed('the third one', $id, '3', 0);
}

# Somebody has ended the upload: the parts are gone with it.
{
	my ($id, $upload) = dead_at(3);

	is($store->request('DELETE', 'archive', $delivery->key_of($id), query => { uploadId => $upload })->{status},
		204, 'the upload is ended');
	resumed('the upload is gone', $id, '1 2 3', 1);
}

# So it is after the parts have been listed.
{
	my ($id, $upload) = dead_at(2);
	my $key = $delivery->key_of($id);
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => 'part' }, '--once', @parts);

	$uploader->wait_stopped;
	is($store->request('DELETE', 'archive', $key, query => { uploadId => $upload })->{status},
		204, 'the upload is ended after the look at its parts');
	$uploader->signal('CONT');
	is($uploader->end, 0, 'the upload vanishes: exit code') || diag($uploader->said);
	is($node->export_state($id), 'READY', 'the upload vanishes: READY');
	is(sent($id), '2 1 2 3', 'the upload vanishes: all parts are sent again');
	is($delivery->faults, '', 'the upload vanishes: the archive is there once, with equal bytes');
	$proxy->clear;
}

# The store has forgotten a part.
{
	my ($id, $upload) = dead_at(3);

	listed($id, [ 2, $part_size, etag($id, $upload, 2) ]);
	resumed('a part is missing', $id, '1 3', 0);
}

# A part of another size was made under other settings.
{
	my ($id, $upload) = dead_at(3);

	is($store->request('PUT', 'archive', $delivery->key_of($id),
			query => { partNumber => 1, uploadId => $upload },
			body => 'x' x ($part_size + 1))->{status},
		200, 'a part is replaced by a longer one');
	resumed('a part of another size', $id, '1 2 3', 1);
}

# A part of other content: a store that keeps digests tells it.
{
	my ($id, $upload) = dead_at(3);
	my $empty = '<ChecksumSHA256>47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=</ChecksumSHA256>';

	listed($id, [ 1, $part_size, etag($id, $upload, 1) . $empty ],
		[ 2, $part_size, etag($id, $upload, 2) ]);
	resumed('a part of other content', $id, '1 3', 0);
}

# A part that is listed and not there: the parts cannot be put together, and
# the next attempt begins anew.
{
	my ($id, $upload) = dead_at(2);
	my ($code, $out, $err);

	listed($id, [ 1, $part_size, etag($id, $upload, 1) ],
		[ 2, $part_size, '<ETag>"00000000000000000000000000000000"</ETag>' ]);
	($code, $out, $err) = $delivery->upload(@parts);
	is($code, 18, 'a part that is not there: exit code') || diag($err);
	like($err, qr/does not put the parts together/, 'a part that is not there: it says so');
	is(sent($id), '3', 'a part that is not there: the one not listed is sent');
	$proxy->clear;
	$delivery->pass_time(10);
	resumed('after that', $id, '1 2 3', 1);
}

done_testing();
