
=pod

=head1 NAME

Delivery - a server whose archives go to an object store, and the uploaders
between the two

=head1 SYNOPSIS

  use Delivery;

  my $delivery = Delivery->new(ObjectStore->new(memory => 1));
  my $id = $delivery->staged;
  my ($code, $out, $err) = $delivery->upload;
  is($delivery->faults, '');

=head1 DESCRIPTION

A server with pg_evidence.delivery = object_store and a role C<courier> that
may deliver, a requester C<anna>, and what tests of the uploader do again and
again.  The program is run as the user says, with the keys to the store in its
environment; everything it ever printed is kept and searched for secrets.

=cut

package Delivery;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use EvidenceNode;
use IPC::Run ();
use ObjectStore;
use POSIX ();
use PostgreSQL::Test::Utils ();
use Test::More;
use Time::HiRes qw(usleep);

# Every uploader of this process.
my %running;

=pod

=head1 METHODS

=over

=item Delivery->new($store, setting => value, ...)

Makes and starts the server, with some rows in its log.  Settings are those of
EvidenceNode.

=item $delivery->node, $delivery->store, $delivery->folder

=item $delivery->bucket($name)

Which bucket uploads go to; C<archive> unless told.  Returns it.

=item $delivery->endpoint($url)

The address that programs are told; the store's own unless told.

=cut

sub new
{
	my ($class, $store, %settings) = @_;
	my $node = EvidenceNode->new(
		'main',
		delivery => 'object_store',
		lease => 5,
		max_active_per_requester => 1000,
		%settings);

	$node->start;
	$node->create_extension;
	$node->fill(300, 10);
	$node->safe_psql('postgres', <<~'SQL');
		CREATE ROLE courier LOGIN;
		CREATE ROLE anna LOGIN;
		SELECT evidence.grant_capability('courier', 'uploader'), evidence.grant_capability('anna', 'requester');
		SQL
	return bless {
		node => $node,
		store => $store,
		bucket => 'archive',
		endpoint => $store->endpoint,
		folder => PostgreSQL::Test::Utils::tempdir(),
		said => '',
		offset => 0,
		count => 0
	}, $class;
}

sub node { return $_[0]{node}; }
sub store { return $_[0]{store}; }
sub folder { return $_[0]{folder}; }

sub bucket
{
	my ($self, $name) = @_;

	$self->{bucket} = $name if defined $name;
	return $self->{bucket};
}

sub endpoint
{
	my ($self, $url) = @_;

	$self->{endpoint} = $url if defined $url;
	return $self->{endpoint};
}

=pod

=item $delivery->value($sql)

One value, with superuser's eyes.

=cut

sub value
{
	my ($self, $sql) = @_;
	my $result = $self->{node}->safe_psql('postgres', $sql);

	chomp $result;
	return $result;
}

=pod

=item $delivery->requested(...)

Requests an export with the arguments of EvidenceNode's request(), as anna
unless told, and returns its id.

=item $delivery->staged(...)

The same, but first waits until its archive waits to be delivered; for when
no uploader runs.

=item $delivery->key_of($id), $delivery->version_of($id)

Where the ledger says that its archive lies or will lie.

=cut

sub requested
{
	my ($self, %arguments) = @_;

	return $self->{node}->request(role => 'anna', %arguments);
}

sub staged
{
	my ($self, %arguments) = @_;
	my $id = $self->requested(%arguments);

	$self->{node}->wait_state($id, 'STAGED');
	return $id;
}

sub key_of
{
	my ($self, $id) = @_;

	return $self->value("SELECT object_key FROM evidence.known_objects('$self->{bucket}') WHERE export_id = '$id'");
}

sub version_of
{
	my ($self, $id) = @_;

	return $self->value("SELECT object_version FROM evidence.known_objects('$self->{bucket}') WHERE export_id = '$id'");
}

sub pass_time
{
	my ($self, $seconds) = @_;

	$self->{offset} += POSIX::ceil($seconds);
	$self->{node}->set(clock_offset => "$self->{offset}s");
	return;
}

# What the program finds in its environment.
sub _environment
{
	my ($self, $user) = @_;

	delete $ENV{$_} foreach grep { /^AWS_|proxy$/i } keys %ENV;
	my %environment = (
		$self->{node}->_get_env(PGDATABASE => 'postgres'),
		$self->{store}->environment,
		AWS_ENDPOINT_URL_S3 => $self->{endpoint},
		PGUSER => $user,
		HOME => $self->{folder});

	delete @environment{qw(PGSERVICE PGPASSWORD PGPASSFILE)};
	return %environment;
}

