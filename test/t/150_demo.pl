# The demo's scripts, on fewer events: roles, events, and the statements that
# it prints to be repeated by hand.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $demo = EvidenceNode::tool_path('../../demo');
my $folder = PostgreSQL::Test::Utils::tempdir();
my $events = 3000;

append_to_file("$folder/fingerprint.key", 'demo:' . '0123456789abcdef' x 4 . "\n");
chmod 0600, "$folder/fingerprint.key";

my $node = EvidenceNode->new('main',
	fingerprint_key_file => "$folder/fingerprint.key");
$node->start;

# psql(role, script file or undef, argument...): the output, in $folder.
sub psql
{
	my ($role, $file, @arguments) = @_;
	my ($out, $err) = ('', '');
	local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGUSER => $role);

	IPC::Run::run(
		[
			'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', @arguments,
			defined $file ? ('-f', $file) : ()
		],
		'<', \undef, '>', \$out, '2>', \$err, init => sub { chdir $folder });
	is("$? $err", '0 ', 'psql as ' . $role . ' ran ' . ($file // "@arguments"));
	return $out;
}

my $owner = $node->safe_psql('postgres', 'SELECT current_user');
psql($owner, "$demo/roles.sql");
psql($owner, "$demo/events.sql", '-v', "events=$events");

# The two capabilities given by roles.sql are on record as well.
is( $node->safe_psql('postgres', 'SELECT count(*) FROM evidence.audit_log'),
	$events + 2,
	'as many events as asked for');
is( $node->safe_psql(
		'postgres', q{
		SELECT count(*) FROM evidence.audit_log
		 WHERE created_at > now() - interval '1 hour'}),
	200 + 2,
	'the last of them are recorded live');
is( $node->safe_psql(
		'postgres', q{
		SELECT count(*) FROM evidence.audit_log
		 WHERE created_at NOT BETWEEN now() - interval '61 days' AND now()}),
	0,
	'all of them within the last 60 days');

# The statements need a pause after the first, in which a reader looks at the
# state; here the test waits for it.
my ($ask, $take) = split /^(?=-- 2\.)/m, slurp_file("$demo/by-hand.sql");
append_to_file("$folder/ask.sql", "$ask\n\\echo :id\n");
append_to_file("$folder/take.sql", $take);

my $id = psql('anna', "$folder/ask.sql");
chomp $id;
$node->wait_state($id, 'READY');
my $shown = psql('anna', "$folder/take.sql", '-v', "id=$id");

like($shown, qr/^READY\|/m, 'the state is shown');
unlike($shown, qr/\|f\|/, 'the package agrees with the log');
ok(-s "$folder/by-hand.zip", 'there is a package');

my ($status, $out, $err) =
  $node->program('verify', "$folder/by-hand.zip");
is("$status $err", '0 ', 'the program finds it intact');

command_ok(
	[ 'python3', EvidenceNode::tool_path('../foreign/reference_reader.py'),
		"$folder/by-hand.zip" ],
	'so does the reference reader');

$node->stop;
done_testing();
