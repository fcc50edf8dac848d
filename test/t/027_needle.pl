# A filter that matches ten rows of very many: the worker looks at all of them
# and keeps its lease meanwhile, a cancellation stops it at once wherever it
# is, and the package holds the ten rows.
#
# EVIDENCE_ROWS is how many rows there are; "make test-large" has 10 million.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = $ENV{EVIDENCE_ROWS} // 1_000_000;
my $needles = 10;
my $lease = $rows < 5_000_000 ? 3 : 10;

my $node = EvidenceNode->new('main', lease => $lease, max_active_per_requester => 100);
my $file = PostgreSQL::Test::Utils::tempdir() . '/evidence.zip';

$node->append_conf('postgresql.conf', <<~'CONF');
	autovacuum = off
	shared_buffers = 512MB
	max_wal_size = 8GB
	checkpoint_timeout = 1h
	CONF
$node->start;
$node->create_extension;

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql, timeout => 1800);
}

# 31 days of events, oldest first as they come in life; the needles lie at
# equal distances, the first one in the middle of its part.
sql(<<"SQL");
INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, actor_role, action, target_type, target_id, request_id, summary)
SELECT date_trunc('hour', now()) - interval '744 hours' + n * (interval '743 hours' / $rows), 'tenant-' || n % 3, 'user-' || n % 17, 'clerk',
       CASE WHEN n % ($rows / $needles) = $rows / $needles / 2 THEN 'needle.found' ELSE 'record.read' END,
       'record', n::text,
       'request-' || n / 4, 'event number ' || n
  FROM generate_series(0, $rows - 1) AS n
SQL
sql('VACUUM (FREEZE, ANALYZE) evidence.audit_log');
is(sql("SELECT count(*), count(*) FILTER (WHERE action = 'needle.found') FROM evidence.audit_log"),
	"$rows|$needles", "$needles rows of $rows match");

my $range = "date_trunc('hour', now()) - interval '744 hours', date_trunc('hour', now())";
my $request = qq{SELECT evidence.request_audit_export($range, '%s', filters => '{"action": ["needle.found"%s]}')};

# The lease counts from the moment when a worker gets the job; this one starts
# the process that gets it.
$node->export(start_at => '2000-01-01', end_at => '2000-01-02');

# Undisturbed, and slow: many prefixes are compared with each row.  Each
# renewal of the lease is a new value of lease_until; a session looks at it all
# the time.
my $prefixes = join ', ', map { qq{"other-$_.*"} } 1 .. 15;
my $offset = -s $node->logfile;
my $id = sql(sprintf $request, 'undisturbed', ", $prefixes");
my $renewals = sql(<<"SQL");
DO \$\$
DECLARE
	seen timestamptz[] := '{}';
	latest timestamptz;
BEGIN
	LOOP
		SELECT lease_until INTO latest FROM evidence.attempt WHERE export_id = '$id';
		IF latest IS NOT NULL AND NOT latest = ANY (seen) THEN
			seen := seen || latest;
		END IF;
		COMMIT;
		EXIT WHEN (SELECT state NOT IN ('QUEUED', 'PROCESSING') FROM evidence.audit_export WHERE id = '$id');
		PERFORM pg_sleep(0.02);
	END LOOP;
	PERFORM set_config('chaos.renewals', cardinality(seen)::text, false);
END \$\$;
SELECT current_setting('chaos.renewals')::integer - 1;
SQL

is(sql(<<"SQL"),
SELECT e.state, e.record_count, j.attempts, j.deferrals,
       (SELECT string_agg(outcome, ' ') FROM evidence.attempt AS a WHERE a.export_id = e.id)
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE e.id = '$id'
SQL
	"READY|$needles|1|0|succeeded", 'the first attempt makes a package of the ten rows');
my $seconds = sql("SELECT round(extract(epoch FROM finished_at - started_at), 1) FROM evidence.background_job WHERE export_id = '$id'");
note("$seconds s, lease renewed $renewals times");
cmp_ok($renewals, '>=', 1, 'and its lease was renewed');
unlike(slurp_file($node->logfile, $offset), qr/stands still|lost its lease/,
	'nobody took it for one that stands still');

$node->export_to_file($id, $file);
is(($node->program('verify', $file))[0], 0, 'the package is intact');
is_deeply([ map { $_->{id} } @{ records_of($file) } ],
	[ split /\n/, sql("SELECT id FROM evidence.audit_log WHERE action = 'needle.found' ORDER BY created_at, id") ],
	'and has exactly these rows, in order');

# Cancelled at random moments of the counting and the reading.
my @latencies;
my $longest = sql("SELECT extract(epoch FROM finished_at - started_at) FROM evidence.background_job WHERE export_id = '"
	  . $node->export(start_at => sql("SELECT date_trunc('hour', now()) - interval '744 hours'"), end_at => sql("SELECT date_trunc('hour', now())"), filters => '{"action": ["needle.found"]}')
	  . "'");

note("$longest s without the prefixes");
srand(20261130);
for (my $try = 1; @latencies < $needles && $try <= 5 * $needles; $try++)
{
	my $pause = sprintf '%.3f', (@latencies + rand) / $needles * $longest * 0.9;
	my $statement = sprintf $request, "cancelled $try", '';

	# From one session, since a new one would take too long.
	my ($code) = $node->error_of(<<"SQL");
$statement AS id \\gset
DO \$\$ BEGIN
	LOOP
		EXIT WHEN (SELECT state <> 'QUEUED' FROM evidence.audit_export WHERE purpose = 'cancelled $try');
		COMMIT;
		PERFORM pg_sleep(0.001);
	END LOOP;
END \$\$;
SELECT pg_sleep($pause);
SELECT evidence.cancel_audit_export(:'id', 'test');
SQL
	if ($code eq '55000')
	{
		# It had finished: the machine has become faster since.
		$longest *= 0.8;
		next;
	}
	$node->poll("SELECT stopped_at IS NOT NULL FROM evidence.audit_export WHERE purpose = 'cancelled $try'");
	push @latencies, sql("SELECT round(1000 * extract(epoch FROM stopped_at - cancelled_at)) FROM evidence.audit_export WHERE purpose = 'cancelled $try'");
}
my @sorted = sort { $a <=> $b } @latencies;

note("cancel to stop in ms: @latencies");
is(scalar @latencies, $needles, 'workers were cancelled all over the range');
cmp_ok($sorted[ $#sorted / 2 ], '<=', 100,
	"half of the workers had stopped within 100 ms ($sorted[$#sorted / 2] ms)");
cmp_ok($sorted[-1], '<=', 2000,
	"all had stopped soon ($sorted[-1] ms), on a machine that does other things");
is(sql("SELECT count(*), sum(j.attempts) FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id WHERE e.state = 'CANCELLED'"),
	"$needles|$needles", 'each had one attempt');
is($node->ledger_faults, '', 'nothing is left of any of them');

$node->stop;
done_testing();
