# pg_evidence upload from end to end, against a real object store: every way to
# store an archive, its removal, the service, and what it takes of memory.

use strict;
use warnings;

use Delivery;
use Digest::SHA qw(sha256_hex);
use IO::Socket::UNIX;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use ObjectStore;
use PostgreSQL::Test::Utils;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time usleep);

my $store = ObjectStore->new;
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my $folder = $delivery->folder;
my ($code, $out, $err);

# The first line of what HEAD says, by name.
sub head
{
	my ($bucket, $key) = @_;

	return $store->request('HEAD', $bucket, $key)->{headers};
}

sub events
{
	my ($id) = @_;

	return $delivery->value("SELECT string_agg(event, ' ' ORDER BY id) FROM evidence.export_event WHERE export_id = '$id'");
}

# A figure of a process in kB; 0 when it has ended.
sub memory
{
	my ($pid, $figure) = @_;

	open my $file, '<', "/proc/$pid/status" or return 0;
	my ($kilobytes) = map { /^$figure:\s+(\d+) kB/ } <$file>;
	close $file;
	return $kilobytes // 0;
}

# Is the export READY, and are its bytes in the bucket and nowhere else?
sub delivered
{
	my ($id, $name) = @_;
	my $key = $delivery->key_of($id);
	my $object = $store->object($delivery->bucket, $key);

	is($node->export_state($id), 'READY', "$name: the export is READY");
	like($key, qr{^pg-evidence/$id/attempts/[0-9a-f-]{36}\.zip$}, "$name: the key");
	is($object->{status}, 200, "$name: the object is there");
	is(sha256_hex($object->{body}),
		$delivery->value("SELECT archive_sha256 FROM evidence.audit_export WHERE id = '$id'"),
		"$name: its bytes");
	is($object->{headers}{'x-amz-meta-sha256'}, sha256_hex($object->{body}), "$name: its metadata");
	is($delivery->value("SELECT count(*) FROM evidence.archive_chunk WHERE export_id = '$id'"),
		0, "$name: the database has let go of them");
	return $key;
}

# Who may, and when there is nothing to do.
($code, $out, $err) = $delivery->run('anna', 'upload', '--once', '--bucket=archive', '--allow-http');
is($code, 3, 'without the capability: exit code') || diag($err);
($code, $out, $err) = $delivery->upload;
is($code, 0, 'nothing to do: exit code') || diag($err);
is($out, '', 'nothing to do: nothing on standard output');

