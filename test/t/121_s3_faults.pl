# The program's client of object stores, with a proxy before a real store that
# breaks things: what the client says of each fault, what the store has done,
# and that the same request again settles it.

use strict;
use warnings;

use IO::Socket::INET;
use IPC::Run ();
use S3Driver;
use Test::More;
use Time::HiRes qw(time usleep);

$store->put('archive', 'sink', $large);

# Each operation that the proxy breaks, on a key of its own: how it is made,
# what it asks for, and how one sees that it was carried out.  An upload that
# is begun for it is the last part of itself, so it may be small.
my %upload;

sub begin_upload
{
	my ($key, $part) = @_;
	my $answer = $store->request('POST', 'archive', $key,
		query => { uploads => '' });
	my ($id) = $answer->{body} =~ m{<UploadId>([^<]+)<} or die;

	$upload{$key} = $id;
	$store->request('PUT', 'archive', $key,
		query => { uploadId => $id, partNumber => 1 },
		body => $part) if defined $part;
	return;
}

sub uploads
{
	my ($key) = @_;

	return $store->request('GET', 'archive', '',
		query => { uploads => '', prefix => $key })->{body} =~
	  m{<UploadId>([^<]+)<}g;
}

sub clean_up
{
	my ($key) = @_;

	$store->request('DELETE', 'archive', $key, query => { uploadId => $_ })
	  foreach uploads($key);
	$store->request('DELETE', 'archive', $key);
	return;
}

my %operation = (
	put => {
		method => 'PUT',
		command => sub { 'put', $_[0], $large_file },
		done => sub { state_of($_[0]) eq $large_digest }
	},
	part => {
		method => 'PUT',
		prepare => sub { begin_upload($_[0]) },
		command => sub { 'part', $_[0], $upload{ $_[0] }, 1, $large_file, 0,
			  length $large },
		done => sub {
			$store->request('GET', 'archive', $_[0],
				query => { uploadId => $upload{ $_[0] } })->{body} =~
			  /<Part>/;
		}
	},
	begin => {
		method => 'POST',
		command => sub { 'begin', $_[0], $small_digest },
		done => sub { scalar uploads($_[0]) }
	},
	complete => {
		method => 'POST',
		prepare => sub { begin_upload($_[0], $small) },
		command => sub { 'parts', $_[0], $upload{ $_[0] }, ',', 'complete',
			  $_[0], $upload{ $_[0] } },
		done => sub { state_of($_[0]) eq $small_digest }
	},
	delete => {
		method => 'DELETE',
		prepare => sub { $store->put('archive', $_[0], $small) },
		command => sub { 'delete', $_[0] },
		done => sub { state_of($_[0]) eq 'absent' }
	},
	head => {
		method => 'HEAD',
		prepare => sub { $store->put('archive', $_[0], $small) },
		command => sub { 'head', $_[0] },
		reads => 1
	},
	get => {
		method => 'GET',
		prepare => sub { $store->put('archive', $_[0], $large) },
		command => sub { 'get', $_[0], "$folder/got" },
		reads => 1
	},
	list => {
		method => 'GET',
		prepare => sub { $store->put('archive', $_[0], $small) },
		command => sub { 'list', $_[0] },
		reads => 1
	});

