# The program's client of object stores, against a real store: every operation
# it has.  test/objectstore/s3_driver makes the requests; what they did is
# looked at with ObjectStore.pm, which shares no code with the client.

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex);
use File::Basename qw(dirname);
use JSON::PP;
use PostgreSQL::Test::Utils ();
use S3Driver;
use Test::More;
use Time::HiRes qw(time usleep);

my $project = abs_path(dirname(__FILE__) . '/../..');
my ($wrong_key, $wrong_secret) = ('MADEUPACCESSKEY', 'made/up+key');

keep_secret($wrong_key, $wrong_secret);

# Some megabytes, so that parts can be as large as they must be.
my $parts_file = write_file('parts', noise(11_000_000, 'parts'));
my $parts_digest = sha256_hex(read_file('parts'));

sub test_objects
{
	my ($put, $head, $again, $get) = drive(
		'put', 'a/key', $large_file, 'create', ',',
		'head', 'a/key', ',',
		'put', 'a/key', $small_file, 'create', ',',
		'get', 'a/key', "$folder/got");
	my $answer = $store->object('archive', 'a/key');

	is(outcomes($put, $head, $again, $get), 'ok ok exists ok',
		'put, look up, put again, get');
	is($answer->{body}, $large, 'the store has the bytes');
	is($answer->{headers}{'x-amz-meta-sha256'},
		$large_digest, 'and their digest');
	is(read_file('got'), $large, 'what was got');
	is($head->{length}, length $large, 'length');
	is($head->{sha256}, $large_digest, 'digest');
	is("\"$head->{etag}\"", $answer->{headers}{etag}, 'ETag');
	cmp_ok(abs($head->{modified} - time), '<', 60, 'time');
	is($get->{length}, length $large, 'the sink was told of the object');
	ok(!$again->{retry_helps} && !$again->{maybe_done}, 'taken is taken');

	my @empty = drive('put', 'empty', $empty_file, ',', 'head', 'empty', ',',
		'get', 'empty', "$folder/got");

	is(outcomes(@empty), 'ok ok ok', 'an object without a byte');
	is($empty[1]{length}, 0, 'its length');
	is($empty[1]{sha256}, sha256_hex(''), 'its digest');
	ok($empty[2]{began}, 'the sink is told of it');
	is(read_file('got'), '', 'its bytes');

	my @absent = drive('head', 'none', ',', 'get', 'none', "$folder/got", ',',
		'delete', 'none', ',', 'delete', 'a/key', ',', 'head', 'a/key');

	is(outcomes(@absent), 'absent absent ok ok absent', 'what is not there');
	is(join(',', map { $_->{http} } @absent),
		'404,404,204,204,404', 'and what the store said');
	ok(!$absent[1]{began}, 'no sink is told of nothing');
	is(state_of('a/key'), 'absent', 'deleted');

	# The digest that is announced is that of what arrives, or nothing does.
	my ($wrong) = drive('put', 'wrong', $small_file,
		'sha256=' . sha256_hex('other'));

	is("$wrong->{outcome} $wrong->{code}",
		'refused XAmzContentSHA256Mismatch', 'a wrong digest');
	ok(!$wrong->{retry_helps} && !$wrong->{maybe_done}, 'for good');
	is(state_of('wrong'), 'absent', 'and nothing is stored');
	my @unsent = drive(
		'put', 'x', $small_file, 'sha256=abc', ',',
		'put', '', $small_file, ',',
		'put', 'x' x 1025, $small_file, ',',
		'part', 'x', 'id', '0', $small_file, '0', '10', ',',
		'put', 'x', $small_file, 'governance=-9999999999', ',',
		'part', 'x', 'id', 1, $small_file, 0, 10, 'sha256=abc', ',',
		'begin', 'x', 'abc', ',',
		'retention', 'x', '', 'governance', -9999999999, ',',
		'rule', 'id', 'x/', 0, 0, ',', 'rule', '', 'x/', 1, 1);

	is(outcomes(@unsent), 'refused ' x 9 . 'refused',
		'what cannot be right is not sent');
	is((grep { $_->{http} } @unsent) + 0, 0, 'at all');

	# A source that ends early ends the request, without a wait.
	my $start = time;
	my ($short) = drive('put', 'short', $small_file, 'length=5000');

	is($short->{outcome}, 'local', 'a source that is too short');
	ok(!$short->{maybe_done}, 'has not made an object');
	cmp_ok(time - $start, '<', 30, 'and nobody waits for the rest');
	is(state_of('short'), 'absent', 'indeed');
	my ($fixed) = drive('put', 'fixed', $small_file, 'fixed');

	is("$fixed->{outcome} $fixed->{maybe_done}", 'local 0',
		'one that cannot be read from its beginning is not sent');

	# The sink decides before the first byte, and at any later one.
	$store->put('archive', 'sink', $large);
	my ($refused, $stopped) = drive('get', 'sink', "$folder/got", 'refuse',
		',', 'get', 'sink', "$folder/got", 'stop=100000');

	is("$refused->{outcome} $refused->{written}",
		'stopped 0', 'a sink that does not want it');
	is($stopped->{outcome}, 'stopped', 'a sink that has enough');
	cmp_ok($stopped->{written}, '<', 1_000_000, 'gets no more');
	return;
}

