
=pod

=head1 NAME

FakeStore - an object store that does what a test tells it

=head1 SYNOPSIS

  use FakeStore;

  my $store = FakeStore->new;
  $store->answer(3, 'PUT', qr/\.zip/, 503, 'SlowDown', 'Retry-After: 1');
  # ... have the program talk to $store->endpoint ...
  is(scalar $store->requests('PUT'), 4);

=head1 DESCRIPTION

For what a real store cannot be brought to do: a clock that is wrong, keys that
expire, storms of refusals, a bucket in the host name, checksums that are asked
for.  It keeps objects in memory, understands PUT, HEAD, GET and DELETE of
objects, has nothing to list, and checks no signature.  One process, one
request at a time, each on a connection of its own.

=cut

package FakeStore;

use strict;
use warnings;

use File::Temp ();
use IO::Socket::INET;
use POSIX ();

=pod

=head1 METHODS

=over

=item FakeStore->new

Starts it; it ends with the object.

=cut

sub new
{
	my ($class) = @_;
	my $listener = IO::Socket::INET->new(
		LocalAddr => '127.0.0.1',
		Listen => 64,
		ReuseAddr => 1) or die "no port for a store: $!";
	my $folder = File::Temp::tempdir(
		'pg-evidence-fake-XXXXXX',
		TMPDIR => 1,
		CLEANUP => 1);
	my $self = bless {
		port => $listener->sockport,
		rules => "$folder/rules",
		log => "$folder/log",
		owner => $$
	}, $class;

	$self->clear;
	$self->{pid} = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		$SIG{PIPE} = 'IGNORE';
		eval { $self->_serve($listener); };
		POSIX::_exit(1);
	}
	close $listener;
	return $self;
}

=pod

=item $store->port, $store->endpoint

=item $store->answer(count, method, regex, status, code, header...)

The next count requests that match are answered with that status and an Error
document with that code; -1 is for ever.  Headers are those of the answer; of
C<Date> there is one then.  Status 200 with a header alone lets the request
through and adds it.

=item $store->clear

Forgets all answers and all requests, not the objects.

=item $store->requests(method)

What was asked for: a list of hashes with method, target and headers.

=cut

sub port { return $_[0]{port}; }
sub endpoint { return "http://127.0.0.1:$_[0]{port}"; }

sub answer
{
	my ($self, $count, $method, $regex, $status, $code, @headers) = @_;

	open my $file, '>>', $self->{rules} or die "could not write a rule: $!";
	print $file join("\t", $count, $method, $regex, $status, $code, @headers),
	  "\n";
	close $file or die "could not write a rule: $!";
	return;
}

sub clear
{
	my ($self) = @_;

	foreach my $name (qw(rules log))
	{
		open my $file, '>', $self->{$name}
		  or die "could not write $self->{$name}: $!";
		close $file;
	}
	return;
}

sub requests
{
	my ($self, $method) = @_;
	my @requests;

	local $/ = "\n\n";
	open my $file, '<', $self->{log} or die "could not read the log: $!";
	while (my $block = <$file>)
	{
		my ($first, @lines) = split /\n/, $block;
		my ($verb, $target) = split / /, $first;

		next if defined $method && $verb ne $method;
		push @requests,
		  {
			method => $verb,
			target => $target,
			headers => { map { split /: /, $_, 2 } @lines }
		  };
	}
	close $file;
	return @requests;
}

sub DESTROY
{
	my ($self) = @_;

	return if $self->{owner} != $$ || !$self->{pid};
	local $?;
	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	return;
}

sub _serve
{
	my ($self, $listener) = @_;
	my %objects;

	while (my $socket = $listener->accept)
	{
		binmode $socket;
		eval { $self->_answer($socket, \%objects); };
		close $socket;
	}
	return;
}

