# A dump of a ledger that is shipped can be restored in every form and in any
# order of its tables, also where shipping is on: no row is lost or refused,
# what was sent stays sent, and what waits is shipped after the adoption.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $source = EvidenceNode->new('source', ship => 'on', ship_interval => '50ms',
	debug_sink => 'refuse=5');

# Sent, refused and untried rows, and some from before.
$source->start;
$source->create_extension;
$source->set(ship => 'off');
$source->safe_psql('postgres', record('old', 50));
$source->set(ship => 'on');
$source->safe_psql('postgres', record('sent', 500));
$source->poll("SELECT count(*) = 400 FROM evidence.audit_delivery WHERE state = 'sent'");
$source->poll("SELECT min(attempts) > 0 FROM evidence.audit_delivery WHERE state = 'pending'");
$source->set(ship => 'off');
$source->poll("SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_evidence shipper'");
# Not shipped any more, but promised: the session sees the setting first.
$source->set(ship => 'on', ship_sink => 'server_log');
$source->append_conf('postgresql.conf', "log_min_messages = panic\n");
$source->reload;
$source->poll("SELECT state = 'disabled' FROM evidence.queue_health WHERE lane = 'shipping'");
$source->safe_psql('postgres', record('waiting', 100));

sub record
{
	my ($name, $count) = @_;

	return "SELECT count(evidence.record_audit_event('$name', 'test')) FROM generate_series(1, $count)";
}

# What must come through.
my $facts = <<'SQL';
SELECT l.action, d.state, count(*), min(d.attempts) > 0, count(d.sent_at), count(d.last_error),
       md5(string_agg(concat_ws(' ', l.id, extract(epoch FROM l.created_at), extract(epoch FROM d.sent_at)), ',' ORDER BY l.id))
  FROM evidence.audit_log AS l
  LEFT JOIN evidence.audit_delivery AS d ON d.audit_created_at = l.created_at AND d.audit_id = l.id
 WHERE l.action IN ('sent', 'waiting')
 GROUP BY 1, 2 ORDER BY 1, 2
SQL
my $expected = $source->safe_psql('postgres', $facts);

like($expected, qr/^sent\|pending\|100\|t\|0\|100\|\w+\nsent\|sent\|400\|t\|400\|0\|\w+\nwaiting\|pending\|100\|f\|0\|0\|\w+$/,
	'the source has rows of every kind');

$source->command_ok([ 'pg_dump', '-d', $source->connstr('postgres'), '-f', "$folder/plain.sql" ], 'dump: plain');
$source->command_ok([ 'pg_dump', '-d', $source->connstr('postgres'), '--inserts', '-f', "$folder/inserts.sql" ],
	'dump: as INSERTs');
$source->command_ok([ 'pg_dump', '-d', $source->connstr('postgres'), '-Fc', '-f', "$folder/custom.dump" ],
	'dump: custom format');
$source->stop;

# The same dump with the log before what was shipped of it, and behind.
my @list = grep { !/^;/ } split /\n/, (run_command([ 'pg_restore', '-l', "$folder/custom.dump" ]))[0];
my @deliveries = grep { /TABLE DATA evidence audit_delivery / } @list;
my @logs = grep { /TABLE DATA evidence audit_log / } @list;
my @others = grep { !/TABLE DATA evidence audit_(?:delivery|log) / } @list;

is(scalar @deliveries + @logs, 2, 'both tables are in the dump');
append_to_file("$folder/log_first.list", join("\n", @others, @logs, @deliveries) . "\n");
append_to_file("$folder/log_last.list", join("\n", @others, @deliveries, @logs) . "\n");

my @restores = (
	[ 'plain', 'psql', '-f', "$folder/plain.sql" ],
	[ 'single transaction', 'psql', '-1', '-f', "$folder/plain.sql" ],
	[ 'as INSERTs', 'psql', '-f', "$folder/inserts.sql" ],
	[ 'log first', 'pg_restore', '-L', "$folder/log_first.list", "$folder/custom.dump" ],
	[ 'log last', 'pg_restore', '-L', "$folder/log_last.list", "$folder/custom.dump" ],
	map { [ "parallel, try $_", 'pg_restore', '-j4', "$folder/custom.dump" ] } 1 .. 3);
push @restores, [ 'beside a shipper', 'pg_restore', '-a', "$folder/custom.dump" ];
my $restored = EvidenceNode->new('restored', database => 'copy', ship => 'on', ship_interval => '50ms');

$restored->append_conf('postgresql.conf', "deadlock_timeout = '10ms'\n");
$restored->start;
foreach my $setting ('on', 'off')
{
	$restored->set(ship => $setting);
	restore($setting, @$_) foreach $setting eq 'on' ? @restores : @restores[ 0, 5 ];
}
$restored->stop;
done_testing();

sub restore
{
	my ($setting, $form, $program, @arguments) = @_;
	my $name = "shipping $setting, $form";
	my $copy = sub { return $restored->safe_psql('copy', $_[0]); };

	# The extension is made only by the restore, and its rows are not
	# foreign before the last table is there: nobody ships meanwhile.
	$restored->set(ship_file => '/nowhere/audit.jsonl');
	$restored->safe_psql('postgres', 'DROP DATABASE IF EXISTS copy WITH (FORCE)');
	$restored->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
	# A shipper that has written down a pass already is no hindrance either.
	if ($form eq 'beside a shipper')
	{
		$copy->('CREATE EXTENSION pg_evidence');
		$restored->poll_query_until('copy', "SELECT count(*) > 0 FROM evidence.pass_log WHERE kind = 'ship'")
		  or die 'timed out waiting for a pass';
	}
	my ($out, $err) = run_command(
		[
			$program,
			($program eq 'psql' ? ('-X', '-q', '-v', 'ON_ERROR_STOP=1') : ('-e')),
			'-d', $restored->connstr('copy'), @arguments
		]);
	is($err, '', "$name: restores");
	is($copy->($facts), $expected, "$name: every row as it was");
	is($copy->("SELECT state FROM evidence.queue_health WHERE lane = 'shipping'"),
		$setting eq 'on' ? 'foreign' : 'off', "$name: nothing is shipped from a foreign ledger");
	my ($code) = $restored->error_of('CALL evidence.ship_pass()', dbname => 'copy');
	is($code, '55000', "$name: not by hand either");
	return if $setting eq 'off';

	$copy->("SELECT evidence.adopt_instance('test')");
	$restored->set(ship_file => '');
	$restored->poll_query_until('copy', "SELECT NOT EXISTS (SELECT FROM evidence.audit_delivery WHERE state = 'pending')")
	  or die 'timed out waiting for the adopted ledger to be shipped';
	is( $copy->(<<'SQL'),
SELECT count(*) FILTER (WHERE l.action = 'waiting'), count(*) FILTER (WHERE l.action = 'sent')
  FROM evidence.audit_log AS l
  JOIN evidence.audit_delivery AS d ON d.audit_created_at = l.created_at AND d.audit_id = l.id
 WHERE d.state = 'sent' AND l.action IN ('sent', 'waiting')
SQL
		'100|500', "$name: adopted, what waited is shipped");
	is( $copy->("SELECT count(*) FROM evidence.audit_delivery WHERE state = 'sent' AND attempts = 1 AND sent_at < (SELECT max(created_at) FROM evidence.instance)"),
		'400', "$name: and what was sent is not");
	return;
}