# A fault, the outcome, whether the store has done it, and for which
# operations.  The time limits make those end that would hang.
my @all = sort keys %operation;
my @writes = grep { !$operation{$_}{reads} } @all;
my @bodies = qw(put part complete);
my @faults = (
	[ [ 'delay', '0.3' ], 'ok', 1, @all ],
	[ [ 'status', 503, 'Retry-After: 7' ], 'busy', 0, @all ],
	[ [ 'status', 503 ], 'busy', 0, @all ],
	[ [ 'status', 500 ], 'busy', 0, @all ],
	[ [ 'status', 429 ], 'busy', 0, @all ],
	[ [ 'status', 418 ], 'refused', 0, @all ],
	[ [ 'refuse', 400, 'ExpiredToken' ], 'denied', 0, 'put', 'get' ],
	[ [ 'refuse', 400, 'RequestTimeout' ], 'busy', 0, 'put', 'part' ],
	[ [ 'refuse', 403, 'RequestTimeTooSkewed' ], 'skew', 0, 'put', 'get' ],
	[ [ 'refuse', 409, 'ConditionalRequestConflict' ], 'busy', 0, 'put' ],
	[ ['close'], 'unknown', 0, @writes ],
	[ ['rst'], 'unknown', 0, @all ],
	[ [ 'redirect', 'http://127.0.0.1:1/' ], 'refused', 0, @all ],
	[ ['page'], 'unknown', 0, @all ],
	[ [ 'error', 'SlowDown' ], 'busy', 0, grep { $_ ne 'head' } @all ],
	[ [ 'error', 'Odd' ], 'refused', 0, grep { $_ ne 'head' } @all ],
	[ [ 'cut', 100 ], 'unknown', 0, 'put', 'part', 'complete' ],
	[ [ 'cut', 2_000_000 ], 'unknown', 0, 'put', 'part' ],
	[ [ 'stall', 100 ], 'unknown', 0, 'put', 'part', 'complete' ],
	[ ['continue'], 'unknown', 0, @bodies ],
	[ [ 'swallow', 'close' ], 'unknown', 1, @writes ],
	[ [ 'swallow', 'rst' ], 'unknown', 1, @all ],
	[ [ 'swallow', '503' ], 'busy', 1, @all ],
	[ [ 'swallow', 'hang' ], 'unknown', 1, @all ],
	[ [ 'short', 10 ], 'unknown', 1, 'get', 'list', 'begin', 'complete' ],
	[ [ 'hold', 10 ], 'unknown', 1, 'get', 'list' ]);

# The commands for all of these operations, each with a connection of its own;
# the last result of each, by its name.
sub run_operations
{
	my ($limits, @names) = @_;
	my @commands = map {
		($operation{$_}{command}->("fault/$_"), ',', 'new', ',')
	} @names;
	my @results = in_proxy(@$limits, @commands);
	my (%last, $before);

	foreach my $result (@results)
	{
		$last{ shift @names } = $before if $result->{command} eq 'new';
		$before = $result;
	}
	return %last;
}

sub check_result
{
	my ($title, $name, $result, $fault, $outcome, $done) = @_;
	my $operation = $operation{$name};

	is($result->{outcome}, $outcome, "$title: outcome")
	  or diag("$result->{message} " . join "\n", $proxy->requests);
	is($result->{retry_after}, "@$fault" =~ /Retry-After/ ? 7 : -1,
		"$title: how long to wait")
	  if $fault->[0] eq 'status';
	is($proxy->count($operation->{method}, "fault.*$name"),
		1, "$title: asked once");
	if ($operation->{reads})
	{
		ok(!$result->{maybe_done}, "$title: reading changes nothing");
	}
	else
	{
		is($operation->{done}->("fault/$name") ? 1 : 0,
			$done, "$title: done or not");
		ok($result->{maybe_done}, "$title: that is not denied")
		  if $done && $outcome ne 'ok';
	}
	cmp_ok($result->{written}, '<=', 10, "$title: no wrong byte")
	  if $name eq 'get' && $fault->[0] ne 'delay';
	return;
}

sub test_fault
{
	my ($fault, $outcome, $done, @names) = @_;

	# What would hang for a minute is given a second or two, and as much for
	# its bytes, in which the store has done its part.
	my $hangs = "@$fault" =~ /^(?:stall|hold|swallow hang)/;
	my @limits = $hangs ? ('--request', 1.5, '--low-bytes', 2_000_000) : ();

	$proxy->clear;
	foreach my $name (@names)
	{
		my $operation = $operation{$name};

		$operation->{prepare}->("fault/$name") if $operation->{prepare};
		$proxy->fault(1, $operation->{method}, "fault.*$name", @$fault);
	}
	my $start = time;
	my %result = run_operations(\@limits, @names);

	cmp_ok(time - $start, '<', 10 * @names, "@$fault: in time");
	check_result("$_: @$fault", $_, $result{$_}, $fault, $outcome, $done)
	  foreach @names;

	# The same again, without a fault, settles it: an upload that is complete
	# is not there any more.
	$proxy->clear;
	%result = run_operations([], @names);
	foreach my $name (@names)
	{
		is($result{$name}{outcome},
			$name eq 'complete' && $done ? 'refused' : 'ok',
			"$name: @$fault: the same again");
		clean_up("fault/$name");
	}
	return;
}

