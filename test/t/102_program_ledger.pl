# The client program against a stand-in for the server side, which can be made
# to fail in every way: connecting, requesting, waiting and looking.

use strict;
use warnings;

use JSON::PP;
use MockLedger;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $uuid = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
my $unknown = '00000000-0000-0000-0000-000000000000';
my @range = ('--start=2026-11-01T00:00Z', '--end=2026-12-01T00:00Z');
my $mock = MockLedger->new;
my $node = $mock->node;

$node->safe_psql('postgres', 'CREATE DATABASE bare');

# Connecting.
{
	my ($code, $out, $err) = $mock->program('list', '-d', 'bare');
	is($code, 15, 'no extension: exit code');
	like($err, qr/not installed in database "bare".*CREATE EXTENSION/s,
		'no extension: text and hint');

	($code, $out, $err) = $mock->program('list', '-d', 'nowhere');
	is($code, 2, 'no database: exit code');

	$mock->sql(q{ALTER DATABASE postgres SET mock.version = '1.1'});
	($code, $out, $err) = $mock->program('list', '--json');
	is($code, 15, 'other minor version: exit code');
	is(JSON::PP->new->decode($out)->{error}{status},
		'version', 'other minor version: JSON');
	like($err, qr/program is of version 1\.0, extension .* of version 1\.1/,
		'other minor version: text');
	$mock->sql(q{ALTER DATABASE postgres SET mock.version = '1.0.3'});
	is(($mock->program('list'))[0], 0, 'other patch version fits');
	$mock->sql(q{ALTER DATABASE postgres SET mock.version = '11.0'});
	is(($mock->program('list'))[0], 15, 'a longer number does not fit');
	$mock->sql('ALTER DATABASE postgres RESET mock.version');

	$mock->sql('CREATE ROLE nobody LOGIN');
	($code, $out, $err) = $mock->program('list', '-U', 'nobody');
	is($code, 3, 'no right: exit code');
	like($err, qr/HINT: .*grant_capability\('nobody', 'requester'\)/,
		'no right: hint');

	$mock->sql('CREATE ROLE blind LOGIN; GRANT USAGE ON SCHEMA evidence TO blind');
	($code, $out, $err) = $mock->program('list', '-U', 'blind');
	is("$code $out", '3 ', 'no right to the view: exit code, no output');

	append_to_file("$folder/service.conf", "[audit]\nhost="
		  . $node->host . "\nport=" . $node->port . "\ndbname=postgres\n");
	local $ENV{PGSERVICEFILE} = "$folder/service.conf";
	local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ('/nonexistent', 1, 'nowhere');
	is(($mock->program('list', '-d', 'service=audit'))[0],
		0, 'service file by -d');
	delete local @ENV{qw(PGHOST PGPORT PGDATABASE)};
	local $ENV{PGSERVICE} = 'audit';
	is(($mock->program('list'))[0], 0, 'service file by PGSERVICE');
}

# Requesting.
{
	my ($code, $out, $err) =
	  $mock->program('request', @range, '--purpose=plain');
	is($code, 0, 'request: exit code');
	like($out, qr/^$uuid\n$/, 'request prints the id and nothing else');
	like($err, qr/wait $uuid/, 'request tells how to wait');
	chomp $out;
	is( $mock->sql(
			"SELECT source, start_at = '2026-11-01Z', filters, columns,"
			  . " key ~ '^cli-[0-9a-f]{32}\$' FROM evidence.mock_export"
			  . " WHERE id = '$out'"),
		'audit_log|t|{}||t',
		'request sends defaults and a key of its own');

	($code, $out, $err) = $mock->program(
		'request', @range, '--purpose=all', '--source=payments',
		'--key=my key', '--filter=tenant_id=b"\\', '--filter=action=x.*',
		"--filter=tenant_id=\xc3\xa4=1", '--columns=id,odd "one"', '-q');
	is($code, 0, 'request with everything: exit code');
	is($err, '', '--quiet: nothing on standard error');
	chomp $out;
	is( $mock->sql(
			"SELECT source, key, filters = "
			  . q{'{"action": ["x.*"], "tenant_id": ["b\"\\\\", "ä=1"]}',}
			  . q{ columns = ARRAY['id', 'odd "one"']}
			  . " FROM evidence.mock_export WHERE id = '$out'"),
		'payments|my key|t|t',
		'request sends source, key, filters and columns');

	($code, $out, $err) = $mock->program('request', @range, '--purpose=x',
		'--filters={"outcome": ["denied"]}', '--json');
	is($code, 0, 'request --json: exit code');
	my $document = JSON::PP->new->decode($out);
	is($document->{export}{state}, 'QUEUED', 'request --json: state');
	is( $document->{export}{start_at},
		'2026-11-01T00:00:00.000000Z',
		'request --json: times in UTC');

	($code, $out, $err) = $mock->program('request', @range, '--purpose=notice');
	is($code, 0, 'request with a notice: exit code');
	like($err, qr/^pg_evidence: NOTICE: mock notice$/m,
		'what the server has to say is shown');

	($code, $out, $err) = $mock->program('request', '--start=yesterdayish',
		'--end=today', '--purpose=x');
	is($code, 4, 'a time that is none: exit code');
}

