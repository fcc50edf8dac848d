
=pod

=head1 NAME

S3Driver - a real object store, a proxy before it, and the driver of the
program's client of such stores

=head1 SYNOPSIS

  use S3Driver;

  my ($put, $head) = drive('put', 'key', $small_file, ',', 'head', 'key');
  is(outcomes($put, $head), 'ok ok');

=head1 DESCRIPTION

Loading this starts a store (ObjectStore.pm) and a proxy (FaultProxy.pm), and
fills the environment with what the driver needs and nothing else.  Bytes to
send and their digests are there, and everything that the driver says is kept
for a look at its end.

=cut

package S3Driver;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use FaultProxy;
use IPC::Run ();
use JSON::PP;
use ObjectStore;
use PostgreSQL::Test::Utils ();
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw($store $proxy $folder $driver $small $large $small_file
  $large_file $empty_file $small_digest $large_digest drive in_proxy outcomes
  heard keep_secret check_silence write_file read_file noise state_of
  run_subtests);

our $driver = ObjectStore::driver();
our $folder = PostgreSQL::Test::Utils::tempdir();
our $store = ObjectStore->new(memory => 1);
our $proxy = FaultProxy->new($store->port);

my $json = JSON::PP->new->utf8;

# Everything that the driver ever said, and what must not be in it.
my $said = '';
my @secrets = (ObjectStore::secret_key());

delete $ENV{$_} foreach grep { /^AWS_|proxy$/i } keys %ENV;
{
	my %environment = $store->environment;

	@ENV{ keys %environment } = values %environment;
}

=pod

=over

=item noise($length, $seed)

Bytes without a pattern that could hide a shift, the same in each run.

=item write_file($name, $content), read_file($name)

In a folder of this test.

=cut

sub noise
{
	my ($length, $seed) = @_;
	my $bytes = '';

	$bytes .= Digest::SHA::sha512("$seed " . length $bytes)
	  while length $bytes < $length;
	return substr $bytes, 0, $length;
}

sub write_file
{
	my ($name, $content) = @_;

	open my $file, '>:raw', "$folder/$name" or die "could not write: $!";
	print $file $content;
	close $file;
	return "$folder/$name";
}

sub read_file
{
	my ($name) = @_;

	open my $file, '<:raw', "$folder/$name" or die "could not read: $!";
	local $/;
	my $content = <$file>;

	close $file;
	return $content;
}

our $small = noise(1000, 'small');
our $large = noise(3_000_000, 'large');
our $small_file = write_file('small', $small);
our $large_file = write_file('large', $large);
our $empty_file = write_file('empty', '');
our $small_digest = sha256_hex($small);
our $large_digest = sha256_hex($large);

=pod

=item drive(@words), in_proxy(@words)

Run the driver with these words, straight or through the proxy; one hash for
each line it printed.

=item outcomes(@results)

The outcome of each command, in one text.

=item heard($out, $err)

The same hashes, of what a driver said that was started by other means.

=cut

sub heard
{
	my ($out, $err) = @_;

	$said .= $out . $err;
	diag("driver: $err") if length $err;
	return map { $json->decode($_) } split /\n/, $out;
}

sub drive
{
	my (@words) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ $driver, '--http', 'yes', @words ],
		'<', \undef, '>', \$out, '2>', \$err);
	return heard($out, $err);
}

sub in_proxy
{
	return drive('--endpoint', $proxy->endpoint, @_);
}

sub outcomes
{
	return join ' ', map { $_->{outcome} // () } @_;
}

=pod

=item state_of($key, $bucket)

What the store has under a key: "absent", or the digest of the object.

=cut

sub state_of
{
	my ($key, $bucket) = @_;
	my $answer = $store->object($bucket // 'archive', $key);

	return 'absent' if $answer->{status} == 404;
	return sha256_hex($answer->{body});
}

=pod

=item keep_secret(@secrets)

Adds to what must never be said.

=item check_silence()

Tests that no byte of a key is in anything that was said.

=item run_subtests(name => function, ...)

=back

=cut

sub keep_secret
{
	push @secrets, @_;
	return;
}

sub check_silence
{
	ok(length $said > 1000, 'much was said');
	is(index($said, $_), -1, 'a secret is not told') foreach @secrets;
	unlike($said, qr/Signature=[0-9a-f]/i, 'nor a signature');
	return;
}

sub run_subtests
{
	my (@tests) = @_;

	while (my ($name, $function) = splice @tests, 0, 2)
	{
		my $start = time;

		subtest $name => $function;
		note(sprintf '%s took %.1f s', $name, time - $start);
	}
	return;
}

1;