sub test_faults
{
	test_fault(@$_) foreach @faults;
	return;
}

# A kept connection that is closed without an answer: libcurl would send the
# request again by itself, which only what reads may do.
sub test_resending
{
	foreach my $name (@all)
	{
		my $operation = $operation{$name};
		my $repeats = $operation->{reads} || $name eq 'part';
		my $key = "fault/$name";

		$operation->{prepare}->($key) if $operation->{prepare};
		$proxy->clear;
		$proxy->fault(1, $operation->{method}, "fault.*$name", 'close');
		my ($result) =
		  (in_proxy('versioning', ',', $operation->{command}->($key)))[-1];

		is($proxy->count($operation->{method}, "fault.*$name"),
			$repeats ? 2 : 1, "$name: sent " . ($repeats ? 'again' : 'once'));
		is($result->{outcome}, $repeats ? 'ok' : 'unknown', "$name: outcome");
		clean_up($key);
	}

	# One without a byte has no "100 Continue" that would betray it either.
	$proxy->clear;
	$proxy->fault(1, 'PUT', 'fault', 'close');
	my ($empty) = (in_proxy('versioning', ',', 'put', 'fault', $empty_file))[-1];

	is($proxy->count('PUT', 'fault') . " $empty->{outcome}",
		'1 unknown', 'an empty body is sent once');
	ok($empty->{maybe_done}, 'and nobody knows');

	# Bytes of the body went, then the connection: begun anew from the start.
	# Not if a busy machine let a "100 Continue" through before.
	my $sent;

	foreach my $try (1 .. 10)
	{
		$proxy->clear;
		$proxy->fault(1, 'PUT', 'partNumber', 'eat', 100_000);
		begin_upload('fault');
		my ($part) = (in_proxy('versioning', ',', 'part', 'fault',
				$upload{fault}, 1, $large_file, 0, length $large))[-1];

		$sent = $proxy->count('PUT', 'partNumber') . " $part->{outcome}";
		last if $sent ne '1 unknown';
		clean_up('fault');
	}
	is($sent, '2 ok', 'a part may be sent again, from its beginning');
	is(outcomes(drive('parts', 'fault', $upload{fault}, ',', 'complete',
				'fault', $upload{fault})), 'ok ok', 'and is whole');
	is(state_of('fault'), $large_digest, 'to the byte');
	clean_up('fault');
	return;
}

# Answers that no store of ours gives, word for word; what is asked for gets
# one after the other of them.
sub answered
{
	my ($answers, @words) = @_;
	my $number = 0;

	$proxy->clear;
	$proxy->fault(1, '*', '.', 'answer',
		write_file('answer' . $number++, $_)) foreach @$answers;
	return in_proxy(@words);
}

# A whole answer with a document.
sub document
{
	my ($body, @headers) = @_;

	return join "\r\n", 'HTTP/1.1 200 OK', 'Content-Length: ' . length $body,
	  @headers, '', $body;
}

sub listed
{
	my ($truncated, @items) = @_;

	return document("<ListBucketResult><IsTruncated>$truncated</IsTruncated>"
		  . join('', map { "<Contents><Key>$_</Key></Contents>" } @items)
		  . '</ListBucketResult>');
}

