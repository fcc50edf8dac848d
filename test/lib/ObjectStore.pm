
=pod

=head1 NAME

ObjectStore - a real object store, and a client of it that shares no code
with the project

=head1 SYNOPSIS

  use ObjectStore;

  my $store = ObjectStore->new(memory => 1);
  my $answer = $store->request('PUT', 'archive', 'key', body => 'text');
  is($answer->{status}, 200);
  $store->stop;

=head1 DESCRIPTION

Starts test/objectstore/start in a temporary folder on free ports, and ends it
with the test.  Buckets: C<archive> is plain, C<locked> has object lock and is
versioned, C<versioned> is versioned only.

Its requests are signed by this file with the modules that Perl brings along,
so that what the program did is looked at with other eyes.

=cut

package ObjectStore;

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex hmac_sha256 hmac_sha256_hex);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use File::Temp ();
use IO::Socket::INET;
use POSIX qw(strftime);

# A test that is ended by a signal ends its stores, too: see END.
use sigtrap qw(die normal-signals);
use Time::HiRes qw(usleep);

my $project = abs_path(dirname(__FILE__) . '/../..');

# Public on purpose.  The slash is there because many programs got it wrong.
my $access_key = 'TESTACCESSKEY0000001';
my $secret_key = 'testsecret/with+slash0000000000000000001';

my $ports = 11;    # that a store takes
my $patience = 120;

# Every store of this process that runs, so that none outlives it.
my %running;

=pod

=head1 METHODS

=over

=item ObjectStore->new(memory => 1, day_seconds => 5)

Starts a store and waits until it answers.  With C<memory> the objects lie in
memory, which starts quicker.  C<day_seconds> is the length of a day of a
lifecycle.

=item ObjectStore->at($folder, $port)

The client of a store that was started by other means.

=cut

sub at
{
	my ($class, $folder, $port) = @_;

	return bless {
		folder => $folder,
		port => $port,
		access_key => $access_key,
		secret_key => $secret_key
	}, $class;
}

sub new
{
	my ($class, %options) = @_;
	my $folder =
	  File::Temp::tempdir('pg-evidence-store-XXXXXX', TMPDIR => 1);
	my $self = $class->at($folder, 0);

	$self->{options} = \%options;

	# Between looking for free ports and taking them, another may take them.
	foreach my $try (1 .. 5)
	{
		$self->{port} = _free_ports();
		$running{$folder} = $self;
		return $self if $self->start;
		$self->stop;
		remove_tree($folder, { keep_root => 1 });
	}
	die "could not start an object store: $self->{error}";
}

# The first of as many ports that nobody has.  Above those of most servers
# and below those that the kernel gives away.
sub _free_ports
{
	foreach my $try (1 .. 200)
	{
		my $first = 15000 + $ports * int(rand(1500));
		my @sockets = grep { defined } map {
			IO::Socket::INET->new(
				LocalAddr => '127.0.0.1',
				LocalPort => $first + $_,
				Listen => 1)
		} (0 .. $ports - 1);

		return $first if @sockets == $ports;
	}
	die "no $ports free ports in a row";
}

=pod

=item $store->start

Starts what does not run of it, with the objects it had.  True if that went
well.

=item $store->stop, $store->stop('client')

Ends it, or one of its daemons: client is the gateway.

=item $store->kill_gateway

The same with a signal that it cannot handle.

=cut

sub start
{
	my ($self) = @_;
	my $options = $self->{options};

	local $ENV{STORE_MEMORY} = $options->{memory} ? 1 : '';
	local $ENV{STORE_DAY_SECONDS} = $options->{day_seconds} // '';
	my $output = `'$project/test/objectstore/start' '$self->{folder}' $self->{port} 2>&1 </dev/null`;

	$self->{error} = $output;
	return $? == 0;
}

sub stop
{
	my ($self, @daemons) = @_;

	system("$project/test/objectstore/stop", $self->{folder}, @daemons);
	delete $running{ $self->{folder} } unless @daemons;
	return;
}

sub kill_gateway
{
	my ($self) = @_;
	my $pid = $self->gateway_pid;

	kill 'KILL', $pid or die "could not kill the gateway: $!";
	usleep(20_000) while kill 0, $pid;
	return;
}

=pod

=item $store->gateway_pid

=cut

sub gateway_pid
{
	my ($self) = @_;

	open my $file, '<', "$self->{folder}/client.pid"
	  or die "no gateway runs";
	my ($pid) = <$file> =~ /(\d+)/;
	close $file;
	return $pid;
}

=pod

=item $store->endpoint, $store->tls_endpoint, $store->ca_file, $store->port

Where it is, and who has signed its certificate.

=item $store->environment

The variables that tell a program of the store and the keys.

=cut

sub port { return $_[0]{port}; }
sub endpoint { return "http://127.0.0.1:$_[0]{port}"; }
sub tls_endpoint { return 'https://127.0.0.1:' . ($_[0]{port} + 1); }
sub ca_file { return "$_[0]{folder}/tls/ca.crt"; }

