# What comes out of the server, held against the table it came from: events
# of an ordinary application, and rows that were made to do harm.  Readers of
# other makes open the packages.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $demo = EvidenceNode::tool_path('../../demo');

# The reader that judges the packages below finds what it looks for.
{
	my ($good, $output) = run_tool('python3', EvidenceNode::tool_path('../foreign/self_test.py'));
	ok($good, 'the reference reader names each fault of broken packages') || diag($output);
}

append_to_file("$folder/fingerprint.key", 'test:' . '89abcdef' x 8 . "\n");
chmod 0600, "$folder/fingerprint.key";

my $node = EvidenceNode->new('main',
	fingerprint_key_file => "$folder/fingerprint.key");
$node->start;

# The rows of one contract, in words of this test.
sub of_export
{
	my ($id) = @_;

	return $node->safe_psql('postgres', <<~"SQL");
		SELECT format('created_at >= %L AND created_at < %L AND pg_visible_in_snapshot(recorded_xid, %L)'
		              ' AND recorded_xid <> %L', start_at, end_at, snapshot, request_xid)
		  FROM evidence.audit_export WHERE id = '$id'
		SQL
}

# Events of a shop.
{
	run_script($node, "$demo/roles.sql");
	run_script($node, "$demo/events.sql", '-v', 'events=8000');

	my $id = $node->export(role => 'anna', purpose => 'access review');
	my $zip = "$folder/shop.zip";
	$node->export_to_file($id, $zip, role => 'anna');
	package_ok($node, $zip, 'events of a shop');
	cells_ok($node, $zip, of_export($id), 'events of a shop');

	my $manifest = manifest_of($zip);
	cmp_ok($manifest->{record_count}, '>', 3500, 'there are many events');
	is_deeply(
		[ @$manifest{qw(requested_by purpose source generation)} ],
		[ 'anna', 'access review', 'audit_log', 1 ],
		'C36: the manifest says who asked for what');
	is( $manifest->{files}[0]{rows},
		$manifest->{record_count},
		'C36: the file has as many rows as the package');
	cmp_ok($manifest->{cells}{$_}, '>', 0, "the events have cells: $_")
	  foreach qw(formula_prefixed redacted cleaned);

	my $csv = member_of($zip, 'records.csv');
	like($csv, qr/\Aid,created_at,/, 'C14: the header is first, without a mark in front');
	like($csv, qr/\r\n\z/, 'C11: the last record is ended too');
	unlike($csv, qr/(?<!\r)\n/, 'C11: one record separator only');
}

# Our own hostile rows.
{
	my $zip = "$folder/hostile.zip";
	my ($id, $where) = export_hostile_rows($node, $zip);
	package_ok($node, $zip, 'hostile rows');
	cells_ok($node, $zip, $where, 'C01-C33: hostile rows');

	my $vectors = "$folder/vectors.json";
	query_to_file($node, $vectors, 'SELECT json_agg(h) FROM hostile AS h');
	my ($good, $output) =
	  run_tool('python3', EvidenceNode::tool_path('../foreign/check_vectors.py'), $zip, $vectors);
	ok($good, 'C01-C33: each hostile row comes out as stated') || diag($output);

	is( $node->safe_psql('postgres', "SELECT record_count FROM evidence.audit_export WHERE id = '$id'"),
		$node->safe_psql('postgres', 'SELECT count(*) FROM hostile'),
		'C11: there are as many records as rows');
	is( $node->safe_psql('postgres', <<~"SQL"), 't', 'C32: slow text does not make an export slow');
		SELECT finished_at - started_at < interval '20 seconds'
		  FROM evidence.background_job WHERE export_id = '$id'
		SQL
	ok(!$node->log_contains(qr/PANIC|terminated by signal/), 'no process died of it');
}

# Events of many machines: lines, tabs, bursts, many scripts, planted secrets.
# Redaction takes out what was planted, all of it and nothing else.
{
	my $zip = "$folder/hosts.zip";
	my ($id, $where) = export_host_events($node, $zip, 12000);
	package_ok($node, $zip, 'events of machines');
	is(manifest_of($zip)->{record_count}, 12000, 'C20: each event is there');
	query_to_file($node, "$folder/planted.json", 'SELECT json_agg(secret) FROM planted');
	reference_ok($zip, rows_to_file($node, $where), 'C21-C31: events of machines',
		'--secrets', "$folder/planted.json");
}

# The optional rows of others, with their own checker.
SKIP:
{
	my $rows = EvidenceNode::shared_path('data/rows-hostile.sql');
	skip 'no optional data', 3 unless defined $rows;

	my $node2 = EvidenceNode->new('others');
	$node2->start;
	$node2->create_extension;
	append_to_file("$folder/others.sql",
		"INSERT INTO evidence.audit_log (actor_id, action, target_id, actor_role, summary)\n"
		  . slurp_file($rows));
	$node2->psql('postgres', slurp_file("$folder/others.sql"), on_error_die => 1);

	my $id = $node2->export(purpose => 'rows of others');
	my $zip = "$folder/others.zip";
	$node2->export_to_file($id, $zip);
	package_ok($node2, $zip, 'rows of others');
	cells_ok($node2, $zip, "action <> 'audit_export.request' AND action <> 'audit_export.download'",
		'rows of others');

	local %ENV = $node2->_get_env(PGDATABASE => 'postgres');
	my ($good, $output) = run_tool(
		'python3', EvidenceNode::shared_path('tools/check_rows.py'),
		$rows, $zip, 'actor=actor_id', 'action=action',
		'target=target_id', 'reason=actor_role', 'summary=summary');
	ok($good, 'rows of others: their checker finds nothing') || diag($output);
	note($output);
	$node2->stop;
}

$node->stop;
done_testing();