sub test_lists
{
	my ($first, $second) = (listed('true', 'a', 'b'), listed('false', 'c'));
	my ($all) = answered([ $first, $second ], 'list');

	is(join(' ', $all->{outcome}, map { $_->{key} } @{ $all->{list} }),
		'ok a b c', 'a list of two pages');
	is($proxy->count('GET', 'start-after=b'), 1, 'goes on behind the last');
	my ($blank) = answered([ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n \n\n \n" ],
		'list');

	is($blank->{outcome}, 'unknown', 'blanks are no document');
	my %broken = (
		'no end' => [ $first, $first ],
		'no items' => [ listed('true') ],
		'a key beyond all measure' => [ listed('false', 'k' x 4000) ],
		'an ETag beyond all measure' => [
			document('<ListBucketResult><Contents><Key>k</Key><ETag>'
				  . 'e' x 200 . '</ETag></Contents></ListBucketResult>') ],
		'a document type' => [
			document('<!DOCTYPE x [<!ENTITY a "b">]><ListBucketResult/>') ],
		'another document' => [ document('<ListPartsResult/>') ],
		'half a document' => [ document('<ListBucketResult><Contents>') ],
		'too deep a document' =>
		  [ document('<a>' x 30 . '</a>' x 30) ],
		'too long a document' => [
			document('<ListBucketResult>' . ' ' x 1_100_000
				  . '</ListBucketResult>') ]);

	foreach my $name (sort keys %broken)
	{
		my ($list) = answered($broken{$name}, 'list');

		is($list->{outcome}, 'unknown', "a list with $name");
		ok(length $list->{message}, 'is told of');
	}
	my @stopped = drive('list', 'sink', 'stop', ',', 'list', 'sink');

	is(outcomes(@stopped), 'stopped ok', 'a list that is ended');

	# What Ceph does not say, Amazon does.
	my ($parts) = answered([
			document('<ListPartsResult><Part><PartNumber>1</PartNumber>'
				  . '<ChecksumSHA256>47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
				  . '</ChecksumSHA256></Part><Part><PartNumber>2</PartNumber>'
				  . '<ChecksumSHA256>abc-2</ChecksumSHA256></Part>'
				  . '</ListPartsResult>') ], 'parts', 'k', 'u');

	is(join(' ', map { $_->{sha256} } @{ $parts->{list} }),
		'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 ',
		'digests of parts');
	return;
}

sub test_answers
{
	my $head = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\n";
	my $later = gmtime(time + 100);

	# "Mon Nov 30 20:00:00 2026", as HTTP has it.
	$later =~ s/^(\w+) (\w+) +(\d+) (\S+) (\d+)$/sprintf '%s, %02d %s %d %s GMT', $1, $3, $2, $5, $4/e;
	my ($busy) = answered([ "HTTP/1.1 503 x\r\nRetry-After: $later \r\n"
			  . "Content-Length: 0\r\n\r\n" ], 'get', 'k', "$folder/got");

	cmp_ok(abs($busy->{retry_after} - 100), '<=', 5, 'Retry-After as a date');
	my @odd = map { (answered(["HTTP/1.1 503 x\r\nRetry-After: $_\r\n"
					. "Content-Length: 0\r\n\r\n" ], 'bucket'))[0]{retry_after} }
	  'soon', '-5', 'Mon, 30 Nov 2015 20:00:00 GMT', '86400', '';

	is("@odd", '-1 -1 0 3600 -1', 'and others of its kind');
	my %get = (
		'no length' => "$head\r\nbytes",
		'no ETag' => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes",
		'a part of it' => "HTTP/1.1 206 OK\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nbytes",
		'fewer bytes' => "${head}Content-Length: 9\r\n\r\nbytes",
		'an odd length' => "${head}Content-Length: x\r\n\r\nbytes",
		'an ETag beyond all measure' => "HTTP/1.1 200 OK\r\nETag: "
		  . 'e' x 500 . "\r\nContent-Length: 5\r\n\r\nbytes",
		'endless headers' => $head . ("X-Header: " . 'x' x 1000 . "\r\n") x 80
		  . "Content-Length: 5\r\n\r\nbytes",
		'no HTTP' => 'SSH-2.0-OpenSSH_9.2p1',
		'no status' => "HTTP/1.1 abc\r\n\r\n",
		'only 100' => "HTTP/1.1 100 Continue\r\n\r\n");

	foreach my $name (sort keys %get)
	{
		my ($got) = answered([ $get{$name} ], 'get', 'k', "$folder/got");

		is($got->{outcome}, 'unknown', "an object with $name")
		  or diag($got->{message});
		is($got->{written}, $name eq 'fewer bytes' ? 5 : 0, 'gives no byte')
		  unless $name =~ /length/;
	}
	my ($good) = answered([ "HTTP/1.1 100 Continue\r\n\r\n${head}X-Long: "
			  . 'x' x 5000 . "\r\nContent-Length: 5  \r\n\r\nbytes" ],
		'get', 'k', "$folder/got");

	is("$good->{outcome} $good->{written} $good->{etag}",
		'ok 5 e', 'a header that is long is passed over');
	my ($head_only) = answered([ "${head}Content-Length: 5\r\n"
			  . "x-amz-meta-sha256: ABC\r\nLast-Modified: never\r\n\r\n" ],
		'head', 'k');

	is("$head_only->{outcome} $head_only->{sha256} $head_only->{modified}",
		'ok  -1', 'what cannot be right is left out');
	my ($none) = answered([ document('<InitiateMultipartUploadResult/>') ],
		'begin', 'k', $small_digest);

	is($none->{outcome}, 'unknown', 'an upload without an id');
	ok($none->{maybe_done}, 'may be there');
	my ($suspended, $lock, $years) = map { (answered([ document($_->[0]) ], $_->[1]))[0] }
	  [ '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>',
		'versioning' ],
	  [ '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>'
		  . '<DefaultRetention><Mode>COMPLIANCE</Mode><Days>30</Days></DefaultRetention>'
		  . '</Rule></ObjectLockConfiguration>', 'lock' ],
	  [ '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>'
		  . '<DefaultRetention><Mode>GOVERNANCE</Mode><Years>2</Years></DefaultRetention>'
		  . '</Rule></ObjectLockConfiguration>', 'lock' ];

	is($suspended->{versioning}, 2, 'versioning that is suspended');
	is(join(' ', map { "$_->{mode} $_->{days}" } $lock, $years),
		'2 30 1 730', 'default retention in days and in years');
	my ($rules) = answered([
			document('<LifecycleConfiguration><Rule><ID>a</ID></Rule>'
				  . '<Rule><ID>b</ID></Rule></LifecycleConfiguration>') ],
		'lifecycle', 'stop');

	is($rules->{outcome}, 'stopped', 'rules of which one is enough');

	# A store may say that what is to be deleted is not there.
	my @deleted = (
		answered([ "HTTP/1.1 404 x\r\nContent-Length: 39\r\n\r\n"
				  . '<Error><Code>NoSuchKey</Code></Error>  ' ], 'delete', 'k'),
		answered([ "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n" ],
			'delete', 'k'));

	is(outcomes(@deleted), 'ok absent', 'a deletion by its own word only');
	return;
}

# The same connection serves many requests.
sub test_reuse
{
	$proxy->clear;
	my @many = in_proxy(map { ('head', 'sink', ',') } 1 .. 20);

	is((grep { $_->{outcome} eq 'ok' } @many) + 0, 20, 'many requests');
	is($proxy->connections, 1, 'use one connection');
	return;
}

sub test_redirects
{
	# To a store that would gladly take it, at another port.
	foreach my $where ($store->endpoint, $proxy->endpoint,
		'http://localhost:' . $store->port)
	{
		$proxy->clear;
		$proxy->fault(1, 'PUT', '^/archive/moved', 'redirect',
			"$where/archive/moved-there");
		my ($moved) = in_proxy('put', 'moved', $small_file);

		is("$moved->{outcome} $moved->{http}",
			'refused 307', "no redirect to $where is followed");
		like($moved->{hint}, qr/never followed/, 'and that is said');
		ok(!$moved->{retry_helps} && !$moved->{maybe_done}, 'for good');
		is(state_of('moved-there') . state_of('moved'),
			'absentabsent', 'nothing is there');
	}
	return;
}

# Start the driver, wait until the proxy has seen a request, send it a signal;
# its results and how long it took to end.
sub interrupt
{
	my ($method, @words) = @_;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ $driver, '--http', 'yes', @words ],
		'<', \undef, '>', \$out, '2>', \$err);
	my $deadline = time + 60;

	until ($proxy->count($method, ''))
	{
		die 'the driver asks for nothing' if time > $deadline;
		usleep(20_000);
	}
	my $start = time;

	$run->signal('TERM');
	$run->finish;
	my $took = time - $start;

	return ($took, heard($out, $err));
}