sub environment
{
	my ($self) = @_;

	return (
		AWS_ENDPOINT_URL_S3 => $self->endpoint,
		AWS_ACCESS_KEY_ID => $access_key,
		AWS_SECRET_ACCESS_KEY => $secret_key,
		AWS_REGION => 'us-east-1');
}

sub access_key { return $access_key; }
sub secret_key { return $secret_key; }
sub keys_text { return "$access_key $secret_key\n"; }

# Each byte but these, whatever the locale.
sub _encode
{
	my ($text, $keep) = @_;

	$text =~ s/([^A-Za-z0-9\-._~$keep])/sprintf('%%%02X', ord $1)/ge;
	return $text;
}

=pod

=item $store->request($method, $bucket, $key, query => {}, headers => {},
body => '', keys => [access, secret, token])

Makes a signed request; bucket and key may be empty.  Returns a hash with
status, headers (lower-case names) and body.  Dies when there is no answer.

=cut

sub request
{
	my ($self, $method, $bucket, $key, %options) = @_;
	my $body = $options{body} // '';
	my %query = %{ $options{query} // {} };
	my ($access, $secret, $token) =
	  @{ $options{keys} // [ $access_key, $secret_key ] };
	my $host = "127.0.0.1:$self->{port}";
	my $now = strftime('%Y%m%dT%H%M%SZ', gmtime);
	my $path = '/'
	  . _encode(join('/', grep { defined && length } $bucket, $key), '/');
	my $query = join '&',
	  map { _encode($_, '') . '=' . _encode($query{$_}, '') }
	  sort keys %query;
	my %headers = (
		%{ $options{headers} // {} },
		'host' => $host,
		'x-amz-date' => $now,
		'x-amz-content-sha256' => sha256_hex($body),
		defined $token ? ('x-amz-security-token' => $token) : ());
	my $service = $options{service} // 's3';

	$headers{authorization} =
	  _authorization($access, $secret, $now, $service,
		$method, $path, $query, \%headers);
	$headers{'content-length'} = length $body;
	$headers{connection} = 'close';

	my $socket = IO::Socket::INET->new(
		PeerAddr => '127.0.0.1',
		PeerPort => $self->{port},
		Timeout => 30) or die "no connection to the store: $!";
	my $target = length $query ? "$path?$query" : $path;

	print $socket "$method $target HTTP/1.1\r\n",
	  map({ "$_: $headers{$_}\r\n" } sort keys %headers), "\r\n", $body;
	return _read_answer($socket, $method);
}

# Signature Version 4 of one request.
sub _authorization
{
	my ($access, $secret, $now, $service, $method, $path, $query, $headers) =
	  @_;
	my $day = substr $now, 0, 8;
	my $scope = "$day/us-east-1/$service/aws4_request";
	my @names = sort keys %$headers;
	my $signed = join ';', @names;
	my $canonical = join "\n", $method, $path, $query,
	  map({ "$_:$headers->{$_}" } @names), '', $signed,
	  $headers->{'x-amz-content-sha256'};
	my $text = join "\n", 'AWS4-HMAC-SHA256', $now, $scope,
	  sha256_hex($canonical);
	my $signer = "AWS4$secret";

	$signer = hmac_sha256($_, $signer)
	  foreach $day, 'us-east-1', $service, 'aws4_request';
	return "AWS4-HMAC-SHA256 Credential=$access/$scope,"
	  . "SignedHeaders=$signed,Signature="
	  . hmac_sha256_hex($text, $signer);
}

# The whole answer; the connection is closed behind it.
sub _read_answer
{
	my ($socket, $method) = @_;
	my ($answer, %headers) = ('');

	while (1)
	{
		my $got = sysread $socket, $answer, 1 << 20, length $answer;

		die "the store's answer is broken: $!" unless defined $got;
		last unless $got;
	}

	# What came before the final one says nothing.
	$answer =~ s/\AHTTP\/1\.1 100.*?\r\n\r\n//s;
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;

	die 'the store gave no answer' unless defined $head;
	my ($status, @lines) = split /\r\n/, $head;

	foreach my $line (@lines)
	{
		my ($name, $value) = split /:\s*/, $line, 2;

		$headers{ lc $name } = $value;
	}
	($status) = $status =~ /\AHTTP\/\S+ (\d+)/
	  or die "the store's answer is none: $head";
	$body = _unchunk($body) if ($headers{'transfer-encoding'} // '') eq 'chunked';
	return { status => $status, headers => \%headers, body => $body // '' };
}

sub _unchunk
{
	my ($body) = @_;
	my $whole = '';

	while ($body =~ s/\A([0-9a-fA-F]+)[^\r\n]*\r\n//)
	{
		my $length = hex $1 or last;

		$whole .= substr $body, 0, $length, '';
		$body =~ s/\A\r\n//;
	}
	return $whole;
}

=pod

=item $store->prepare

Waits until it answers and makes the buckets that are missing.

=item $store->make_bucket($name, lock => 1, versions => 1)

=cut

sub prepare
{
	my ($self) = @_;
	my $deadline = time + $patience;

	until (eval { $self->request('GET', '', '')->{status} == 200 })
	{
		die "the gateway does not answer, see $self->{folder}/client.log\n"
		  if time > $deadline;
		usleep(50_000);
	}
	$self->make_bucket('archive');
	$self->make_bucket('locked', lock => 1);
	$self->make_bucket('versioned', versions => 1);
	return;
}

sub make_bucket
{
	my ($self, $name, %options) = @_;
	my %headers;

	return if $self->request('HEAD', $name, '')->{status} == 200;
	$headers{'x-amz-bucket-object-lock-enabled'} = 'true' if $options{lock};
	_expect($self->request('PUT', $name, '', headers => \%headers), 200);
	_expect(
		$self->request(
			'PUT', $name, '',
			query => { versioning => '' },
			body => '<VersioningConfiguration><Status>Enabled</Status>'
			  . '</VersioningConfiguration>'),
		200) if $options{versions};
	return;
}

sub _expect
{
	my ($answer, $status) = @_;

	die "the store answered $answer->{status}: $answer->{body}"
	  unless $answer->{status} == $status;
	return $answer;
}

=pod

=item $store->keys_in($bucket, $prefix)

The keys of the objects in a bucket, in order, up to a thousand.

=item $store->put($bucket, $key, $body, %headers)

=item $store->object($bucket, $key)

What request() returns for a GET.

=cut

sub keys_in
{
	my ($self, $bucket, $prefix) = @_;
	my $answer = _expect(
		$self->request(
			'GET', $bucket, '',
			query => {
				'list-type' => 2,
				'encoding-type' => 'url',
				prefix => $prefix // ''
			}),
		200);

	# The one character that is not encoded comes as XML has it.
	return map { s/&apos;/'/gr }
	  map { s/%([0-9A-Fa-f]{2})/chr hex $1/ger }
	  $answer->{body} =~ m{<Key>([^<]*)</Key>}g;
}

sub put
{
	my ($self, $bucket, $key, $body, %headers) = @_;

	return _expect(
		$self->request(
			'PUT', $bucket, $key,
			body => $body,
			headers => \%headers),
		200);
}

sub object
{
	my ($self, $bucket, $key) = @_;

	return $self->request('GET', $bucket, $key);
}

=pod

=item ObjectStore::driver()

The path of test/objectstore/s3_driver, which is built if need be.

=item $store->temporary_keys

An access key, a secret key and a session token, for an hour.

=back

=cut

sub driver
{
	my $folder = "$project/test/objectstore";
	local %ENV = %ENV;

	delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};

	# Two tests that run at the same time must not build it both.
	open my $lock, '<', "$folder/Makefile" or die "no $folder/Makefile: $!";
	flock $lock, LOCK_EX;
	system('make', '-s', '-C', $folder) == 0
	  or die 'could not build the driver';
	close $lock;
	return "$folder/build/s3_driver";
}

sub temporary_keys
{
	my ($self) = @_;
	my %role = (RoleName => 'tester');

	# It may be there from the last time.
	$self->request(
		'POST', '', '',
		service => 'iam',
		query => {
			%role,
			Action => 'CreateRole',
			Path => '/',
			AssumeRolePolicyDocument => _policy('"Action":"sts:AssumeRole",'
				  . '"Principal":{"AWS":"arn:aws:iam:::user/test"}')
		});
	_expect(
		$self->request(
			'POST', '', '',
			service => 'iam',
			query => {
				%role,
				Action => 'PutRolePolicy',
				PolicyName => 'all',
				PolicyDocument =>
				  _policy('"Action":"s3:*","Resource":"arn:aws:s3:::*"')
			}),
		200);
	my $answer = _expect(
		$self->request(
			'POST', '', '',
			service => 'sts',
			query => {
				Action => 'AssumeRole',
				RoleArn => 'arn:aws:iam:::role/tester',
				RoleSessionName => 'session',
				DurationSeconds => 3600
			}),
		200);
	my %value = $answer->{body} =~
	  m{<(AccessKeyId|SecretAccessKey|SessionToken)>([^<]*)<}g;

	return @value{qw(AccessKeyId SecretAccessKey SessionToken)};
}

sub _policy
{
	my ($statement) = @_;

	return '{"Version":"2012-10-17","Statement":[{"Effect":"Allow",'
	  . "$statement}]}";
}

# Only the process that started a store ends it, not one that it forked.
my $owner = $$;

END
{
	if ($$ == $owner)
	{
		local $?;
		foreach my $store (values %running)
		{
			$store->stop;
			remove_tree($store->{folder});
		}
	}
}

1;
