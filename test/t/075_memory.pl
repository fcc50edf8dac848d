# Working memory does not grow: not with the number of rows of an export, not
# with the number of exports that a process has made or failed to make, and
# not with the size of an archive that is fetched.  What is measured is
# RssAnon, the memory that a process has for itself.
#
# EVIDENCE_EXPORTS is how many exports of each kind one process makes; "make
# test-chaos" asks for 2,000.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'needs Linux' unless -r '/proc/self/status';

my $small = 50_000;
my $large = 500_000;

my $node = EvidenceNode->new('main', max_records => 1_000_000, lease => 60,
	max_active_per_requester => 1000);
# A just-in-time compiler would come in for a million rows, and bring its 10 MB;
# here it would come in for all.
$node->append_conf('postgresql.conf', <<~'CONF');
	autovacuum = off
	max_wal_size = '4GB'
	jit_above_cost = 1000
	jit_inline_above_cost = 1000
	jit_optimize_above_cost = 1000
	CONF
$node->start;
$node->create_extension;
$node->fill($small, 9);
$node->safe_psql('postgres', <<"SQL");
	INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, actor_role, action, target_type, target_id, request_id, summary)
	SELECT date_trunc('hour', now()) - interval '20 days' + n * interval '1 second', 'tenant', 'user-' || n % 17, 'clerk',
	       'record.read', 'record', n, 'request-' || n / 4,
	       'event ' || n || CASE WHEN n % 50 = 0 THEN ' password=Hn4Vb' || n WHEN n % 40 = 0 THEN E' =1\\n' ELSE '' END
	  FROM generate_series(1, $large) AS n;
	ANALYZE evidence.audit_log;
SQL

# kB of a process; 0 if there is none.
sub rss_of
{
	my ($pid) = @_;

	open my $status, '<', "/proc/$pid/status" or return 0;
	my ($kb) = map { /^RssAnon:\s+(\d+) kB/ ? $1 : () } <$status>;
	close $status;
	return $kb // 0;
}

# Requests a range and watches the exporter until the export is READY.  It
# stands still until its number is known, and a process of its own does the
# watching, so that nothing is missed when it goes on.
sub watch_export
{
	my ($from, $to) = @_;
	my $offset = $node->pause_before('claimed');
	my $id = $node->safe_psql('postgres',
		"SELECT evidence.request_audit_export(date_trunc('hour', now()) - interval '$from', date_trunc('hour', now()) - interval '$to', 'memory')");
	my $pid = $node->wait_paused('claimed', $offset);

	pipe(my $results, my $report) or die "pipe: $!";
	my $watcher = fork() // die "fork: $!";
	if ($watcher == 0)
	{
		my ($peak, $samples, $ended) = (0, 0, 0);

		local $SIG{TERM} = sub { $ended = 1 };
		syswrite $report, "watching\n";
		until ($ended)
		{
			my $kb = rss_of($pid);
			$peak = $kb if $kb > $peak;
			$samples++;
			usleep(2_000);
		}
		syswrite $report, "$peak $samples\n";
		POSIX::_exit(0);
	}
	close $report;
	<$results>;

	$node->resume;
	$node->wait_state($id, 'READY');
	kill 'TERM', $watcher;
	my ($peak, $samples) = split ' ', <$results>;
	waitpid $watcher, 0;
	note("$samples samples, peak $peak kB");
	return ($id, $peak, $samples);
}

my $idle = $node->background_psql('postgres');
my $idle_kb = rss_of($idle->query_safe('SELECT pg_backend_pid()'));
$idle->quit;
note("idle backend: $idle_kb kB");

my ($small_id, $small_kb, $small_samples) = watch_export('10 days', '0 days');
my ($large_id, $large_kb, $large_samples) = watch_export('20 days', '10 days');

is( $node->safe_psql('postgres',
		"SELECT string_agg(record_count::text, ',' ORDER BY record_count) FROM evidence.audit_export WHERE id IN ('$small_id', '$large_id')"),
	"$small,$large",
	'both exports have all their rows');
cmp_ok($small_samples, '>=', 10, 'the small export was watched');
cmp_ok($large_samples, '>', 50, 'the large export was watched');
cmp_ok($large_kb - $idle_kb, '<=', 5 * 1024,
	'9.11: an exporter needs at most 5 MB more than an idle backend');
cmp_ok(abs($large_kb - $small_kb), '<=', 1024,
	'9.11: ten times the rows need no more memory');

