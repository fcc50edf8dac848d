# A full queue: one exporter makes one package after the other, and a job that
# somebody holds keeps neither the others waiting nor the launcher busy.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', max_active_per_requester => 100);

# Each start of a worker is a line of the log.
$node->append_conf('postgresql.conf', "log_min_messages = debug1\n");
$node->start;
$node->create_extension;
$node->fill(100, 10);

sub workers_started
{
	my ($offset) = @_;
	my @lines = slurp_file($node->logfile, $offset) =~
	  /starting background worker process "pg_evidence exporter/g;

	return scalar @lines;
}

# All are in the queue before the first exporter starts.
{
	$node->set(max_exporters => 0);
	my @good = map { $node->request(purpose => 'good') } 1 .. 8;
	my @cancelled = map { $node->request(purpose => 'cancelled') } 1 .. 2;
	my $failing = $node->request(purpose => 'failing',
		filters => '{"actor_id": ["user-3"]}');

	$node->safe_psql('postgres',
		"SELECT evidence.cancel_audit_export('$_', 'test')") foreach @cancelled;
	$node->safe_psql('postgres', <<~'SQL');
		CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF (SELECT purpose FROM evidence.audit_export WHERE id = NEW.export_id) = 'failing' THEN
				RAISE EXCEPTION 'trap' USING ERRCODE = 'data_exception';
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER trap BEFORE INSERT ON evidence.archive_chunk
			FOR EACH ROW EXECUTE FUNCTION public.trap();
		SQL
	my $last = $node->request(purpose => 'last');
	my $offset = -s $node->logfile;

	$node->set(max_exporters => 1);
	$node->wait_state($last, 'READY');
	$node->wait_state($_, 'READY') foreach @good;
	is($node->export_state($failing), 'FAILED', 'the failing one has failed');
	is( $node->safe_psql('postgres',
			'SELECT count(*), count(DISTINCT pid) FROM evidence.attempt'),
		'10|1',
		'one exporter made ten attempts, the failed one among them');
	is(workers_started($offset), 1, 'and was started once for all of them');
	is($node->ledger_faults, '', 'nothing is left of any of them');
	$node->safe_psql('postgres', 'DROP FUNCTION public.trap CASCADE');
}

# A new setting reaches an exporter that works off a queue.
{
	$node->set(max_exporters => 0);
	my @ids = map { $node->request(purpose => 'reload') } 1 .. 3;
	my $offset = $node->pause_before('claimed');

	$node->set(max_exporters => 1);
	$node->wait_paused('claimed', $offset);
	$node->write_settings(max_records => 10);
	$node->resume;
	$node->poll(
		"SELECT count(*) = 3 FROM evidence.audit_export WHERE purpose = 'reload' AND state = 'FAILED' AND error_code = 'PE002'"
	);
	pass('a limit that was changed meanwhile counts');
	$node->set(max_records => 1000);
}

# Somebody cancels the first in the queue and leaves the transaction open.
{
	$node->set(max_exporters => 0);
	my $held = $node->request(purpose => 'held');
	my $session = $node->background_psql('postgres');

	$session->query_safe(
		"BEGIN; SELECT evidence.cancel_audit_export('$held', 'open')");
	my $offset = -s $node->logfile;
	my $from = time;

	$node->set(max_exporters => 1);
	foreach my $round (1 .. 3)
	{
		my $other = $node->request(purpose => "other $round");

		$node->wait_state($other, 'READY');
	}
	pass('the exports behind it are made');

	# It is looked at again and again, but not without a pause.
	$node->poll("SELECT clock_timestamp() > to_timestamp($from + 3)");
	my ($started, $seconds) = (workers_started($offset), time - $from);

	note("$started workers in $seconds seconds");
	cmp_ok($started, '<=', 2 * $seconds + 4,
		'and workers do not follow each other without a pause');
	$session->query_safe('ROLLBACK');
	$session->quit;
	$node->wait_state($held, 'READY');
	is($node->ledger_faults, '', 'rolled back, it is made as well');
}

$node->stop;
done_testing();