# Read one request and answer it.
sub _answer
{
	my ($self, $socket, $objects) = @_;
	my $first = <$socket> // return;
	my ($method, $target) = $first =~ /^(\S+) (\S+) HTTP/ or return;
	my %headers;

	while (my $line = <$socket>)
	{
		$line =~ s/\r\n\z//;
		last if $line eq '';
		my ($name, $value) = split /:\s*/, $line, 2;
		$headers{ lc $name } = $value;
	}
	my $rule = $self->_rule($method, $target);
	my $length = $headers{'content-length'} // 0;
	my $body = '';

	# A refusal comes before the body, as a real store has it.
	if ($length > 0 && (!$rule || $rule->{status} == 200))
	{
		print $socket "HTTP/1.1 100 Continue\r\n\r\n"
		  if defined $headers{expect};
		$socket->flush;
		read $socket, $body, $length;
	}
	open my $log, '>>', $self->{log} or die;
	print $log "$method $target\n",
	  map({ "$_: $headers{$_}\n" } sort keys %headers), "\n";
	close $log;

	if ($rule && $rule->{status} != 200)
	{
		my $document = $method eq 'HEAD' ? '' :
		  "<Error><Code>$rule->{code}</Code><Message>made up</Message></Error>";

		return _send($socket, $rule->{status}, $document,
			@{ $rule->{headers} });
	}
	return _store($socket, $method, $target, $body, \%headers, $objects,
		@{ $rule ? $rule->{headers} : [] });
}

# The first rule that fits and is not used up.
sub _rule
{
	my ($self, $method, $target) = @_;
	my $found;

	open my $file, '<', $self->{rules} or die;
	my @lines = <$file>;
	close $file;
	foreach my $line (@lines)
	{
		chomp(my $text = $line);
		my ($count, $verb, $regex, $status, $code, @headers) =
		  split /\t/, $text;

		next
		  if $count == 0
		  || ($verb ne '*' && $verb ne $method)
		  || $target !~ /$regex/;
		$found = { status => $status, code => $code, headers => \@headers };
		$count-- if $count > 0;
		$line = join("\t", $count, $verb, $regex, $status, $code, @headers)
		  . "\n";
		last;
	}
	open $file, '>', "$self->{rules}.new" or die;
	print $file @lines;
	close $file;
	rename "$self->{rules}.new", $self->{rules} or die;
	return $found;
}

# What a store does.
sub _store
{
	my ($socket, $method, $target, $body, $headers, $objects, @more) = @_;
	my ($path) = split /\?/, $target;
	my $key = "$headers->{host} $path";
	my $object = $objects->{$key};

	if ($method eq 'PUT')
	{
		return _send($socket, 412, '<Error><Code>PreconditionFailed</Code></Error>')
		  if $object && ($headers->{'if-none-match'} // '') eq '*';
		$objects->{$key} =
		  { body => $body, sha256 => $headers->{'x-amz-meta-sha256'} };
		return _send($socket, 200, '', 'ETag: "made-up"', @more);
	}
	if ($method eq 'DELETE')
	{
		delete $objects->{$key};
		return _send($socket, 204, '', @more);
	}
	# The bucket itself, in the path or in the host name.
	return _send($socket, 200, '<ListBucketResult></ListBucketResult>', @more)
	  if $path =~ m{^/[a-z0-9-]*/?$} && !$object;
	return _send($socket, 404,
		$method eq 'HEAD' ? '' : '<Error><Code>NoSuchKey</Code></Error>',
		@more)
	  unless $object;
	return _send(
		$socket, 200,
		$method eq 'HEAD' ? undef : $object->{body},
		'ETag: "made-up"',
		$method eq 'HEAD' ? 'Content-Length: ' . length $object->{body} : (),
		defined $object->{sha256} ?
		  "x-amz-meta-sha256: $object->{sha256}" : (),
		@more);
}

# A body of undef is none, whose length is told by a header.
sub _send
{
	my ($socket, $status, $body, @headers) = @_;

	push @headers, POSIX::strftime('Date: %a, %d %b %Y %H:%M:%S GMT', gmtime)
	  unless grep { /^Date:/i } @headers;
	push @headers, 'Content-Length: ' . length $body if defined $body;
	print $socket join("\r\n",
		"HTTP/1.1 $status Made up",
		@headers, 'Connection: close', '', ''),
	  $body // '';
	$socket->flush;
	return;
}

=pod

=back

=cut

1;