# The bounded retry of a whole transaction.
foreach my $state ('40001', '40P01', '55P03')
{
	$mock->reset;
	my ($code, $out, $err) =
	  $mock->program('request', @range, "--purpose=conflict $state 3");
	is($code, 0, "three times $state: exit code");
	is($mock->sql('SELECT last_value FROM evidence.mock_calls'),
		4, "three times $state: four attempts");
}
{
	$mock->reset;
	my ($code, $out, $err) =
	  $mock->program('request', @range, '--purpose=conflict 40001 1000', '--json');
	is($code, 14, '40001 without end: exit code');
	is($mock->sql('SELECT last_value FROM evidence.mock_calls'),
		8, '40001 without end: eight attempts');
	is(JSON::PP->new->decode($out)->{error}{sqlstate},
		'40001', '40001 without end: code in JSON');

	# Nobody knows whether a lost commit went through: the same key tells.
	$mock->reset;
	my $log = -s $node->logfile;
	($code, $out, $err) = $mock->program('request', @range, '--purpose=lose 2');
	is($code, 0, 'connection lost twice: exit code');
	my %keys;
	my @seen =
	  slurp_file($node->logfile, $log) =~ /mock request with key (cli-\w+)/g;
	$keys{$_} = 1 foreach @seen;
	is(scalar @seen, 3, 'connection lost twice: three attempts');
	is(scalar keys %keys, 1, 'connection lost twice: one key');

	$mock->reset;
	($code, $out, $err) =
	  $mock->program('request', @range, '--purpose=lose 1000');
	is($code, 2, 'connection lost again and again: exit code');

	my ($request) = $mock->start_program('request', @range, '--purpose=hold');
	$mock->lose_connection_for_good($mock->wait_standing);
	$request->finish;
	is($? >> 8, 15, 'connection lost, then another version: exit code');
	$mock->sql('ALTER DATABASE postgres RESET mock.version');
}

# Every SQLSTATE has its exit code.
my %codes = (
	'22023' => 4, '42501' => 3, '53400' => 5, '55000' => 6,
	'PE001' => 8, 'PE002' => 5, 'PE003' => 7, 'PE005' => 6,
	'PE006' => 9, 'PE007' => 16, 'XX000' => 70, '57014' => 70);

foreach my $state (sort keys %codes)
{
	my ($code, $out, $err) =
	  $mock->program('request', @range, "--purpose=code $state", '--json');
	my $error = JSON::PP->new->decode($out)->{error};

	is($code, $codes{$state}, "$state: exit code");
	is("$error->{exit_code} $error->{sqlstate}",
		"$codes{$state} $state", "$state: in JSON");
	like(
		$err,
		qr/^pg_evidence: error: could not request the export: mock failure $state\nDETAIL:  Mock detail\.\nHINT:  Mock hint\.\n$/,
		"$state: for people");
}

# Waiting.
my %ends = (READY => 0, FAILED => 10, CANCELLED => 11, EXPIRED => 7,
	REVOKED => 7, NEWFANGLED => 70);
my %names = (FAILED => 'failed', CANCELLED => 'cancelled', EXPIRED => 'gone',
	REVOKED => 'gone', NEWFANGLED => 'internal');