sub test_stopping
{
	my @through = ('--endpoint', $proxy->endpoint);
	my %stand = (
		'in the middle of an upload' =>
		  [ 'PUT', [ 'stall', 1_000_000 ], 'put', 'stopped', $large_file ],
		'while the store is silent' =>
		  [ 'HEAD', [ 'swallow', 'hang' ], 'head', 'sink' ],
		'behind an upload' =>
		  [ 'PUT', [ 'swallow', 'hang' ], 'put', 'behind', $large_file ],
		'in the middle of a download' =>
		  [ 'GET', [ 'hold', 1000 ], 'get', 'sink', "$folder/got" ]);

	foreach my $when (sort keys %stand)
	{
		my ($method, $fault, @words) = @{ $stand{$when} };
		my ($took, $result);

		# A busy machine may take its time itself; not each time.
		foreach my $try (1 .. 3)
		{
			$proxy->clear;
			$proxy->fault(1, $method, '.', @$fault);
			($took, $result) = interrupt($method, @through, @words);
			last if $took < 1;
		}
		is($result->{outcome}, 'stopped', "SIGTERM $when");
		cmp_ok($took, '<', 1, 'within a second');
	}
	is(state_of('stopped'), 'absent', 'half an upload is no object');

	# Not even asked: a listener that says nothing when TLS begins.
	my $listener = IO::Socket::INET->new(
		LocalAddr => '127.0.0.1', Listen => 5) or die;
	my ($took, $result);

	foreach my $try (1 .. 3)
	{
		my ($out, $err) = ('', '');
		my $run = IPC::Run::start(
			[ $driver, '--endpoint',
				'https://127.0.0.1:' . $listener->sockport, 'head', 'x' ],
			'<', \undef, '>', \$out, '2>', \$err);
		my $accepted = $listener->accept;
		my $start = time;

		$run->signal('TERM');
		$run->finish;
		$took = time - $start;
		($result) = heard($out, $err);
		last if $took < 1;
	}
	is($result->{outcome}, 'stopped', 'SIGTERM in the handshake');
	cmp_ok($took, '<', 1, 'within a second');
	return;
}