# One request.
my $id = $delivery->staged;
($code, $out, $err) = $delivery->upload;
is($code, 0, 'one archive: exit code') || diag($err);
like($err, qr/export $id: uploaded \d+ bytes as pg-evidence\//, 'it says so');
delivered($id, 'one request');

# "wait" and "show" know the state in between.
$id = $delivery->staged;
($code, $out, $err) = $delivery->run('anna', 'show', $id);
like($out, qr/^state +STAGED$/m, 'show: made, and not delivered yet');
($code, $out, $err) = $delivery->run('anna', 'list', '--state=STAGED');
like($out, qr/^$id/m, 'list --state=STAGED');
($code, $out, $err) = $delivery->run('anna', 'wait', $id, '--timeout=1');
is($code, 12, 'wait goes on waiting');
($code, $out, $err) = $delivery->run('anna', 'download', $id);
is($code, 6, 'it cannot be downloaded yet');

# In parts.
($code, $out, $err) = $delivery->upload('--multipart-threshold=1');
is($code, 0, 'in parts: exit code') || diag($err);
my $key = delivered($id, 'in parts');
like(head('archive', $key)->{etag}, qr/-1"$/, 'it was put together of one part');

# Other buckets.
foreach my $bucket (qw(versioned locked))
{
	foreach my $threshold ('16MB', '1')
	{
		$delivery->bucket($bucket);
		$id = $delivery->staged;
		($code, $out, $err) = $delivery->upload("--multipart-threshold=$threshold");
		is($code, 0, "bucket $bucket: exit code") || diag($err);
		$key = delivered($id, "bucket $bucket");
		is($delivery->version_of($id), head($bucket, $key)->{'x-amz-version-id'},
			"bucket $bucket: the version is on record");
	}
}

# Locks: asked for, seen in the store, and on record.
$delivery->bucket('locked');
foreach my $threshold ('16MB', '1')
{
	my @lock = ('--lock-mode=GOVERNANCE', '--lock-days=3', '--legal-hold', "--multipart-threshold=$threshold");

	$id = $delivery->staged;
	($code, $out, $err) = $delivery->upload(@lock);
	is($code, 0, 'locked: exit code') || diag($err);
	$key = delivered($id, 'locked');
	my $headers = head('locked', $key);

	is($headers->{'x-amz-object-lock-mode'}, 'GOVERNANCE', 'locked: the mode');
	is($headers->{'x-amz-object-lock-legal-hold'}, 'ON', 'locked: the legal hold');
	my ($day) = ($headers->{'x-amz-object-lock-retain-until-date'} // '') =~ /^(\S{10})/;
	is($day, POSIX::strftime('%Y-%m-%d', gmtime(time + 3 * 86400)), 'locked: until when');
}

# A bucket without locks cannot do that, and the archive is not lost.
$delivery->bucket('archive');
$id = $delivery->staged;
($code, $out, $err) = $delivery->upload('--lock-mode=COMPLIANCE', '--lock-days=1');
is($code, 18, 'no locks in the bucket: exit code');
like($err, qr/warning: export $id: could not store the archive/, 'no locks in the bucket: text');
like($err, qr/is not tried again by itself/, 'it is given up');
is($node->export_state($id), 'STAGED', 'it waits for somebody to mend that');

# TLS, and what is refused.
$id = $delivery->staged;
$delivery->endpoint($store->tls_endpoint);
($code, $out, $err) = $delivery->upload;
is($code, 17, 'an unknown authority: exit code');
like($err, qr/given|later|count/, 'an unknown authority: it does not count');
$delivery->drain('--ca-file=' . $store->ca_file);
delivered($id, 'over TLS');
$delivery->endpoint($store->endpoint);
($code, $out, $err) = $delivery->run('courier', 'upload', '--once', '--bucket=archive');
is($code, 1, 'http is not allowed unasked') || diag($err);
($code, $out, $err) = $delivery->upload({ AWS_ACCESS_KEY_ID => '', AWS_SECRET_ACCESS_KEY => '' });
is($code, 13, 'no keys: exit code') || diag($err);
like($err, qr/AWS_ACCESS_KEY_ID/, 'no keys: what to do');

# A configuration file has it all, and a file the keys.
{
	my $config = "$folder/upload.conf";
	my $keys = "$folder/keys";

	open my $file, '>', $config or die;
	print $file "bucket = archive\nallow-http = yes\nendpoint = " . $store->endpoint
	  . "\ncredentials-file = $keys\nprefix = other/place\nlimit-rate = 20kB\n";
	close $file;
	open $file, '>', $keys or die;
	print $file "[default]\naws_access_key_id = " . $store->access_key
	  . "\naws_secret_access_key = " . $store->secret_key . "\n";
	close $file;
	my %none = (AWS_ENDPOINT_URL_S3 => '', AWS_ACCESS_KEY_ID => '', AWS_SECRET_ACCESS_KEY => '', HOME => '/nonexistent');

	chmod 0644, $keys;
	($code, $out, $err) = $delivery->run('courier', \%none, 'upload', '--once', "--config=$config");
	is($code, 13, 'keys that others can read: exit code') || diag($err);
	chmod 0600, $keys;

	$id = $delivery->staged;
	my $bytes = $delivery->value("SELECT archive_bytes FROM evidence.audit_export WHERE id = '$id'");
	my $started = time;
	($code, $out, $err) = $delivery->run('courier', \%none, 'upload', '--once', "--config=$config");
	is($code, 0, 'all from files: exit code') || diag($err);
	is($node->export_state($id), 'READY', 'all from files: READY');
	like($delivery->key_of($id), qr{^other/place/$id/attempts/}, 'all from files: the prefix');
	cmp_ok(time - $started, '>', $bytes / 20480 - 1, 'all from files: no faster than was said');
}

# The service: told of new work, told to read its configuration again, to end.
{
	my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$folder/notify")
	  or die "no socket: $!";
	my $notices = '';
	my $told = sub {
		my ($regex) = @_;

		foreach (1 .. 1200)
		{
			my $text = '';

			$notices .= "$text\n" while defined $socket->recv($text, 4096, MSG_DONTWAIT()) && length $text;
			return 1 if $notices =~ $regex;
			usleep(50_000);
		}
		return 0;
	};
	my $uploader = $delivery->start({ NOTIFY_SOCKET => "$folder/notify" }, '--log-format=json');

	ok($told->(qr/^READY=1$/m), 'the service manager is told when it is ready');
	$uploader->wait_for(qr/uploader/);
	my $started = time;
	$id = $delivery->requested;
	$node->wait_state($id, 'READY');
	cmp_ok(time - $started, '<', 40, 'new work is announced and not only polled for');
	ok($told->(qr/STATUS=upload of export $id/), 'and what it is at');
	$uploader->signal('HUP');
	$uploader->wait_for(qr/configuration read again/);
	ok($told->(qr/RELOADING=1\nMONOTONIC_USEC=\d+\nREADY=1|RELOADING=1\nMONOTONIC_USEC=\d+\n\n?READY=1/),
		'and when it has read its configuration');

	# The server goes away and comes back.
	$node->stop('immediate');
	$uploader->wait_for(qr/connecting again|no connection|connection/);
	$node->start;
	$id = $delivery->requested;
	$node->wait_state($id, 'READY');
	pass('it outlives a crash of the server');

	# The store goes away and comes back.
	$store->stop('client');
	$id = $delivery->requested;
	$uploader->wait_for(qr/warning.*(?:object store|look|store)/i);
	$store->start or die $store->{error};
	$node->wait_state($id, 'READY');
	is($delivery->value("SELECT attempts FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'archive.upload'"),
		0, 'an outage of the store does not count');

	$started = time;
	$uploader->signal('TERM');
	is($uploader->end, 0, 'told to end: exit code');
	cmp_ok(time - $started, '<', 2, 'it ends at once');
	ok($told->(qr/^STOPPING=1$/m), 'the service manager is told');
	my @lines = map { eval { JSON::PP->new->utf8->decode($_) } } split /\n/, $uploader->said;
	is(scalar(grep { !defined || !defined $_->{level} || !defined $_->{time} } @lines), 0,
		'each line of its log is an object');
	ok((grep { ($_->{export_id} // '') eq $id && $_->{message} =~ /^uploaded / } @lines),
		'which tells the export');
}

# Told to end in the middle: the work is given back and goes on at once.
{
	$id = $delivery->staged;
	my $uploader = $delivery->start({}, '--limit-rate=2kB');
	$node->poll("SELECT count(*) = 1 FROM evidence.upload_attempt WHERE export_id = '$id' AND sent_at IS NOT NULL");
	$uploader->signal('INT');
	my $started = time;
	is($uploader->end, 0, 'interrupted in the middle: exit code');
	cmp_ok(time - $started, '<', 2, 'interrupted in the middle: it ends at once');
	like($uploader->said, qr/export $id: given back/, 'the work is given back');
	$delivery->drain;
	delivered($id, 'given back');
}

# Told to end while it waits for an answer, it does not sleep before it does.
{
	my $uploader = $delivery->start({});

	$uploader->wait_for(qr/keys from/);
	my $locker = $node->background_psql('postgres');

	$locker->query_safe('BEGIN');
	$locker->query_safe('LOCK TABLE evidence.outbox_event IN ACCESS EXCLUSIVE MODE');
	$node->safe_psql('postgres', 'NOTIFY pg_evidence_delivery');
	$node->poll("SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'courier' AND wait_event_type = 'Lock'");
	$uploader->signal('TERM');

	# It has taken note of the signal: none is pending for the process.
	usleep(1000)
	  while PostgreSQL::Test::Utils::slurp_file('/proc/' . $uploader->pid . '/status') =~ /^ShdPnd:\s*0*[1-9a-f]/m;
	my $started = time;

	$locker->query_safe('COMMIT');
	is($uploader->end, 0, 'told to end while it asks: exit code');
	cmp_ok(time - $started, '<', 30, 'told to end while it asks: it does not sleep first');
	$locker->quit;
}

# Several share the load.
{
	my @uploaders = map { $delivery->start({}) } 1 .. 3;
	my @ids = map { $delivery->requested } 1 .. 8;

	$node->wait_state($_, 'READY') foreach @ids;
	$_->signal('TERM') foreach @uploaders;
	is(join(' ', map { $_->end } @uploaders), '0 0 0', 'three uploaders: exit codes');
	my $said = join '', map { $_->said } @uploaders;
	is(scalar(grep { my $one = $_; 1 != (() = $said =~ /export $one: uploaded/g) } @ids), 0,
		'three uploaders: each archive was uploaded once');
}

# Removal: of what was revoked, at once; of what has expired, when it is time.
{
	my $gone = $delivery->staged;
	my $kept = $delivery->staged;

	$delivery->upload;
	$key = $delivery->key_of($gone);
	$delivery->value("SELECT evidence.revoke_audit_export('$gone', 'test')");
	($code, $out, $err) = $delivery->upload;
	is($code, 0, 'removal: exit code') || diag($err);
	like($err, qr/export $gone: object \Q$key\E removed/, 'removal: it says so');
	is($store->object('archive', $key)->{status}, 404, 'removal: the object is gone');
	is($store->object('archive', $delivery->key_of($kept))->{status}, 200, 'removal: the other one is not');
}

is($delivery->faults, '', 'nothing is wrong with ledger and store');

# The memory of program and server does not grow with the archive.
{
	my $text = "$folder/text";

	# Random bytes in base64, 64 kB a row: 200 MB when they are packed.
	open my $random, '<:raw', '/dev/urandom' or die;
	open my $file, '>', $text or die;
	foreach (1 .. 4200)
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
	unlink $text;

	foreach my $threshold ('16MB', '1GB')
	{
		$id = $delivery->staged(filters => '{"action": ["blob.write"]}');
		my $bytes = $delivery->value("SELECT archive_bytes FROM evidence.audit_export WHERE id = '$id'");
		cmp_ok($bytes, '>', 200e6, "a large archive, threshold $threshold");
		my $uploader = $delivery->start({}, '--once', "--multipart-threshold=$threshold");
		my ($program, $first, $server) = (0, 0, 0);

		$node->poll("SELECT count(*) = 1 FROM evidence.upload_attempt WHERE export_id = '$id' AND sent_at IS NOT NULL");
		my $backend = $delivery->value("SELECT pid FROM pg_stat_activity WHERE usename = 'courier'");
		while (my $pid = $uploader->pid)
		{
			my $peak = memory($pid, 'VmHWM') or last;
			my $now = memory($backend, 'RssAnon');

			$program = $peak;
			$first = $now if $first == 0;
			$server = $now if $now > $server;
			usleep(20_000);
		}
		is($uploader->end, 0, "threshold $threshold: exit code") || diag($uploader->said);
		is($node->export_state($id), 'READY', "threshold $threshold: READY");
		note("program $program kB, server $first to $server kB");
		cmp_ok($program, '<=', 16384, "threshold $threshold: memory of the program in kB")
		  unless $ENV{COVERAGE};
		cmp_ok($server - $first, '<', 8192, "threshold $threshold: growth of the server in kB");
		my $headers = head('archive', $delivery->key_of($id));
		is($headers->{'content-length'}, $bytes, "threshold $threshold: its size");
	}
}

done_testing();