# Libcurl before 8.13 leaves parts of dots alone, newer ones do not sign them.
# What must not be is that another key is written.
sub dotted_keys
{
	my @keys = ('a/../b', 'dot/./x', '../up', '.');
	my @put = drive(map { ('put', "keys/$_", $small_file, 'create', ',') } @keys);
	my @ok = grep { $put[$_]{outcome} eq 'ok' } 0 .. $#keys;
	my @stored = $store->keys_in('archive', '');

	is_deeply([ sort grep { /^(?:up|keys.*)$/ } @stored ],
		[ sort map { "keys/$keys[$_]" } @ok ], 'keys with parts of dots stay what they are');
	ok(@ok == 0 || @ok == @keys, 'all of them or none can be written');
	drive(map { ('delete', "keys/$_", ',') } @keys[@ok]) if @ok;
	return @keys[@ok];
}

sub test_keys
{
	my @keys = (
		'blank in it', 'plus+plus', 'tilde~', 'percent%2Fpercent%',
		q{quotes'"`}, 'a!$&*(),;:=@b', '<xml>&amp;', 'back\\slash',
		"\xc3\xbc\xe2\x82\xac", 'two//slashes', 'end/', "line\nfeed", "tab\tend", "control\x01\x1f", '#?hash',
		'[brackets]{}|^', 'x' x 1024, '-._~', 'index.html?versionId=1');
	my @commands;

	unshift @keys, dotted_keys();
	push @commands, 'put', "keys/$_", $small_file, 'create', ','
	  foreach grep { length() < 1019 } @keys;
	push @commands, 'put', $keys[-3], $small_file, 'create', ',';
	my @put = drive(@commands);

	is((grep { $_->{outcome} ne 'ok' } @put) + 0, 0, 'keys of all kinds')
	  or diag(explain(grep { $_->{outcome} ne 'ok' } @put));
	my @wanted = sort((map { "keys/$_" } grep { length() < 1019 } @keys));

	is_deeply([ sort $store->keys_in('archive', 'keys/') ],
		\@wanted, 'are the keys that the store has');
	is(state_of('x' x 1024), $small_digest, 'the longest one, too');

	# The lists of the driver are JSON, whose texts are characters.
	my ($list) = drive('list', 'keys/');
	my @listed = map { utf8::encode($_); $_ } map { $_->{key} } @{ $list->{list} };

	is_deeply([ sort @listed ], \@wanted, 'and those that are listed');
	my ($pages) = drive('--page', 3, 'list', 'keys/');

	is_deeply($pages->{list}, $list->{list}, 'in pages as at once');
	is($list->{list}[0]{length}, length $small, 'with their lengths');
	cmp_ok(abs($list->{list}[0]{modified} - time), '<', 60, 'and times');

	@commands = ();
	push @commands, 'head', $_, ',', 'get', $_, "$folder/got", ',',
	  'delete', $_, ','
	  foreach @wanted;
	my @others = drive(@commands);

	is((grep { $_->{outcome} ne 'ok' } @others) + 0, 0,
		'looked up, got and deleted');
	is((grep { $_->{command} eq 'head' && $_->{sha256} ne $small_digest }
			@others) + 0, 0, 'with the right digest each');
	is(join(' ', $store->keys_in('archive', 'keys/')), '', 'none is left');
	drive('delete', 'x' x 1024);
	my ($none) = drive('list', 'keys/');

	is_deeply([ $none->{outcome}, $none->{list} ],
		[ 'ok', [] ], 'an empty list');
	return;
}

sub test_multipart
{
	my $key = 'multi part/+1';
	my @first = drive('begin', $key, $parts_digest, ',',
		'part', $key, '@', 1, $parts_file, 0, 5_500_000);
	my $upload = $first[0]{upload};

	is(outcomes(@first), 'ok ok', 'a multipart upload begins');

	# Another process goes on with it: the store knows what it has.
	my @second = drive(
		'uploads', 'multi', ',',
		'part', $key, $upload, 2, $parts_file, 5_500_000, 5_500_000, ',',
		'part', $key, $upload, 2, $parts_file, 5_500_000, 5_500_000, ',',
		'parts', $key, $upload, ',',
		'complete', $key, $upload, ',',
		'head', $key, ',',
		'complete', $key, $upload, ',',
		'parts', $key, $upload, ',',
		'uploads', 'multi');
	my ($uploads, undef, undef, $parts, undef, $head) = @second;

	is(outcomes(@second), 'ok ok ok ok ok ok ok absent ok',
		'and another process ends it');
	is_deeply(
		[ map { [ @$_{qw(key upload)} ] } @{ $uploads->{list} } ],
		[ [ $key, $upload ] ], 'it was listed');
	cmp_ok(abs($uploads->{list}[0]{initiated} - time), '<', 60, 'with a time');
	is_deeply(
		[ map { [ @$_{qw(number length)} ] } @{ $parts->{list} } ],
		[ [ 1, 5_500_000 ], [ 2, 5_500_000 ] ], 'its parts');
	is($head->{length}, 11_000_000, 'length of the whole');
	is($head->{sha256}, $parts_digest, 'digest of the whole');
	is(state_of($key), $parts_digest, 'and its bytes');
	is_deeply($second[8]{list}, [], 'no upload is left');

	my @aborted = drive(
		'begin', 'aborted', $parts_digest, ',',
		'part', 'aborted', '@', 1, $small_file, 0, 1000,
		'sha256=' . sha256_hex('other'), ',',
		'part', 'aborted', '@', 1, $small_file, 0, 1000, ',',
		'abort', 'aborted', '@', ',',
		'abort', 'aborted', '@', ',',
		'part', 'aborted', '@', 1, $small_file, 0, 1000, ',',
		'complete', 'aborted', '@', ',',
		'parts', 'aborted', '@');

	# Ceph does not say of a completion that its upload is gone.
	like(outcomes(@aborted),
		qr/^ok refused ok ok absent absent (?:absent|busy) absent$/,
		'a wrong part, an abort, and nothing afterwards');
	is($aborted[1]{code}, 'XAmzContentSHA256Mismatch', 'for its digest');

	my @small = drive(
		'begin', 'small', $parts_digest, ',',
		'part', 'small', '@', 1, $small_file, 0, 500, ',',
		'part', 'small', '@', 2, $small_file, 500, 500, ',',
		'complete', 'small', '@', 'create', ',', 'abort', 'small', '@');

	is(outcomes(@small), 'ok ok ok refused ok', 'parts that are too small');
	is($small[3]{code}, 'EntityTooSmall', 'say so');
	return;
}

# Libcurl 8.14 signs a plus in a question for something else, and is refused.
sub plus
{
	my ($list) = drive('list', 'none+such/');

	return $list->{outcome} eq 'ok' ? '+' : '';
}

# Lists of more than a page, with keys that must be encoded to go on.
sub test_pages
{
	my $name = 'page/' . plus() . " %\xc3\xbc";
	my @commands;

	push @commands, 'begin', "$name$_", $small_digest, ','
	  foreach 1 .. 7;
	my @begun = drive(@commands, 'begin', "${name}3", $small_digest);
	my @want = sort map { $_->{upload} } @begun;
	my ($pages) = drive('--page', 3, 'uploads', 'page/');
	my ($whole) = drive('uploads', 'page/');

	is_deeply([ sort map { $_->{upload} } @{ $pages->{list} } ],
		\@want, 'uploads in pages');
	is_deeply($pages->{list}, $whole->{list}, 'as at once');
	my $key = "${name}3";
	my $upload = $begun[2]{upload};
	my @parts = map {
		('part', $key, $upload, $_, $small_file, $_, 10 + $_, ',')
	} (1, 2, 5, 9, 10);
	my ($listed) = (drive('--page', 2, @parts, 'parts', $key, $upload))[-1];

	is(join(' ', map { "$_->{number}:$_->{length}" } @{ $listed->{list} }),
		'1:11 2:12 5:15 9:19 10:20', 'parts in pages');
	my @keys = map { my $k = $_->{key}; utf8::encode($k); $k }
	  @{ $whole->{list} };
	my @aborts = map {
		('abort', $keys[$_], $whole->{list}[$_]{upload}, ',')
	} 0 .. $#keys;

	is((grep { $_->{outcome} ne 'ok' } drive(@aborts)) + 0,
		0, 'all of them are aborted');

	# More than one page of the usual length.
	@commands = map { ('put', "many/$_", $empty_file, ',') } 100 .. 359;
	drive(@commands);
	my ($many) = drive('list', 'many/');

	is(join(' ', map { $_->{key} } @{ $many->{list} }),
		join(' ', map { "many/$_" } 100 .. 359), 'more than one usual page');
	return;
}

sub test_versions
{
	my @in = ('--bucket', 'versioned');
	my @made = drive(
		@in, 'versioning', ',', 'lock', ',',
		'put', 'v', $small_file, ',',
		'put', 'v', $empty_file, ',',
		'delete', 'v', ',',
		'head', 'v', ',',
		'versions', 'v');
	my $old = $made[2]{version};

	is(outcomes(@made), 'ok ok ok ok ok absent ok', 'a versioned bucket');
	is("$made[0]{versioning} $made[1]{enabled}", '1 0', 'says what it is');
	is(join(' ', map { "$_->{marker}$_->{latest}$_->{length}" }
				@{ $made[6]{list} }),
		'110 000 001000', 'versions and the mark before them');
	my ($pages) = drive(@in, '--page', 1, 'versions', 'v');

	is_deeply($pages->{list}, $made[6]{list}, 'in pages, too');
	my @old = drive(@in, 'head', 'v', $old, ',',
		'get', 'v', "$folder/got", "version=$old", ',',
		'head', 'v', $made[6]{list}[0]{version}, ',',
		map({ ('delete', 'v', $_->{version}, ',') } @{ $made[6]{list} }),
		'versions', 'v', ',', 'delete', 'v', $old, ',', 'head', 'v', $old);

	is(outcomes(@old), 'ok ok absent ok ok ok ok ok absent',
		'an older version, and the end of all');
	is(read_file('got'), $small, 'its bytes');
	is_deeply($old[6]{list}, [], 'none is left');

	my $plus = plus();
	my @commands = map {
		my $key = "odd/$plus %\xc3\xbc'$_";

		(('put', $key, $empty_file, ',') x 2)
	} 1 .. 3;
	drive(@in, @commands);
	my ($odd) = drive(@in, 'versions', 'odd/');
	my ($odd_pages) = drive(@in, '--page', 2, 'versions', 'odd/');

	is((grep { $_->{key} =~ m{^odd/\Q$plus\E %\xfc'[123]$} } @{ $odd->{list} }) + 0,
		6, 'keys of all kinds');
	is_deeply($odd_pages->{list}, $odd->{list}, 'in pages, too');
	return;
}

sub test_locks
{
	my @in = ('--bucket', 'locked');
	my @made = drive(
		@in, 'lock', ',',
		'put', 'governed', $small_file, 'governance=3600', ',',
		'head', 'governed', ',',
		'put', 'held', $small_file, 'hold', ',',
		'head', 'held', ',',
		'put', 'later', $small_file, ',',
		'head', 'later');
	my ($governed, $held, $later) = map { $made[$_]{version} } 1, 3, 5;

	is(outcomes(@made), 'ok ' x 6 . 'ok', 'a bucket with object lock');
	ok($made[0]{enabled} && $made[0]{days} == 0, 'says that it is');
	is($made[2]{mode}, 'GOVERNANCE', 'mode');
	cmp_ok(abs($made[2]{until} - time - 3600), '<', 30, 'until when');
	ok($made[4]{hold} && $made[4]{mode} eq '', 'legal hold');
	ok(!$made[6]{hold} && $made[6]{mode} eq '' && $made[6]{until} == -1,
		'none at all');

	my @delete = drive(@in, 'delete', 'governed', $governed, ',', 'delete',
		'held', $held);

	is(outcomes(@delete), 'locked locked', 'they cannot be deleted');
	is(join(',', map { $_->{locked_until} } @delete),
		"$made[2]{until},-1", 'and it is said until when');
	like($delete[0]{message}, qr/retained until 20\d\d-/, 'in words');
	like($delete[1]{message}, qr/legal hold/, 'or that there is no end');

	# As after a multipart upload, for which some stores drop the lock.
	my @set = drive(@in,
		'retention', 'later', $later, 'governance', 3600, ',',
		'hold', 'later', $later, 'on', ',',
		'head', 'later', ',',
		'hold', 'later', $later, 'off', ',',
		'head', 'later', ',',
		'delete', 'later', $later, ',',
		'hold', 'held', $held, 'off', ',',
		'delete', 'held', $held, ',',
		'retention', 'later', 'nix', 'governance', 3600);

	is(outcomes(@set), 'ok ok ok ok ok locked ok ok absent',
		'retention and hold set afterwards')
	  or diag($set[8]{message});
	ok($set[2]{hold} && $set[2]{mode} eq 'GOVERNANCE', 'are there');
	ok(!$set[4]{hold}, 'and can be taken away');

	my ($plain) = drive('put', 'x', $small_file, 'governance=60');

	is($plain->{outcome}, 'refused', 'a bucket without lock refuses');

	# What is retained for seconds can be deleted after them, and not before:
	# on a machine that needs longer to ask, more of them.
	foreach my $seconds (3, 10, 40)
	{
		my @strict = drive(@in, 'put', 'strict', $small_file,
			"compliance=$seconds", ',', 'head', 'strict');
		my ($version, $until) = ($strict[0]{version}, $strict[1]{until});
		my ($early) = drive(@in, 'delete', 'strict', $version);

		next if time >= $until;
		is($strict[1]{mode}, 'COMPLIANCE', 'the other mode');
		is("$early->{outcome} $early->{locked_until}",
			"locked $until", 'holds');
		usleep(100_000) while time <= $until + 0.5;
		my ($late) = drive(@in, 'delete', 'strict', $version);

		is($late->{outcome}, 'ok', 'until the time is over');
		last;
	}
	return;
}

sub test_lifecycle
{
	my ($none) = drive('lifecycle');

	is_deeply([ $none->{outcome}, $none->{list} ], [ 'ok', [] ], 'no rules');

	# Rules of others, with what we would never write.
	my $others = '<Rule><ID>tags &amp; more</ID><Filter><And><Prefix>t/</Prefix>'
	  . '<Tag><Key>k</Key><Value>v</Value></Tag></And></Filter>'
	  . '<Status>Enabled</Status><Expiration><Days>9</Days></Expiration></Rule>'
	  . '<Rule><ID>old</ID><Prefix>o/</Prefix><Status>Disabled</Status>'
	  . '<Expiration><Date>2040-01-01T00:00:00.000Z</Date></Expiration>'
	  . '<NoncurrentVersionExpiration><NoncurrentDays>4</NoncurrentDays>'
	  . '</NoncurrentVersionExpiration></Rule>';
	my $set = $store->request('PUT', 'archive', '',
		query => { lifecycle => '' },
		body => "<LifecycleConfiguration>$others</LifecycleConfiguration>");

	is($set->{status}, 200, 'the store takes the rules of others')
	  or diag($set->{body});
	my @made = drive(
		'rule', 'pg_evidence', 'a<b>&/', 2, 3, ',', 'lifecycle', ',',
		'rule', 'pg_evidence', 'evidence/', 5, 0, 6, ',', 'lifecycle');
	my %rule = map { $_->{id} => $_ } @{ $made[3]{list} };

	is(outcomes(@made), 'ok ok ok ok', 'our rule is added, and replaced');
	is(join(' ', sort keys %rule), 'old pg_evidence tags & more',
		'beside those of others');
	is_deeply(
		[ @{ $rule{pg_evidence} }{
				qw(prefix enabled partial expire_days abort_days
				  noncurrent_days)
			} ],
		[ 'evidence/', JSON::PP::true, JSON::PP::false, 5, 0, 6 ], 'ours');
	my ($first) = grep { $_->{id} eq 'pg_evidence' } @{ $made[1]{list} };

	is("$first->{prefix} $first->{expire_days} $first->{abort_days}",
		'a<b>&/ 2 3', 'as it was before');
	is_deeply(
		[ @{ $rule{'tags & more'} }{qw(prefix partial expire_days)} ],
		[ 't/', JSON::PP::true, 9 ], 'one with a tag');
	is_deeply(
		[ @{ $rule{old} }{qw(prefix enabled expire_date noncurrent_days)} ],
		[ 'o/', JSON::PP::false, 2208988800, 4 ], 'one with a date');
	my $kept = $store->request('GET', 'archive', '',
		query => { lifecycle => '' })->{body};

	like($kept, qr{<Key>k</Key><Value>v</Value>}, 'a tag is still there');
	return;
}

sub test_bucket
{
	my @none = drive('--bucket', 'missing', 'bucket', ',', 'head', 'x', ',',
		'get', 'x', "$folder/got", ',', 'put', 'x', $small_file, ',',
		'delete', 'x', ',', 'list', ',', 'begin', 'x', $small_digest, ',',
		'lifecycle', ',', 'versioning', ',', 'lock');

	is(outcomes(@none), 'no_bucket ' x 9 . 'no_bucket', 'no such bucket');
	my ($there) = drive('bucket');

	is($there->{outcome}, 'ok', 'and one that is there');
	return;
}

sub test_keys_of_access
{
	local %ENV = %ENV;
	my @all = ('head', 'sink', ',', 'put', 'denied', $large_file, ',',
		'list', ',', 'delete', 'sink');

	$ENV{AWS_SECRET_ACCESS_KEY} = $wrong_secret;
	my @wrong = drive(@all);

	is(outcomes(@wrong), 'denied ' x 3 . 'denied', 'a wrong secret key');
	ok(!(grep { $_->{retry_helps} || $_->{maybe_done} } @wrong), 'for good');
	$ENV{AWS_ACCESS_KEY_ID} = $wrong_key;
	is(outcomes(drive(@all)), 'denied ' x 3 . 'denied', 'an unknown key');
	is(state_of('denied'), 'absent', 'nothing was stored');

	# Temporary keys have a token, which is signed and sent.
	my ($access, $secret, $token) = $store->temporary_keys;

	keep_secret($secret, $token);
	@ENV{qw(AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN)} =
	  ($access, $secret, $token);
	my @temporary = drive('put', 'temporary', $large_file, ',',
		'head', 'temporary', ',', 'delete', 'temporary');

	is(outcomes(@temporary), 'ok ok ok', 'temporary keys');
	$ENV{AWS_SESSION_TOKEN} = substr $token, 0, -8;
	is(outcomes(drive('bucket')), 'denied', 'with a broken token');
	delete $ENV{AWS_SESSION_TOKEN};
	is(outcomes(drive('bucket')), 'denied', 'without one');

	# Not even when somebody repeats what was sent (case C33).
	$ENV{AWS_SESSION_TOKEN} = $token;
	$proxy->clear;
	$proxy->fault(-1, '*', '.', 'echo', 403);
	my @echoed = in_proxy('put', 'x', $small_file, ',', 'get', 'x',
		"$folder/got", ',', 'head', 'x');

	is(outcomes(@echoed), 'denied denied denied', 'what was sent comes back');
	like($echoed[0]{message}, qr/\[redacted\]/, 'and is left out');
	delete $ENV{AWS_SESSION_TOKEN};
	$proxy->clear;

	# Keys in a file count from the request after they were changed.
	delete @ENV{qw(AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY)};
	my ($none) = drive('bucket');

	is($none->{command}, 'open', 'without keys nothing begins');
	like("$none->{doing} $none->{hint}", qr/credentials file/, 'and why');
	my $form = "[default]\naws_access_key_id = %s\n"
	  . "aws_secret_access_key = %s\naws_session_token = %s\n";
	my $keys = write_file('keys', sprintf $form, $access, $secret, $token);
	my $fresh = write_file('fresh',
		sprintf("[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n",
			ObjectStore::access_key(), ObjectStore::secret_key()));

	chmod 0600, $keys, $fresh;

	# Read for each request, and gone after it.
	my $backwards = reverse $secret;
	my @wiped = drive('--credentials', $keys, 'bucket',
		',', 'put', 'temporary', $small_file, ',', 'head', 'temporary', ',',
		'delete', 'temporary', ',', 'wiped', $backwards, ',',
		'wiped', scalar reverse $token);

	is(outcomes(@wiped), 'ok ok ok ok', 'keys of a file');
	ok($wiped[4]{looked}, 'the memory of the program');
	is($wiped[4]{found}, 0, 'has no secret key any more');
	is($wiped[5]{found}, 0, 'and no token');
	{
		local %ENV = (%ENV, $store->environment);
		my ($there) = drive('wiped', scalar reverse ObjectStore::secret_key());

		cmp_ok($there->{found}, '>', 0, 'while one of the environment is seen');
	}
	my @rotated = drive('--credentials', $keys, 'bucket', ',',
		'shell', "sed -i s/^aws_secret.*/aws_secret_access_key=x/ $keys", ',',
		'bucket', ',', 'shell', "mv $fresh $keys", ',', 'bucket', ',',
		'shell', "chmod 644 $keys", ',', 'put', 'x', $small_file);

	is(outcomes(@rotated), 'ok denied ok local', 'rotated keys');
	like($rotated[-1]{message}, qr/can be read by others/,
		'a file that others can read is refused');
	like($rotated[-1]{hint}, qr/chmod 600/, 'and it is said what to do');
	is($rotated[-1]{http}, 0, 'before anything is sent');
	return;
}

sub test_clock
{
	my $library = "$folder/other_hour.so";

	PostgreSQL::Test::Utils::system_or_bail('cc', '-shared', '-fPIC', '-o',
		$library, "$project/test/lib/other_hour.c");
	local $ENV{LD_PRELOAD} = $library;
	foreach my $hours (-1, 1)
	{
		local $ENV{EVIDENCE_HOURS} = $hours;
		my @skewed = drive('head', 'sink', ',', 'put', 'skewed', $small_file,
			',', 'bucket');

		is(outcomes(@skewed), 'skew skew skew', "a clock $hours hours off");
		cmp_ok(abs($skewed[0]{skew} - 3600 * $hours), '<', 60, 'how far');
		like($skewed[1]{message},
			$hours < 0
			? qr/clock of this host is 3\d\d\d seconds behind/
			: qr/clock of this host is 3\d\d\d seconds ahead/, 'in words');
		ok(!$skewed[1]{retry_helps}, 'no blind retry');
	}
	return;
}

sub test_addresses
{
	my $ca = $store->ca_file;
	my $tls = $store->tls_endpoint;
	my ($put, $get) = drive('--endpoint', $tls, '--ca', $ca,
		'put', 'tls', $large_file, ',', 'get', 'tls', "$folder/got");

	is(outcomes($put, $get), 'ok ok', 'over TLS');
	is(read_file('got'), $large, 'the bytes');
	my ($unknown) = drive('--endpoint', $tls, 'bucket');

	is($unknown->{outcome}, 'unreachable', 'a certificate nobody vouches for');
	ok(!$unknown->{retry_helps} && !$unknown->{maybe_done}, 'stays one');
	like($unknown->{hint}, qr/certificate is not trusted/, 'and why');
	my $port = $store->port;
	my ($name) = drive('--endpoint', $tls, '--ca', "$folder/small", 'bucket');

	is($name->{outcome}, 'unreachable', 'a file that holds no certificate');
	my ($mixed) = drive('--endpoint', "https://127.0.0.1:$port", '--ca', $ca,
		'bucket');

	is($mixed->{outcome}, 'unreachable', 'TLS to a port that speaks http');

	# The name of the bucket in the name of the host.
	my @virtual = drive('--endpoint', "http://localhost:$port", '--style',
		'virtual', 'put', 'virtual +1', $small_file, ',', 'list', 'virtual',
		',', 'delete', 'virtual +1');

	is(outcomes(@virtual), 'ok ok ok', 'virtual-host style');
	is($virtual[1]{list}[0]{key}, 'virtual +1', 'the right bucket');

	# Addresses that are refused before a key is read from them.
	my %refused = (
		"http://192.0.2.1:$port" => qr/plain http/,
		'http://localhost.example.com' => qr/plain http/,
		'http://127.0.0.1.example.com' => qr/plain http/,
		'ftp://127.0.0.1' => qr/must begin with https/,
		'127.0.0.1:80' => qr/no address/,
		'https://user:pw@host' => qr/more than scheme/,
		'https://host/path' => qr/more than scheme/,
		'https://host/?a=b' => qr/more than scheme/,
		'https://' => qr/no address/);

	foreach my $endpoint (sort keys %refused)
	{
		my ($open) = drive('--endpoint', $endpoint, 'bucket');

		is("$open->{command} $open->{outcome}", 'open usage', "$endpoint");
		like($open->{message}, $refused{$endpoint}, 'and why');
	}
	my ($plain) = drive('--http', 'no', 'bucket');

	is($plain->{outcome}, 'usage', 'http is refused unless it is allowed');
	foreach my $bucket ('a', 'a/b', 'a b', '../x', 'x' x 64, '')
	{
		my ($open) = drive('--bucket', $bucket, 'bucket');

		is($open->{outcome}, 'usage', "no bucket: \"$bucket\"");
	}
	my ($number) = drive('--style', 'virtual', 'bucket');

	is($number->{outcome}, 'usage', 'a number has no names below it');
	my @names = map { (drive(@$_, 'name'))[0]{name} }
	  [ '--endpoint', '', '--region', 'eu-west-1' ],
	  [ '--endpoint', 'https://host:99' ],
	  [ '--endpoint', 'https://[::1]:99' ];

	is_deeply(
		\@names,
		[
			'bucket "archive" at https://s3.eu-west-1.amazonaws.com',
			'bucket "archive" at https://host:99',
			'bucket "archive" at https://[::1]:99'
		],
		'what messages call it');
	my ($region) = drive('--region', 'a:b', 'bucket');

	is($region->{outcome}, 'usage', 'no region');

	# Nobody there.
	my $start = time;
	my @dead = map { drive('--connect', 2, '--endpoint', $_, 'put', 'x',
			$small_file, ',', 'bucket') }
	  ('https://127.0.0.1:1', 'https://nowhere.invalid');

	is(outcomes(@dead), 'unreachable ' x 3 . 'unreachable',
		'nobody there, nor at the second try');
	ok(!(grep { $_->{maybe_done} || !$_->{retry_helps} } @dead),
		'so nothing was done, and it may get better');
	cmp_ok(time - $start, '<', 30, 'in bounded time');

	# What the environment says of proxies and passwords is not for us.
	local %ENV = (%ENV,
		http_proxy => 'http://127.0.0.1:1', ALL_PROXY => 'http://127.0.0.1:1',
		HOME => $folder);

	write_file('.netrc', "machine 127.0.0.1 login nobody password none\n");
	is(outcomes(drive('bucket')), 'ok', 'no proxy and no .netrc');
	return;
}

sub test_memory
{
	my $file = "$folder/big";
	my $size = 200_000_000;

	is(system("head -c $size /dev/urandom >$file"), 0, 'a large file');
	my @results = drive('put', 'big', $file, ',', 'head', 'big', ',',
		'get', 'big', "$folder/got", ',', 'delete', 'big', ',', 'memory');

	is(outcomes(@results), 'ok ok ok ok', '200 MB');
	is($results[1]{length}, $size, 'its length');
	is(system('cmp', '-s', $file, "$folder/got"), 0, 'its bytes');
	note("peak $results[4]{peak_kb} kB");
	cmp_ok($results[4]{peak_kb}, '<=', 16 * 1024, 'in flat memory');

	# Of a body that was cut off, no store makes an object.
	$proxy->clear;
	$proxy->fault(1, 'PUT', '.', 'cut', 1_000_000);
	my ($cut) = in_proxy('put', 'big', $file);

	is($cut->{outcome}, 'unknown', 'cut off');
	ok(!$cut->{maybe_done}, 'is known not to be done');
	is(state_of('big'), 'absent', 'and is not');
	unlink $file, "$folder/got";
	return;
}

run_subtests(
	objects => \&test_objects,
	keys => \&test_keys,
	multipart => \&test_multipart,
	pages => \&test_pages,
	versions => \&test_versions,
	locks => \&test_locks,
	lifecycle => \&test_lifecycle,
	bucket => \&test_bucket,
	access => \&test_keys_of_access,
	clock => \&test_clock,
	addresses => \&test_addresses,
	memory => \&test_memory);
check_silence();

done_testing();
