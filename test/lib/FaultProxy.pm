
=pod

=head1 NAME

FaultProxy - stands between a program and an object store, and breaks things

=head1 SYNOPSIS

  use FaultProxy;

  my $proxy = FaultProxy->new($store->port);
  $proxy->fault(1, 'PUT', qr/key/, 'status', 503, 'Retry-After: 7');
  # ... have the program talk to $proxy->endpoint ...
  is($proxy->count('PUT', qr/key/), 2);
  $proxy->clear;

=head1 DESCRIPTION

A proxy for plain HTTP/1.1 on loopback, one process for each connection, with
nothing but what comes with Perl.  The Host header goes through as it came, so
signatures stay right.  Rules are read anew for each request, from a file with
one rule a line:

  COUNT METHOD PATH-REGEX FAULT ARGUMENT...

The first rule that matches and whose COUNT is not used up fires; -1 is for
ever, METHOD may be C<*>.  Blanks in a regex are written C<\s>.  The path
includes the query.

=head2 Faults

  pass                    nothing; for a rule that shall not reach later ones
  delay SECONDS           wait, then pass
  status CODE [HEADER]    answer with that and an Error document; nothing is
                          forwarded
  refuse CODE WORD        answer with that and an Error document of that word;
                          nothing is forwarded
  echo CODE               answer with that and an Error document that repeats
                          the head of the request; nothing is forwarded
  answer FILE             answer with the bytes of that file, then close;
                          nothing is forwarded
  page                    answer 200 with a web page; nothing is forwarded
  error CODE              answer 200 with an Error document of that code;
                          nothing is forwarded
  redirect URL            answer 307; nothing is forwarded
  close, rst              at once, without an answer
  continue                answer "100 Continue" alone, take the body, close
  eat BYTES               take so many bytes of the body without a word, close
  cut BYTES               forward so many bytes of the body, then reset
  stall BYTES             forward so many bytes of the body, then stand still
  swallow close, swallow rst, swallow hang, swallow STATUS
                          let the store do it, but keep its answer and do that
  short BYTES             the store's answer, with its body cut after so many
  hold BYTES              the same, then stand still
  trickle BYTES           the answer's body, so many bytes a second

=cut

package FaultProxy;

use strict;
use warnings;

use Fcntl qw(:flock SEEK_SET);
use File::Temp ();
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep);

my $block = 1 << 18;

=pod

=head1 METHODS

=over

=item FaultProxy->new($port)

Starts a proxy in front of that port of this host; it ends with the object.

=cut

sub new
{
	my ($class, $target) = @_;
	my $listener = IO::Socket::INET->new(
		LocalAddr => '127.0.0.1',
		Listen => 64,
		ReuseAddr => 1) or die "no port for a proxy: $!";
	my $folder = File::Temp::tempdir(
		'pg-evidence-proxy-XXXXXX',
		TMPDIR => 1,
		CLEANUP => 1);
	my $self = bless {
		target => $target,
		port => $listener->sockport,
		rules => "$folder/rules",
		log => "$folder/log",
		owner => $$
	}, $class;

	$self->clear;
	$self->{pid} = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		# A group of its own, so that its children end with it.
		setpgrp;
		eval { $self->_serve($listener); };
		POSIX::_exit(1);
	}
	close $listener;
	return $self;
}

=pod

=item $proxy->endpoint

=item $proxy->fault(count, method, regex, fault, arguments...)

Adds a rule behind those that are there.

=item $proxy->clear

Forgets all rules and all requests.

=item $proxy->requests

What was asked for since then, one "METHOD path fault process" each.

=item $proxy->count(method, regex)

How many of them.

=item $proxy->connections

How many connections they came over.

=back

=cut

sub endpoint { return "http://127.0.0.1:$_[0]{port}"; }

sub fault
{
	my ($self, $count, $method, $regex, @fault) = @_;

	_append($self->{rules}, join(' ', $count, $method, $regex, @fault) . "\n");
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
	my ($self) = @_;

	open my $file, '<', $self->{log} or die "could not read the log: $!";
	my @lines = <$file>;

	close $file;
	chomp @lines;
	return @lines;
}

