# Many sessions, many workers, two dispatchers: the limits hold and every
# answer is the right one.

use strict;
use warnings;

use EvidenceNode;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', max_exporters => 0,
	max_active_per_requester => 3);
my $range = "date_trunc('hour', now()) - interval '20 days',"
  . " date_trunc('hour', now()) + interval '1 day'";

$node->append_conf('postgresql.conf', 'max_worker_processes = 32');
$node->start;
$node->create_extension;
$node->fill(1000, 10);

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Runs one script per session, a statement a line, all at once, and returns
# what each printed on both channels.  The sessions wait for each other at an advisory lock.
sub in_parallel
{
	my (@scripts) = @_;
	my $gate = $node->background_psql('postgres');
	my @runs;

	$gate->query_safe('SELECT pg_advisory_lock(4711)');
	foreach my $script (@scripts)
	{
		my ($out, $err) = ('', '');
		my @statements =
		  ('SELECT FROM pg_advisory_lock_shared(4711)', split /\n/, $script);
		my $run = IPC::Run::start(
			[
				$node->installed_command('psql'), '-XAtq',
				'-v', 'VERBOSITY=sqlstate',
				'-d', $node->connstr('postgres'),
				map { ('-c', $_) } @statements
			],
			'<', \undef, '>', \$out, '2>', \$err);

		push @runs, [ $run, \$out, \$err ];
	}
	$node->poll('SELECT count(*) = ' . @scripts . ' FROM pg_locks'
		  . " WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted");
	$gate->query_safe('SELECT pg_advisory_unlock(4711)');
	$gate->quit;
	$_->[0]->finish foreach @runs;
	return map { ${ $_->[1] } . ${ $_->[2] } } @runs;
}

sub tally
{
	my %count;

	foreach my $answer (@_)
	{
		$answer =~ s/\s+$//;
		$answer =~ s/^\s+//;
		$answer =~ s/.*ERROR: +(\w{5}).*/$1/s;
		$count{$answer}++;
	}
	return \%count;
}

sub request_sql
{
	my ($key, $purpose) = @_;

	return "SELECT evidence.request_audit_export($range, '$purpose', '$key');";
}

# C47, first half.
{
	my $count = tally(in_parallel(map { request_sql('same', 'test') } 1 .. 20));
	my ($id) = keys %$count;

	is(scalar keys %$count,
		1, 'C47: 20 sessions with one key get one and the same answer');
	like($id, qr/^[0-9a-f-]{36}$/, 'C47: it is an id');
	is( sql(<<'SQL'),
SELECT (SELECT count(*) FROM evidence.audit_export),
       (SELECT count(*) FROM evidence.background_job),
       (SELECT count(*) FROM evidence.outbox_event),
       (SELECT count(*) FROM evidence.audit_log WHERE action = 'audit_export.request')
SQL
		'1|1|1|1',
		'C47: one export, one job, one event, one audit row');
	sql("SELECT evidence.cancel_audit_export('$id', 'test')");
}

# C47, second half, at each isolation level: two of three places are taken.
foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my @taken = map { sql(request_sql("$level taken $_", 'test')) } 1 .. 2;
	my @answers = in_parallel(
		map {
			"SET default_transaction_isolation = '$level';\n"
			  . request_sql("$level $_", 'test')
		} 1 .. 20);
	my $count = tally(@answers);
	my @ids = grep { /^[0-9a-f-]{36}$/ } keys %$count;
	my $refused = ($count->{'53400'} // 0) + ($count->{'40001'} // 0);

	is(scalar @ids, 1, "C47: 20 keys for one place, $level: exactly one gets it");
	is($refused, 19,
		"C47: 20 keys for one place, $level: the others get 53400 or 40001")
	  or diag(explain($count));
	is( sql("SELECT count(*) FROM evidence.audit_export WHERE state = 'QUEUED'"),
		'3', "C47: 20 keys for one place, $level: three are active");
	sql("SELECT evidence.cancel_audit_export('$_', 'test')") foreach @taken, @ids;
}

