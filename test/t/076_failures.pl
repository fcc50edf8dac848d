# What an export does when something around it fails: the disk, a rule, the
# background workers, a process that stands still.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', lease => 60);

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub failure_of
{
	my ($id) = @_;

	return sql("SELECT error_code, error_message"
		  . " FROM evidence.audit_export_status WHERE id = '$id'");
}

# A setting of the server, seen by every process that starts from now on.
sub set_server
{
	my ($name, $value) = @_;
	my $before = sql('SELECT clock_timestamp()');

	$node->append_conf('postgresql.conf', "$name = $value\n");
	$node->reload;
	$node->poll("SELECT pg_conf_load_time() > '$before'");
	return;
}

$node->start;
$node->create_extension;
$node->fill(20000, 10);

# A full disk, as far as one can have it for the asking.
set_server('temp_file_limit', '64kB');
my $id = $node->request;
$node->wait_state($id, 'FAILED');
like(failure_of($id), qr/^53400\|.*temp_file_limit/s,
	'C52: a temporary file that cannot grow fails the export, and it says so');
is($node->ledger_faults, '', 'the ledger is in order');
my ($code, $text) = $node->error_of('CALL evidence.run_once()');
is($code, '', 'run_once() has nothing left to do');
set_server('temp_file_limit', '-1');
$id = $node->export;
pass('with room for the file the next export is made');

# A rule that came in on a way of its own and is none.
sql("INSERT INTO evidence.redaction_rule (name, added_in, position, pattern, anchors, added_by, reason)"
	  . " SELECT 'broken', max(added_in) + 1, 9999, '(', '{}', 'nobody', 'a test' FROM evidence.redaction_rule"
);
$id = $node->request;
$node->wait_state($id, 'FAILED');
like(failure_of($id), qr/^22023\|.*pattern of redaction rule "broken" is wrong/s,
	'a rule that does not compile fails the export, and it is named');
sql("SELECT evidence.retire_redaction_rule('broken', 'it was none')");
$id = $node->export;
pass('without it the next export is made');

# A process that makes no progress loses its lease and its slot.
my $offset = $node->pause_before('half-read');
$id = $node->request;
my $pid = $node->wait_paused('half-read', $offset);
kill 'STOP', $pid;
$node->resume;
$node->wait_given_up($offset);
pass('the launcher gives up an exporter that stands still');
kill 'CONT', $pid;
$node->wait_state($id, 'READY');
is($node->ledger_faults, '', 'and another one makes the export');

# An archive loses a chunk while it is read, after all of them were counted.
{
	my $grant = sql("SELECT evidence.grant_audit_export_download('$id')");

	$offset = $node->pause_before('half-fetched');
	my $reader = $node->background_psql('postgres', on_error_stop => 0);

	$reader->query_until(qr//,
		"SELECT count(*) FROM evidence.fetch_audit_export('$grant');\n");
	$node->wait_paused('half-fetched', $offset);
	sql("DELETE FROM evidence.archive_chunk WHERE export_id = '$id' AND seq = 1");
	$node->resume;
	$node->wait_for_log(qr/ERROR:  stored archive is not the one of the ledger/,
		$offset);
	pass('an archive that loses a chunk while it is read is refused');
	$reader->quit;
	is(($node->error_of("SELECT evidence.grant_audit_export_download('$id')"))[0],
		'PE006', 'and it is not granted again');
	sql("SELECT evidence.revoke_audit_export('$id', 'it lost a chunk')");
}

# No background worker is free: the launcher says so, and nothing is lost.
$node->append_conf('postgresql.conf', "max_worker_processes = 2\n");
$node->restart;
$offset = -s $node->logfile;
$id = $node->request;
$node->wait_for_log(qr/no free background worker|could not start an exporter/, $offset);
is($node->export_state($id), 'QUEUED', 'without a free worker it waits');

# With a free one it is made, and outside of developer mode nobody pauses.
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->write_settings(developer_mode => 'off', debug_pause => 'half-read');
$node->restart;
$node->wait_state($id, 'READY');
is( sql("SELECT attempts FROM evidence.background_job WHERE export_id = '$id'"),
	'1',
	'and no attempt is spent on the wait');

is($node->ledger_faults, '', 'the ledger is in order');
done_testing();