=pod

=item $delivery->run($user, argument, ...)

Runs the program to its end; returns exit code, standard output and error.  A
first argument that is a hash is added to the environment.

=item $delivery->upload(argument, ...)

The same for C<upload --once>, as courier.

=item $delivery->reconcile(argument, ...)

=cut

sub run
{
	my ($self, $user, @arguments) = @_;
	my %more = ref $arguments[0] ? %{ shift @arguments } : ();
	my ($out, $err) = ('', '');

	local %ENV = ($self->_environment($user), %more);
	IPC::Run::run([ EvidenceNode::program_path(), @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);
	my $code = $? >> 8;

	$self->{said} .= $out . $err;
	return ($code, $out, $err);
}

sub _where
{
	my ($self) = @_;

	return ("--bucket=$self->{bucket}", '--allow-http');
}

sub upload
{
	my ($self, @arguments) = @_;
	my @more = ref $arguments[0] ? shift @arguments : ();

	return $self->run('courier', @more, 'upload', '--once', $self->_where,
		@arguments);
}

sub reconcile
{
	my ($self, @arguments) = @_;

	return $self->run('courier', 'reconcile', $self->_where, @arguments);
}

=pod

=item $delivery->drain(argument, ...)

Runs uploaders until nothing waits any more.  What is put off is made due by
moving the server's clock, unless another uploader is at work: then its end is
waited for.

=item $delivery->pass_time($seconds)

Moves the server's clock forward.

=cut

sub drain
{
	my ($self, @arguments) = @_;

	my $idle = 'NOT EXISTS (SELECT FROM evidence.upload_attempt WHERE ended_at IS NULL AND lease_until > evidence._now())';
	my $said;

	foreach my $try (1 .. 30)
	{
		$said = join "\n", ($self->upload(@arguments))[ 0, 2 ];
		my $next = $self->value(
			'SELECT next_due FROM evidence.delivery_status()');

		return 1 if $next eq '';
		last if $next > 600;
		if ($self->value("SELECT $idle") eq 't')
		{
			$self->pass_time($next);
		}
		else
		{
			$self->{node}->poll("SELECT $idle");
		}
	}
	die "there is no end of deliveries: $said";
}

=pod

=item $delivery->requeue

Takes up again whatever was given up.

=item $delivery->start({ variable => value }, argument, ...)

Starts an uploader in the background, one that goes on unless the arguments
have C<--once>.  Returns an object with these methods:

=over

=item $uploader->wait_for($regex)

Waits until it has printed something that matches.

=item $uploader->signal($name)

=item $uploader->wait_stopped

Waits until it stands still at a pause (PG_EVIDENCE_PAUSE).

=item $uploader->end

Waits until it has ended, and returns its exit code; -N when signal N has
ended it.

=item $uploader->said

=item $uploader->pid

=back

=cut

sub requeue
{
	my ($self) = @_;

	$self->value("SELECT count(evidence.requeue_outbox_event(id, 'test')) FROM evidence.outbox_event WHERE state = 'DEAD'");
	return;
}

sub start
{
	my ($self, $variables, @arguments) = @_;
	my $log = "$self->{folder}/uploader-" . ++$self->{count} . '.log';
	my %environment = ($self->_environment('courier'), %$variables);
	my @words = (
		EvidenceNode::program_path(),
		'upload', $self->_where, @arguments);
	my $pid = fork // die "could not fork: $!";

	if ($pid == 0)
	{
		%ENV = %environment;
		open STDIN, '<', '/dev/null' or POSIX::_exit(99);
		open STDOUT, '>', $log or POSIX::_exit(99);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(99);
		exec @words or POSIX::_exit(99);
	}
	my $uploader = bless { pid => $pid, log => $log }, 'Delivery::Uploader';

	push @{ $self->{uploaders} }, $uploader;
	$running{$uploader} = $uploader;
	return $uploader;
}

=pod

=item $delivery->faults

What is wrong when nothing runs: with the ledger, with the bytes of any READY
export, with objects that belong to nobody once C<reconcile --fix> has been
run, or with what the program printed.  Empty when all is well.

=cut

sub faults
{
	my ($self) = @_;
	my @faults = grep { length } $self->{node}->ledger_faults;

	# Two selected objects, or one with other bytes.
	my %ready = map { split /\|/, $_, 2 } split /\n/,
	  $self->value("SELECT k.object_key, e.archive_bytes || ' ' || e.archive_sha256"
		  . " FROM evidence.known_objects('$self->{bucket}') AS k"
		  . ' JOIN evidence.audit_export AS e ON e.id = k.export_id'
		  . " WHERE e.state = 'READY' AND NOT EXISTS (SELECT FROM evidence.upload_attempt AS u"
		  . ' WHERE u.object_key = k.object_key AND u.generation < e.generation)');
	my $exports = $self->value(
		"SELECT count(*) FROM evidence.audit_export WHERE state = 'READY' AND object_bucket = '$self->{bucket}'");

	push @faults, "$exports exports are READY, " . keys(%ready) . ' objects are selected'
	  if $exports != keys %ready;
	foreach my $key (sort keys %ready)
	{
		my $object = $self->{store}->object($self->{bucket}, $key);
		my $found = length($object->{body}) . ' ' . sha256_hex($object->{body});

		push @faults, "object $key: $found, the ledger says $ready{$key}"
		  if $object->{status} != 200 || $found ne $ready{$key};
	}

	my ($code, $out, $err) = $self->reconcile('--fix', '--grace=0s');
	push @faults, "reconcile says: $out$err" if $code != 0;
	my @keys = $self->{store}->keys_in($self->{bucket}, 'pg-evidence/');
	push @faults, "object $_ belongs to nobody"
	  foreach grep { !exists $ready{$_} } @keys;
	push @faults, $self->secrets;
	return join "\n", @faults;
}

=pod

=item $delivery->secrets

Each secret that anything printed, the server's log among it.

=cut

sub secrets
{
	my ($self) = @_;
	my $said = join "\n", $self->{said},
	  PostgreSQL::Test::Utils::slurp_file($self->{node}->logfile),
	  map { $_->said } @{ $self->{uploaders} // [] };
	my $secret = $self->{store}->secret_key;

	return map { "the program printed \"$_\"" }
	  grep { index($said, $_) >= 0 }
	  ($secret, 'Signature=', 'X-Amz-Signature', 'AWS4-HMAC');
}

# A test that dies leaves no uploader behind.  Only the process that started
# them ends them, not one that it forked.
my $owner = $$;

END
{
	if ($$ == $owner)
	{
		local $?;
		foreach my $uploader (grep { $_->pid } values %running)
		{
			kill 'KILL', $uploader->pid;
			waitpid $uploader->pid, 0;
		}
	}
}

=pod

=back

=cut

package Delivery::Uploader;

use strict;
use warnings;

use PostgreSQL::Test::Utils ();
use Time::HiRes qw(usleep);

my $patience = $PostgreSQL::Test::Utils::timeout_default;

sub pid { return $_[0]{pid}; }

sub said
{
	my ($self) = @_;

	open my $file, '<', $self->{log} or return '';
	local $/;
	my $said = <$file> // '';
	close $file;
	return $said;
}

sub wait_for
{
	my ($self, $regex) = @_;

	foreach (1 .. $patience * 20)
	{
		return 1 if $self->said =~ $regex;
		die "the uploader ended without $regex: " . $self->said
		  if $self->_has_ended;
		usleep(50_000);
	}
	die "the uploader does not say $regex: " . $self->said;
}

# The state that the kernel tells; T is stopped.
sub wait_stopped
{
	my ($self) = @_;

	$self->wait_for(qr/pauses at/);
	foreach (1 .. $patience * 20)
	{
		open my $file, '<', "/proc/$self->{pid}/stat" or last;
		my ($state) = <$file> =~ /\) (\S)/;

		return 1 if $state eq 'T';
		usleep(50_000);
	}
	die 'the uploader does not stand still';
}

sub signal
{
	my ($self, $name) = @_;

	# 0 would be this process and all that it has started.
	die 'the uploader has ended: ' . $self->said unless $self->{pid};
	kill $name, $self->{pid} or die "could not send $name: $!";
	return;
}

sub _has_ended
{
	my ($self) = @_;

	if (!defined $self->{status}
		&& waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid})
	{
		$self->{status} = $? & 127 ? -($? & 127) : $? >> 8;
		$self->{pid} = 0;
	}
	return defined $self->{status};
}

sub end
{
	my ($self) = @_;

	foreach (1 .. $patience * 20)
	{
		return $self->{status} if $self->_has_ended;
		usleep(50_000);
	}
	die 'the uploader does not end: ' . $self->said;
}

1;