# Drill S3.10.
{
	my $count = tally(in_parallel(
		(map { request_sql('drill', 'test') } 1 .. 10),
		(map { request_sql('drill', "other $_") } 1 .. 2)));
	my @ids = grep { /^[0-9a-f-]{36}$/ } keys %$count;

	# Which of them is first is chance, so one of the two may win as well.
	is(scalar @ids, 1, 'S3.10: 12 submissions with one key make one export');
	ok( ($count->{PE001} // 0) == 2 && $count->{ $ids[0] } == 10
		  || ($count->{PE001} // 0) == 11 && $count->{ $ids[0] } == 1,
		'S3.10: the same again is a hit, another request is a conflict')
	  or diag(explain($count));
	is( sql(
			"SELECT count(*) FROM evidence.audit_export WHERE idempotency_key = 'drill'"
		),
		'1',
		'S3.10: one export');
	sql("SELECT evidence.cancel_audit_export('$ids[0]', 'test')");
}

# More jobs than places.
{
	my $name = 'max_exporters = 4';

	$node->set(max_active_per_requester => 100);
	my @ids = map { sql(request_sql("job $_", 'test')) } 1 .. 12;
	my $offset = $node->pause_before('half-read');

	$node->set(max_exporters => 4);
	$node->poll("SELECT count(*) = 4 FROM evidence.background_job WHERE state = 'RUNNING'");
	$node->poll("SELECT count(*) = 4 FROM pg_stat_activity"
		  . " WHERE backend_type = 'pg_evidence exporter'");
	sql('CALL evidence.run_once()');
	is( sql("SELECT count(*) FROM evidence.background_job WHERE state = 'RUNNING'"),
		'4',
		"$name: run_once() finds no fifth place");
	$node->resume;
	$node->wait_state($_, 'READY') foreach @ids;

	# How many ran at once, from the attempts themselves.
	is( sql(<<'SQL'),
SELECT max(running) <= 4, max(running) > 1 FROM (
  SELECT sum(step) OVER (ORDER BY at, step) AS running
    FROM (SELECT started_at AS at, 1 AS step FROM evidence.attempt
          UNION ALL
          SELECT ended_at, -1 FROM evidence.attempt) AS steps) AS counted
SQL
		't|t',
		"$name: of 12 jobs never more than four ran");
	is( sql(<<'SQL'),
SELECT count(*), count(DISTINCT export_id) FROM evidence.attempt
SQL
		'12|12',
		"$name: each was claimed once");
	is($node->ledger_faults, '', "$name: one archive each and nothing else");
}

# C41: the claim does not depend on the planner.
{
	my $name = 'C41: planner settings off';

	$node->set(max_exporters => 0);
	sql("ALTER DATABASE postgres SET $_ = off")
	  foreach qw(enable_hashjoin enable_mergejoin enable_hashagg enable_sort
		enable_material jit);
	my @ids = map { sql(request_sql("plan $_", 'test')) } 1 .. 20;

	sql('CALL evidence.run_once()');
	is( sql("SELECT count(*) FROM evidence.attempt AS a"
			  . " JOIN evidence.audit_export AS e ON e.id = a.export_id"
			  . " WHERE e.idempotency_key LIKE 'plan %'"),
		'1',
		"$name: run_once() claims one job of 20");
	$node->set(max_exporters => 2);
	$node->wait_state($_, 'READY') foreach @ids;
	is( sql("SELECT count(*), count(DISTINCT a.export_id), max(j.attempts)"
			  . " FROM evidence.attempt AS a"
			  . " JOIN evidence.background_job AS j ON j.export_id = a.export_id"
			  . " JOIN evidence.audit_export AS e ON e.id = a.export_id"
			  . " WHERE e.idempotency_key LIKE 'plan %'"),
		'20|20|1',
		"$name: every job is claimed once");
	is($node->ledger_faults, '', "$name: one archive each and nothing else");
	sql("ALTER DATABASE postgres RESET ALL");
}

# C45: two dispatchers and more.
{
	my $name = 'C45: launcher and four run_once() loops';

	my @ids = map { sql(request_sql("both $_", 'test')) } 1 .. 16;
	my @answers = in_parallel(map { "CALL evidence.run_once();\n" x 6 } 1 .. 4);

	$node->wait_state($_, 'READY') foreach @ids;
	is(join('', @answers), '', "$name: no error");
	is( sql("SELECT count(*), max(j.attempts), max(j.deferrals)"
			  . " FROM evidence.background_job AS j"
			  . " JOIN evidence.audit_export AS e ON e.id = j.export_id"
			  . " WHERE e.idempotency_key LIKE 'both %'"),
		'16|1|0',
		"$name: each export is made once");
	is($node->ledger_faults, '', "$name: one archive each and nothing else");
}

# C45: an event that cannot be delivered holds up nobody.
{
	my $name = 'C45: an event that always fails';

	# What no function of the ledger does: a job that is at its end before it
	# began.
	sql(<<"SQL");
BEGIN;
ALTER TABLE evidence.background_job DISABLE TRIGGER guard;
SELECT evidence.request_audit_export($range, 'bad');
UPDATE evidence.background_job AS j SET state = 'FAILED', finished_at = now()
  FROM evidence.audit_export AS e WHERE e.id = j.export_id AND e.purpose = 'bad';
ALTER TABLE evidence.background_job ENABLE ALWAYS TRIGGER guard;
COMMIT;
SQL
	my $good = sql(request_sql('good', 'test'));

	$node->wait_state($good, 'READY');
	pass("$name: the next one is delivered");
	is( sql(<<'SQL'),
SELECT o.state, o.attempts > 0, o.next_attempt_at > o.created_at, o.error_code
  FROM evidence.outbox_event AS o
  JOIN evidence.audit_export AS e ON e.id = o.export_id AND e.purpose = 'bad'
SQL
		'PENDING|t|t|PE006',
		"$name: its pause and error are kept in its row");
}

$node->stop;
done_testing();