# Fetching.
{
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $grant = $session->query_safe("SELECT evidence.grant_audit_export_download('$large_id')");
	my $size = $node->safe_psql('postgres', "SELECT archive_bytes / 1024 FROM evidence.audit_export WHERE id = '$large_id'");
	my $before = rss_of($pid);
	my $peak = 0;

	# Asked for without waiting for the answer, so that it can be watched.
	$session->{stdin} .= "COPY (SELECT (evidence.fetch_audit_export('$grant')).seq) TO '/dev/null'; COPY (SELECT length((f).data) FROM (SELECT evidence.fetch_audit_export('$grant') AS f OFFSET 0) AS t) TO '/dev/null'; SELECT 'fetch', 'ended';\n";
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until ($session->{stdout} =~ /fetch\|ended/)
	{
		die 'fetch does not end' if time > $deadline;
		my $kb = rss_of($pid);
		$peak = $kb if $kb > $peak;
		$session->{run}->pump_nb;
		usleep(2_000);
	}
	cmp_ok($size, '>', 4 * 1024, 'the archive is large');
	cmp_ok($peak - $before, '<=', 1024,
		'9.11: a fetch in the SELECT list does not grow with the archive');

	# A cursor that is read chunk by chunk.
	$session->{stdout} = '';
	$session->query_safe("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT length((f).data) FROM (SELECT evidence.fetch_audit_export('$grant') AS f OFFSET 0) AS t; FETCH 20 FROM c");
	my $early = rss_of($pid);
	$session->query_safe('MOVE 100000 FROM c; COMMIT');
	cmp_ok(rss_of($pid) - $early, '<=', 1024, '9.11: nor does a cursor');
	$session->quit;
}

my $exports = $ENV{EVIDENCE_EXPORTS} // 300;
# The first ones fill the caches of a process.
my $first = 100;
# A leak of one small allocation with each export would be more than this.
my $flat_kb = 300;
# Before the first row that a request itself wrote into the log.
my %range = (
	good => "now() - interval '3 hours', now() - interval '1 hour'",
	failing => "now() - interval '25 hours', now() - interval '1 hour'");
my %state = (good => 'READY', failing => 'FAILED');

# One exporter, started by the first of these requests, and the launcher.
{
	$node->set(max_records => 1000);
	make($_, $first) foreach sort keys %range;
	my $exporter = $node->worker_pid('exporter');
	my $launcher = $node->worker_pid('launcher');
	my @early = (rss_of($exporter), rss_of($launcher));

	make($_, $exports) foreach sort keys %range;
	my @late = (rss_of($exporter), rss_of($launcher));

	foreach my $what (sort keys %range)
	{
		is( $node->safe_psql('postgres', "SELECT count(*), count(DISTINCT a.pid), min(a.pid) FROM evidence.audit_export AS e JOIN evidence.attempt AS a ON a.export_id = e.id WHERE e.purpose = 'exporter $what' AND e.state = '$state{$what}'"),
			($first + $exports) . "|1|$exporter",
			"one exporter made all $what exports");
	}
	note("after $exports more of each kind: exporter $early[0] kB, $late[0] kB; launcher $early[1] kB, $late[1] kB");
	cmp_ok($late[0], '>', 0, 'it is still there');
	cmp_ok($late[0] - $early[0], '<=', $flat_kb,
		'9.13: exports do not add up in an exporter');
	cmp_ok($late[1] - $early[1], '<=', $flat_kb, '9.13: nor in the launcher');
}

# Fewer at a time than one requester may have.
sub make
{
	my ($what, $count) = @_;

	while ($count > 0)
	{
		my $batch = $count < 500 ? $count : 500;

		$node->safe_psql('postgres', "SELECT count(evidence.request_audit_export($range{$what}, 'exporter $what')) FROM generate_series(1, $batch)");
		$node->poll("SELECT NOT EXISTS (SELECT FROM evidence.audit_export WHERE state IN ('QUEUED', 'PROCESSING'))");
		$count -= $batch;
	}
	return;
}

# One session that calls run_once().
$node->set(max_exporters => 0);
foreach my $what (sort keys %range)
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $memory = q{SELECT 'rss ' || substring(pg_read_file('/proc/self/status', 0, 8000) FROM 'RssAnon:\s+(\d+)');};

	open my $script, '>', "$folder/runs.sql" or die $!;
	foreach my $run (0 .. $exports)
	{
		print $script "SELECT evidence.request_audit_export($range{$what}, 'session $what') \\g $folder/id\n",
		  "CALL evidence.run_once();\n";
		print $script "$memory\n" if $run == $first || $run == $exports;
	}
	close $script;
	my $out = '';
	{
		local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGOPTIONS => '-c client_min_messages=error');
		IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', "$folder/runs.sql" ],
			'<', \undef, '>', \$out, IPC::Run::timeout(900)) or die 'psql failed';
	}

	# The launcher may have been at work on an event that run_once() then left
	# for the next time.
	$node->safe_psql('postgres', 'CALL evidence.run_once()') foreach 1 .. 3;
	is($node->safe_psql('postgres', "SELECT count(*) FROM evidence.audit_export WHERE purpose = 'session $what' AND state = '$state{$what}'"),
		$exports + 1, "$what exports all became $state{$what} in a session");
	my ($early, $late) = $out =~ /rss (\d+)/g;
	note("$what: $early kB after $first, $late kB after $exports");
	cmp_ok($late - $early, '<=', $flat_kb,
		"9.13: $what exports do not add up in a session");
}

$node->stop;
done_testing();
