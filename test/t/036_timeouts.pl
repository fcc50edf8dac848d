# Timeouts that an administrator sets for everybody's sessions: a worker is no
# session, and reads a long export to its end.

use strict;
use warnings;

use EvidenceNode;
use Test::More;

my $node = EvidenceNode->new('main');

plan skip_all => 'transaction_timeout came with PostgreSQL 17'
  if $node->pg_version < 17;

$node->start;

# This test's own sessions are not meant.
$ENV{PGOPTIONS} = '-c transaction_timeout=0';

$node->create_extension;
$node->fill(1000, 10);
$node->safe_psql('postgres',
	"ALTER SYSTEM SET transaction_timeout = '100ms'");
my $offset = -s $node->logfile;

$node->restart;
$node->wait_for_log(qr/launcher serves database "postgres"/, $offset);

$offset = $node->pause_before('half-read');
my $id = $node->request;
my $pid = $node->wait_paused('half-read', $offset);

$node->poll("SELECT clock_timestamp() - xact_start > '300 ms'"
	  . " FROM pg_stat_activity WHERE pid = $pid");
$node->resume;
$node->wait_state($id, 'READY');
is( $node->safe_psql('postgres',
		"SELECT attempts, deferrals FROM evidence.background_job WHERE export_id = '$id'"),
	'1|0',
	'transaction_timeout does not end an exporter that reads for longer');
is($node->ledger_faults, '', 'one archive and nothing else');

$node->stop;

done_testing();