sub count
{
	my ($self, $method, $regex) = @_;

	return scalar grep { /^\Q$method\E / && /$regex/ } $self->requests;
}

sub connections
{
	my ($self) = @_;
	my %process = map { (split ' ')[-1] => 1 } $self->requests;

	return scalar keys %process;
}

sub DESTROY
{
	my ($self) = @_;

	return unless $self->{owner} == $$ && $self->{pid};
	local ($?, $!);
	kill 'KILL', -$self->{pid}, $self->{pid};
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

sub _append
{
	my ($name, $line) = @_;

	open my $file, '>>', $name or die "could not write $name: $!";
	syswrite $file, $line;
	close $file;
	return;
}

# The next rule for a request, as a list of words; its count goes down.
sub _take_rule
{
	my ($self, $method, $path) = @_;
	my @fault = ('pass');
	my $fired = 0;

	open my $file, '+<', $self->{rules} or return @fault;
	flock $file, LOCK_EX;
	my @lines = <$file>;

	foreach my $line (@lines)
	{
		my ($count, $of, $regex, @words) = split ' ', $line;

		next if $fired || $count == 0 || ($of ne '*' && $of ne $method);
		next unless $path =~ /$regex/;
		@fault = @words;
		$fired = 1;
		$count-- if $count > 0;
		$line = join(' ', $count, $of, $regex, @words) . "\n";
	}
	seek $file, 0, SEEK_SET;
	print $file @lines;
	truncate $file, tell $file;
	close $file;
	return @fault;
}

# The process that accepts, until it is killed.
sub _serve
{
	my ($self, $listener) = @_;

	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = 'DEFAULT';
	while (1)
	{
		my $client = $listener->accept or next;

		if (fork == 0)
		{
			close $listener;
			eval { $self->_connection($client); };
			POSIX::_exit(0);
		}
		close $client;
	}
}

# All requests of one connection.
sub _connection
{
	my ($self, $client) = @_;
	my $server = IO::Socket::INET->new(
		PeerAddr => '127.0.0.1',
		PeerPort => $self->{target});

	binmode $client;
	while (defined(my $head = _read_head($client)))
	{
		my ($method, $path) = $head =~ /\A(\S+) (\S+)/ or last;
		my ($length) = $head =~ /^content-length:\s*(\d+)/im;
		my @fault = $self->_take_rule($method, $path);
		my %request = (
			client => $client,
			server => $server,
			head => $head,
			method => $method,
			body => $length // 0,
			expects => scalar($head =~ /^expect:\s*100/im));

		_append($self->{log}, "$method $path $fault[0] $$\n");
		last unless _fault(\%request, @fault);
	}
	close $client;
	return;
}

# The head of a message, blank line included; undef when there is none.
sub _read_head
{
	my ($socket) = @_;
	my $head = '';

	# A byte at a time, so that nothing of the body is taken.
	until ($head =~ /\r\n\r\n\z/)
	{
		my $got = sysread $socket, $head, 1, length $head;

		return undef unless $got;
	}
	return $head;
}

# Do what a rule says.  True if the connection can be used again.
sub _fault
{
	my ($request, $fault, @arguments) = @_;
	my $client = $request->{client};

	if ($fault eq 'delay')
	{
		sleep $arguments[0];
		return _relay($request);
	}
	if ($fault =~ /^(?:status|refuse|echo|page|error|redirect)$/)
	{
		_answer($request, $fault, @arguments);
		return _is_read($request);
	}
	if ($fault eq 'answer')
	{
		open my $file, '<:raw', $arguments[0] or die "no $arguments[0]: $!";
		local $/;
		_write($client, scalar <$file>);
		close $file;

		# The other side may still be sending; a reset would hide the answer.
		shutdown $client, 1;
		return _hang($client);
	}
	return 0 if $fault eq 'close';
	return _reset($client) if $fault eq 'rst';
	if ($fault eq 'continue')
	{
		_write($client, "HTTP/1.1 100 Continue\r\n\r\n");
		_discard($client, $request->{body});
		return 0;
	}
	if ($fault eq 'eat')
	{
		_discard($client, $arguments[0]);
		return 0;
	}
	return _relay($request) if $fault eq 'pass';
	$request->{fault} = $fault;
	$request->{argument} = $arguments[0];
	return _relay($request);
}

# Was the body announced but not sent?  Then the next request can follow.
sub _is_read
{
	my ($request) = @_;

	return $request->{body} == 0 || $request->{expects};
}

# An answer of our own.
sub _answer
{
	my ($request, $fault, @arguments) = @_;
	my ($status, $body, @headers) = (200, '');

	if ($fault eq 'refuse')
	{
		$status = $arguments[0];
		$body = "<Error><Code>$arguments[1]</Code>"
		  . '<Message>made up</Message></Error>';
	}
	elsif ($fault eq 'echo')
	{
		my $head = $request->{head};
		my ($keys) = $head =~ /^authorization:\s*([^\r\n]*)/im;
		my ($token) = $head =~ /^x-amz-security-token:\s*([^\r\n]*)/im;

		# In every field that the other side might repeat.
		$status = $arguments[0];
		@headers = 'x-amz-request-id: ' . ($token // $keys);
		$body = '<Error><Code>' . substr($token // $keys, 0, 60) . '</Code>'
		  . "<Message>at http://host/key?X-Amz-Signature=0123abcd&amp;x=1 "
		  . "$keys " . ($token // '') . '</Message></Error>';
	}
	elsif ($fault eq 'status')
	{
		my ($code, @words) = @arguments;
		my %word = (
			500 => 'InternalError',
			503 => 'SlowDown',
			429 => 'TooManyRequests');

		$status = $code;
		@headers = join(' ', @words) if @words;
		$body = '<Error><Code>'
		  . ($word{$code} // 'Other')
		  . '</Code><Message>made up</Message></Error>';
	}
	elsif ($fault eq 'page')
	{
		@headers = 'Content-Type: text/html';
		$body = '<html><body>Please sign in to this network.</body></html>';
	}
	elsif ($fault eq 'error')
	{
		$body =
		  "\n\n<?xml version=\"1.0\"?>\n<Error><Code>$arguments[0]</Code>"
		  . '<Message>made up</Message></Error>';
		$body =~ s/\A\s+//;
	}
	else
	{
		$status = 307;
		@headers = "Location: $arguments[0]";
	}
	my $length = length $body;

	$body = '' if $request->{method} eq 'HEAD';
	_write(
		$request->{client},
		join("\r\n",
			"HTTP/1.1 $status Made up", "Content-Length: $length",
			@headers, '', $body));
	return;
}

sub _write
{
	my ($socket, $text) = @_;
	my $offset = 0;

	while ($offset < length $text)
	{
		my $written = syswrite $socket, $text, $block, $offset;

		die 'the other side is gone' unless defined $written;
		$offset += $written;
	}
	return;
}

sub _discard
{
	my ($socket, $bytes) = @_;

	while ($bytes > 0)
	{
		my $want = $bytes < $block ? $bytes : $block;
		my $got = sysread($socket, my $data, $want);

		last unless $got;
		$bytes -= $got;
	}
	return;
}

# End the connection with a reset.
sub _reset
{
	my ($client) = @_;

	setsockopt $client, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
	close $client;
	return 0;
}

# Stand still until the client goes away.
sub _hang
{
	my ($client) = @_;

	1 while sysread($client, my $data, $block);
	return 0;
}

# Let the request through and the answer back, but for what the fault says.
sub _relay
{
	my ($request) = @_;
	my ($client, $server) = @$request{qw(client server)};
	my $rest = $request->{body};
	my $fault = $request->{fault} // '';
	my $limit =
	  $fault =~ /^(?:cut|stall)$/ ? $request->{argument} : undef;
	my $sent = 0;

	return 0 unless $server;
	_write($server, $request->{head});
	while (1)
	{
		my $sockets = IO::Select->new($server);

		$sockets->add($client) if $rest > 0;
		foreach my $socket ($sockets->can_read)
		{
			if ($socket == $server)
			{
				my $status = _read_answer($request) // return 0;

				# Before the body is out: "100 Continue", or a refusal.
				next if $status == 100;
				return $rest == 0 || ($sent == 0 && $request->{expects})
				  ? $request->{usable}
				  : 0;
			}
			my $want = $rest < $block ? $rest : $block;

			$want = $limit - $sent if defined $limit && $limit - $sent < $want;
			my $got = sysread($client, my $data, $want) || return 0;

			_write($server, $data);
			$rest -= $got;
			$sent += $got;
			next unless defined $limit && $sent >= $limit;
			return $fault eq 'cut' ? _reset($client) : _hang($client);
		}
	}
}

# Read one answer of the store and pass it on; its status, or undef when the
# connection is over.
sub _read_answer
{
	my ($request) = @_;
	my ($client, $server) = @$request{qw(client server)};
	my $fault = $request->{fault} // '';
	my $head = _read_head($server) // return undef;
	my ($status) = $head =~ /\AHTTP\/\S+ (\d+)/;
	my ($length) = $head =~ /^content-length:\s*(\d+)/im;
	my $chunked = $head =~ /^transfer-encoding:\s*chunked/im;

	if ($status == 100)
	{
		_write($client, $head);
		return $status;
	}
	$length = 0
	  if $request->{method} eq 'HEAD' || $status == 204 || $status == 304;
	return _swallow($request, $length, $chunked) if $fault eq 'swallow';
	_write($client, $head);
	$request->{usable} = $head !~ /^connection:\s*close/im;
	if ($chunked && $request->{method} ne 'HEAD')
	{
		return _pass_chunks($request) ? $status : undef;
	}
	return _pass_body($request, $length // 0) ? $status : undef;
}

# The store has done it, and nobody is to know.
sub _swallow
{
	my ($request, $length, $chunked) = @_;
	my $client = $request->{client};
	my $how = $request->{argument};

	if ($chunked && $request->{method} ne 'HEAD')
	{
		_pass_chunks({ server => $request->{server} });
	}
	else
	{
		_discard($request->{server}, $length // 0);
	}
	if ($how =~ /^\d+$/)
	{
		_answer($request, 'status', $how);
		$request->{usable} = 1;
		return $how;
	}
	_reset($client) if $how eq 'rst';
	_hang($client) if $how eq 'hang';
	return undef;
}

# The body of an answer; false if it does not end well.
sub _pass_body
{
	my ($request, $length) = @_;
	my ($client, $server) = @$request{qw(client server)};
	my $fault = $request->{fault} // '';
	my $passed = 0;

	while ($passed < $length)
	{
		my $want = $length - $passed;

		$want = $block if $want > $block;
		if ($fault =~ /^(?:short|hold|trickle)$/)
		{
			my $limit = $request->{argument};

			return 0 if $fault eq 'short' && $passed >= $limit;
			return _hang($client) if $fault eq 'hold' && $passed >= $limit;
			sleep 1 if $fault eq 'trickle';
			$limit -= $passed unless $fault eq 'trickle';
			$want = $limit if $limit < $want;
		}
		my $got = sysread($server, my $data, $want) || return 0;

		_write($client, $data);
		$passed += $got;
	}
	return 1;
}

# Chunks with their lengths as they come; to nobody without a client.  False
# if they do not end well.
sub _pass_chunks
{
	my ($request) = @_;
	my ($client, $server) = @$request{qw(client server)};
	my $fault = $request->{fault} // '';

	while (1)
	{
		my $line = '';

		until ($line =~ /\r\n\z/)
		{
			sysread($server, $line, 1, length $line) || return 0;
		}
		my $rest = hex($line =~ /\A([0-9a-fA-F]+)/ ? $1 : 0) + 2;
		my $last = $rest == 2;
		my $chunk = $line;

		while ($rest > 0)
		{
			my $got = sysread($server, $chunk, $rest, length $chunk) || return 0;

			$rest -= $got;
		}
		if ($fault =~ /^(?:short|hold)$/)
		{
			_write($client,
				substr $chunk, 0, length($line) + $request->{argument});
			return $fault eq 'hold' ? _hang($client) : 0;
		}
		_write($client, $chunk) if $client;
		return 1 if $last;
	}
}

1;
