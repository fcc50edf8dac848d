# Strangers read packages of the real server: unpackers, readers of CSV and
# spreadsheets of other makes.  Each sees every cell as the reference reader
# does, which is held against the table here too; and in no spreadsheet does a
# cell become a formula.  Controls show that the same spreadsheets do evaluate
# the same rows where nothing guards them.
#
# What the readers saw goes as lines of a Markdown table to the file that
# EVIDENCE_RESULT names.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $result = $ENV{EVIDENCE_RESULT} // "$folder/result";
my $node = EvidenceNode->new('main', max_records => 60000);
$node->start;
$node->create_extension;

# Runs one of the scripts in this folder.  What it says goes to the result;
# of a control only the log has it.
sub readers_ok
{
	my ($what, $script, @arguments) = @_;
	my ($out, $err) = ('', '');
	local %ENV = $node->_get_env(PGDATABASE => 'postgres');
	my $good = IPC::Run::run(
		[ 'python3', EvidenceNode::tool_path("../foreign/$script"), @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);

	ok($good && $out ne '', $what) || diag(substr $err, 0, 4000);
	note($out);
	append_to_file($result, $out) if $what !~ /^control/;
	return;
}

# The packages, each compared with the table by the reference reader.
my $hostile = "$folder/hostile.zip";
{
	my ($id, $where) = export_hostile_rows($node, $hostile);
	cells_ok($node, $hostile, $where, 'hostile rows');
}
my $hosts = "$folder/hosts.zip";
{
	my ($id, $where) = export_host_events($node, $hosts, 20000);
	query_to_file($node, "$folder/planted.json", 'SELECT json_agg(secret) FROM planted');
	reference_ok($hosts, rows_to_file($node, $where), 'events of machines',
		'--secrets', "$folder/planted.json");
}
my @packages = ([ 'hostile rows', $hostile ], [ 'machine events', $hosts ]);

# Recorded events of others, when they are at hand: 60,000 of a year, pressed
# into 30 days so that all are in one package.
if (my $events = EvidenceNode::shared_path('data/windows-security-events.jsonl.gz'))
{
	$node->safe_psql('postgres', <<~"SQL");
		CREATE TABLE recorded (n bigint GENERATED ALWAYS AS IDENTITY, event jsonb);
		COPY recorded (event) FROM PROGRAM 'zcat $events' (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02');
		INSERT INTO evidence.audit_log
		       (created_at, tenant_id, actor_id, action, target_type, target_id, outcome,
		        error_code, request_id, summary)
		SELECT now() - interval '29 days' + ((event->>'event_time')::timestamptz - first) / 20, event->>'host',
		       coalesce(event->>'actor', 'unknown'), 'security.' || (event->>'event_id'),
		       event->>'object_type', event->>'object_name', event->>'outcome',
		       event->>'status', event->>'logon_id', event->>'message'
		  FROM recorded, (SELECT min((event->>'event_time')::timestamptz) AS first FROM recorded) AS t ORDER BY n;
		SQL
	my $id = $node->export(purpose => 'recorded events', filters => '{"action": ["security.*"]}');
	my $zip = "$folder/recorded.zip";
	$node->export_to_file($id, $zip);
	cells_ok($node, $zip, q{starts_with(action, 'security.')}, 'recorded events');
	push @packages, [ 'recorded events', $zip ];
}

readers_ok("unpackers and readers of CSV: $_->[0]", 'text_readers.py', @$_) foreach @packages;

# The same rows without guard, as a naive program would write them.
my $naive = "$folder/naive.csv";
$node->safe_psql('postgres',
	"COPY (SELECT key, value FROM hostile ORDER BY key) TO '$naive' (FORMAT csv, HEADER)");
my @named = map { "$_->[0]=$_->[1]" } @packages;

readers_ok('control: LibreOffice evaluates unguarded rows',
	'spreadsheets.py', 'evaluate', "unguarded=$naive", '--formulas-at-least', 6);
readers_ok('control: Gnumeric evaluates unguarded rows',
	'spreadsheets.py', 'gnumeric', "unguarded=$naive", '--formulas-at-least', 4);
readers_ok('control: split at ; and |, cells are evaluated, as README warns',
	'spreadsheets.py', 'semicolon', "hostile rows=$hostile", '--formulas-at-least', 3);

readers_ok('C01-C16: no cell is a formula in LibreOffice, and texts are unchanged',
	'spreadsheets.py', 'evaluate', @named);
readers_ok('C08: with text columns LibreOffice changes no number either',
	'spreadsheets.py', 'text', @named[ 0, 1 ]);
readers_ok('C16: nor is one when the file is taken for Windows-1252',
	'spreadsheets.py', 'latin', $named[0]);
readers_ok('C06: nor when it is split at tabs', 'spreadsheets.py', 'tab', $named[0]);
readers_ok('C01-C16: no cell is a formula in Gnumeric', 'spreadsheets.py', 'gnumeric', @named[ 0, 1 ]);

$node->stop;
done_testing();