sub test_speed
{
	# A connection over which nothing comes is given up.
	$proxy->clear;
	$proxy->fault(1, 'GET', '.', 'hold', 1000);
	my $start = time;
	my ($slow) = in_proxy('--low-bytes', 1000, '--low-seconds', 1, 'get',
		'sink', "$folder/got");

	is($slow->{outcome}, 'unknown', 'too slow a download ends');
	cmp_ok(time - $start, '<', 40, 'soon');
	$proxy->clear;
	$proxy->fault(1, 'PUT', '.', 'stall', 100_000);
	$start = time;
	($slow) = in_proxy('--low-bytes', 1000, '--low-seconds', 1, 'put', 'slow',
		$large_file);
	is($slow->{outcome}, 'unknown', 'and too slow an upload');
	cmp_ok(time - $start, '<', 40, 'soon');

	# A limit that we set ourselves is kept, and is not too slow.
	$start = time;
	my ($limited) = drive('--rate', 1_500_000, '--low-bytes', 1_400_000,
		'--low-seconds', 1, 'put', 'limited', $large_file);
	my $took = time - $start;

	is($limited->{outcome}, 'ok', 'a limit to the rate');
	cmp_ok($took, '>', 1.2, 'makes an upload slow');
	cmp_ok($took, '<', 60, 'but no slower');
	return;
}

# The gateway dies and comes back.
sub test_outage
{
	$store->kill_gateway;
	my @dead = drive('put', 'outage', $large_file, ',', 'head', 'sink');

	is(outcomes(@dead), 'unreachable unreachable', 'a gateway that is dead');
	ok(!$dead[0]{maybe_done}, 'has done nothing');
	ok($store->start, 'it starts again');
	is(outcomes(drive('put', 'outage', $large_file, 'create', ',', 'head',
				'sink', ',', 'delete', 'outage')),
		'ok ok ok', 'with the objects it had');
	return;
}

run_subtests(
	faults => \&test_faults,
	resending => \&test_resending,
	lists => \&test_lists,
	answers => \&test_answers,
	reuse => \&test_reuse,
	redirects => \&test_redirects,
	stopping => \&test_stopping,
	speed => \&test_speed,
	outage => \&test_outage);
check_silence();

done_testing();