foreach my $state (sort keys %ends)
{
	my $id = $mock->new_export(state => $state, error_message => 'too many rows',
		error_code => 'PE002', error_hint => 'Ask for less.');
	my ($code, $out, $err) = $mock->program('wait', $id);

	is($code, $ends{$state}, "wait for $state: exit code");
	($code, $out) = $mock->program('wait', $id, '--json');
	is(JSON::PP->new->decode($out)->{error}{status},
		$names{$state}, "wait for $state: JSON");
	like($err, qr/has failed: too many rows\nHINT:  Ask for less\./,
		'wait for FAILED: reason and hint')
	  if $state eq 'FAILED';
}
{
	my $id = $mock->new_export(ready_after => '1.5 seconds');
	my ($code, $out, $err) = $mock->program('wait', $id);
	is("$code $out", "0 READY\n", 'wait until it is ready');
	unlike($err, qr/[\r#]/, 'no progress bar without a terminal');
	($code, $out, $err) = $mock->program('wait', $id, '--json');
	is($code, 0, 'wait --json: exit code');
	is(JSON::PP->new->decode($out)->{export}{state},
		'READY', 'wait --json: state');

	$id = $mock->new_export(ready_after => '1 hour');
	my $before = time;
	($code, $out, $err) = $mock->program('wait', $id, '--timeout=1', '--json');
	is($code, 12, 'wait --timeout: exit code');
	ok(time - $before < 60, 'wait --timeout: in time');
	is(JSON::PP->new->decode($out)->{error}{export_id},
		$id, 'wait --timeout: id in JSON');
	is(($mock->program('wait', $unknown))[0], 3, 'wait for an unknown id');

	# A restart of the server in between is only a pause.
	$id = $mock->new_export(state => 'PROCESSING');
	my ($wait, $wait_out, $wait_err) = $mock->start_program('wait', $id);
	$mock->wait_connected;
	$node->restart;
	$mock->sql("UPDATE evidence.mock_export SET state = 'READY'"
		  . " WHERE id = '$id'");
	$wait->finish;
	is(($? >> 8) . " $$wait_out", "0 READY\n", 'wait survives a restart');
	like($$wait_err, qr/connecting again/, 'wait tells of the restart');

	# But not if it comes back as another version.
	$id = $mock->new_export(state => 'PROCESSING');
	($wait, $wait_out, $wait_err) = $mock->start_program('wait', $id);
	$mock->lose_connection_for_good($mock->wait_connected('idle'));
	$wait->finish;
	is($? >> 8, 15, 'wait until another version is there: exit code');
	$mock->sql('ALTER DATABASE postgres RESET mock.version');

	# Nor if it stays away.
	($wait, $wait_out, $wait_err) =
	  $mock->start_program('wait', $id, '--timeout=6');
	$mock->wait_connected;
	$node->stop;
	$wait->finish;
	is($? >> 8, 12, 'wait --timeout on a server that is gone: exit code');
	like($$wait_err, qr/connecting again.*is not ready after 6 s/s,
		'wait --timeout on a server that is gone: text');
	$node->start;

	# A server that hangs does not outlast the timeout.
	$id = $mock->new_export(state => 'PROCESSING');
	($wait) = $mock->start_program('wait', $id, '--timeout=6');
	my $pid = $mock->wait_connected;
	kill 'STOP', $pid;
	$wait->finish;
	is($? >> 8, 12, 'wait --timeout on a hanging server: exit code');
	kill 'CONT', $pid;

	# Polling leaves no transaction open.
	$id = $mock->new_export(state => 'PROCESSING');
	($wait) = $mock->start_program('wait', $id);
	$mock->wait_connected('idle');
	is( $mock->sql("SELECT count(*) FROM pg_stat_activity"
			  . " WHERE state LIKE 'idle in transaction%'"),
		0, 'no transaction is open while waiting');
	$wait->kill_kill;
}

# list, show, cancel.
{
	$mock->sql('DELETE FROM evidence.mock_export');
	my ($code, $out, $err) = $mock->program('list');
	is("$code:$out", '0:', 'nothing to list');

	my @ids = map { $mock->new_export(purpose => "number $_") } 1 .. 3;
	my $odd = $mock->new_export(purpose => "a\033[2J\xe2\x80\xaeb",
		state => 'FAILED', error_code => 'PE002');
	($code, $out, $err) = $mock->program('list', '--json');
	my $exports = JSON::PP->new->utf8->decode($out)->{exports};
	is(join(' ', map { $_->{id} } @$exports),
		join(' ', $odd, reverse @ids), 'list: newest first');
	is($exports->[0]{error}{code}, 'PE002', 'list: error in JSON');
	is($exports->[0]{purpose}, "a\033[2J\x{202e}b", 'list: purpose in JSON');
	is($exports->[1]{error}, undef, 'list: no error in JSON');
	($code, $out, $err) = $mock->program('list', '--limit=2', '--state=QUEUED');
	like($out, qr/number 3.*number 2/s, 'list --limit --state');
	unlike($out, qr/number 1|FAILED/, 'list --limit --state: no more');
	($code, $out, $err) = $mock->program('show', $odd);
	like($out, qr/^purpose +a<U\+001B>\[2J<U\+202E>b$/m,
		'a purpose cannot play with the terminal');
	($code, $out, $err) = $mock->program('show', $odd, '--json');
	is(JSON::PP->new->utf8->decode($out)->{export}{id},
		$odd, 'show --json');
	($code, $out, $err) = $mock->program('show', $unknown);
	is($code, 3, 'show of an unknown id: exit code');
	like($err, qr/does not exist or is not yours/,
		'show of an unknown id: text');

	($code, $out, $err) = $mock->program('cancel', $ids[0], '--reason=mistake');
	is("$code $out", "0 CANCELLED\n", 'cancel prints the state');
	($code, $out, $err) =
	  $mock->program('cancel', $ids[2], '--reason=mistake', '--json');
	is($code, 0, 'cancel --json: exit code');
	is(JSON::PP->new->decode($out)->{export}{state},
		'CANCELLED', 'cancel --json: state');
	($code, $out, $err) =
	  $mock->program('cancel', $ids[1], '--reason=code 55000');
	is($code, 6, 'cancel of a ready export: exit code');
	($code, $out, $err) = $mock->program('cancel', $ids[1], '--reason=lose');
	is($code, 2, 'cancel with a lost connection: exit code');
	like($err, qr/may have been cancelled all the same/,
		'cancel with a lost connection: hint');
}

$node->stop;
done_testing();
