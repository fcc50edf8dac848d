# Audit records are shipped by a background worker: it starts and stops with
# the setting, lives through reloads, renamed files and other shippers, and
# loses nothing when it dies between any two of its steps.

use strict;
use warnings;

use EvidenceNode;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = EvidenceNode->new('main', ship_interval => '50ms');

$node->start;
$node->create_extension;

my $folder = $node->data_dir . '/log';
my $file = "$folder/pg_evidence_audit.jsonl";
my $number = 0;

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Write records of this name, all in one transaction.
sub record
{
	my ($name, $count) = @_;

	sql("SELECT count(evidence.record_audit_event('$name', 'test', summary => n::text))"
		  . " FROM generate_series(1, $count) AS n");
	return;
}

# Wait until the shipper has nothing left to do.
sub wait_shipped
{
	$node->poll("SELECT NOT EXISTS (SELECT FROM evidence.audit_delivery WHERE state = 'pending')");
	return;
}

# How often each id of this event stands in the files; torn lines have none.
sub shipped
{
	my ($name) = @_;
	my %seen;

	foreach my $path (glob "$folder/*.jsonl*")
	{
		foreach my $line (split /\n/, slurp_file($path))
		{
			my $record = eval { decode_json($line) } or next;

			$seen{ $record->{id} }++ if $record->{event} eq $name;
		}
	}
	return \%seen;
}

# Every record of this event is in the files, and sent; returns how many twice.
sub is_complete
{
	my ($name, $count, $test) = @_;
	my $seen = shipped($name);

	is(scalar keys %$seen, $count, "$test: every record is in the file");
	is( sql(<<"SQL"),
SELECT count(*), count(*) FILTER (WHERE d.state = 'sent' AND d.attempts = 1 AND d.sink = 'file')
  FROM evidence.audit_log AS l
  JOIN evidence.audit_delivery AS d ON d.audit_created_at = l.created_at AND d.audit_id = l.id
 WHERE l.action = '$name'
SQL
		"$count|$count",
		"$test: and sent");
	return scalar grep { $_ > 1 } values %$seen;
}

# The worker comes and goes with the setting.
{
	my $name = 'switched on';
	my $offset = -s $node->logfile;

	record('test.off', 3);
	is($node->worker_pid('shipper'), '', 'off: there is no shipper');
	$node->set(ship => 'on');
	$node->wait_for_log(qr/pg_evidence shipper started: sink "file"/, $offset);
	record('test.on', 3);
	wait_shipped();
	is(is_complete('test.on', 3, $name), 0, "$name: once");
	is_deeply(shipped('test.off'), {}, "$name: and nothing from before");
	is(sprintf('%04o', (stat $file)[2] & 07777), '0600', "$name: nobody else reads the file");
	is(sql("SELECT state, depth FROM evidence.queue_health WHERE lane = 'shipping'"),
		'idle|0', "$name: queue_health says so");
	is( sql("SELECT count(*) FROM evidence.metrics WHERE name = 'pg_evidence_shipper_running' AND value = 1"),
		'1', "$name: and metrics");
	# Passes that find nothing write nothing.
	my $passes = "SELECT value FROM evidence.metrics WHERE name = 'pg_evidence_ship_passes_total'";
	my $before = sql('SELECT count(*) FROM evidence.pass_log');
	my $made = sql($passes);
	$node->poll("SELECT ($passes) > $made + 5");
	is(sql('SELECT count(*) FROM evidence.pass_log'), $before, 'idle passes leave no rows');

	$offset = -s $node->logfile;
	$node->set(ship => 'off');
	$node->wait_for_log(qr/pg_evidence shipper ends: 3 records shipped, 0 put off, 0 stuck/, $offset);
	$node->set(ship => 'on');
	$node->poll("SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_evidence shipper'");
	record('test.again', 1);
	wait_shipped();
	is_complete('test.again', 1, 'switched off and on');
}

# A sink that is out of order: one line in the log, no attempt.
{
	my $name = 'broken';
	my $elsewhere = $node->data_dir . '/elsewhere';
	my $offset = -s $node->logfile;
	my $passes = "SELECT value FROM evidence.metrics WHERE name = 'pg_evidence_ship_pass_errors_total'";

	$node->set(ship_file => "$elsewhere/audit.jsonl");
	$node->wait_for_log(qr/sink "file" is out of order: could not open .* No such file or directory/, $offset);
	record('test.broken', 2);
	my $made = sql($passes);
	$node->poll("SELECT ($passes) > $made + 5");
	my @lines = slurp_file($node->logfile, $offset) =~ /(is out of order)/g;
	is(scalar @lines, 1, "$name: told once");
	is(sql("SELECT state, depth, deferred FROM evidence.queue_health WHERE lane = 'shipping'"),
		'broken|2|0', "$name: records wait, none was tried");
	like(sql("SELECT reason FROM evidence.queue_health WHERE lane = 'shipping'"),
		qr/No such file/, "$name: queue_health says why");
	is(sql("SELECT max(attempts) FROM evidence.audit_delivery WHERE state = 'pending'"),
		'0', "$name: no attempt was burnt");
	mkdir $elsewhere or die "could not make $elsewhere: $!";
	$node->wait_for_log(qr/sink "file" takes audit records again/, $offset);
	wait_shipped();
	is(() = slurp_file("$elsewhere/audit.jsonl") =~ /"test\.broken"/g, 4,
		"$name: repaired, it takes them");

	# What others can write to, and what leads elsewhere, is not ours.
	$offset = -s $node->logfile;
	chmod 0620, "$elsewhere/audit.jsonl" or die "chmod: $!";
	$node->wait_for_log(qr/out of order: file .* can be written by others/, $offset);
	unlink "$elsewhere/audit.jsonl" or die "unlink: $!";
	symlink '/dev/null', "$elsewhere/audit.jsonl" or die "symlink: $!";
	$node->wait_for_log(qr/out of order: could not open .*/, $offset);
	$node->set(ship_file => '');
	record('test.repaired', 1);
	wait_shipped();
	is_complete('test.repaired', 1, 'the default file again');
}

# Muted: a setting, not a fault.
{
	my $name = 'muted';

	$node->append_conf('postgresql.conf', "log_min_messages = fatal\n");
	$node->set(ship_sink => 'server_log');
	$node->poll("SELECT state = 'disabled' FROM evidence.queue_health WHERE lane = 'shipping'");
	record('test.muted', 1);
	my $passes = "SELECT value FROM evidence.metrics WHERE name = 'pg_evidence_ship_passes_total'";
	my $made = sql($passes);
	$node->poll("SELECT ($passes) > $made + 3");
	is( sql("SELECT state, attempts FROM evidence.audit_delivery ORDER BY audit_id DESC LIMIT 1"),
		'pending|0', "$name: the record waits, untried");
	my $offset = -s $node->logfile;
	$node->append_conf('postgresql.conf', "log_min_messages = warning\n");
	$node->reload;
	wait_shipped();
	like(slurp_file($node->logfile, $offset), qr/pg_evidence audit: \{"id":\d+,"event":"test\.muted"/,
		"$name: unmuted, it is in the log");
	$node->set(ship_sink => 'file');
}

# The file is renamed, and ends in the middle of a line.
{
	my $name = 'rotation';
	foreach my $round (1 .. 10)
	{
		record('test.rotated', 50);
		rename $file, "$file.$round" if -e $file;
	}
	wait_shipped();
	is(is_complete('test.rotated', 500, $name), 0, "$name: once");

	record('test.whole', 1);
	wait_shipped();
	open my $handle, '>>', $file or die "could not open $file: $!";
	print $handle '{"id":1,"event":"test.torn","cre';
	close $handle;
	record('test.after', 2);
	wait_shipped();
	is(is_complete('test.after', 2, 'a torn line'), 0, 'a torn line: the next ones are whole');
	is_deeply(shipped('test.torn'), {}, 'a torn line: and it stays torn');
}

# Others ship as well.
{
	my $name = 'four shippers';
	my @sessions;

	$node->set(ship_batch => 16);
	record('test.many', 2000);
	foreach (1 .. 3)
	{
		my ($out, $err) = ('', '');
		push @sessions,
		  [ IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CALL evidence.ship_pass()' ],
				'>', \$out, '2>', \$err), \$err ];
	}
	foreach my $session (@sessions)
	{
		$session->[0]->finish;
		is(${ $session->[1] }, '', "$name: a pass beside the others");
	}
	wait_shipped();
	is(is_complete('test.many', 2000, $name), 0, "$name: nobody takes what another has");
	is( (grep { !eval { decode_json($_) } } grep { !/test\.torn/ } split /\n/, slurp_file($file)),
		0, "$name: no line is mixed with another");
	$node->set(ship_batch => 256);
}

# Death between any two steps.
foreach my $step ('begun', 'shipping', 'shipped', 'sending', 'sent')
{
	foreach my $signal ('KILL', 'TERM')
	{
		my $name = "SIG$signal before \"$step\"";
		my $event = lc "test.$signal\_$step";
		my $offset = $node->pause_before($step);

		record($event, 5);
		my $pid = $node->wait_paused($step, $offset);

		$node->signal($signal, $pid);
		$node->resume if $signal eq 'TERM';
		wait_shipped();
		my $twice = is_complete($event, 5, $name);
		my $may = $signal eq 'KILL' && $step =~ /^(?:shipping|shipped|sending)$/ ? 5 : 0;
		is($twice, $may, "$name: " . ($may ? 'the batch comes twice' : 'once'));
		unlike(slurp_file($node->logfile, $offset), qr/shipper FATAL|shipper ERROR|PANIC/,
			"$name: told to stop, it ends without an error")
		  if $signal eq 'TERM';
	}
}
is( sql("SELECT sum((counts ->> 'shipped')::int) FROM evidence.pass_log WHERE kind = 'ship'"),
	sql("SELECT count(*) FROM evidence.audit_delivery WHERE state = 'sent'"),
	'pass_log counts each record that was sent, once, whoever died');

# A cancelled pass goes on with the next one.
{
	my $name = 'cancelled';
	my $offset = $node->pause_before('begun');

	record('test.cancelled', 5);
	my $pid = $node->wait_paused('begun', $offset);
	sql("SELECT pg_cancel_backend($pid)");
	$node->resume;
	wait_shipped();
	is_complete('test.cancelled', 5, $name);
	is($node->worker_pid('shipper'), $pid, "$name: by the same process");
}

# DROP EXTENSION beside a shipper that is at work.
{
	my $name = 'DROP EXTENSION beside the shipper';
	my @errors;

	foreach my $try (1 .. 6)
	{
		my ($code, $text);

		record('test.dropped', 3000);
		$node->poll("SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_evidence shipper'");
		($code, $text) = $node->error_of('DROP EXTENSION pg_evidence');
		push @errors, $text if $code ne '';
		$node->create_extension;
	}
	is_deeply(\@errors, [], "$name: never fails");
	record('test.anew', 3);
	wait_shipped();
	my $seen = shipped('test.anew');
	is(scalar keys %$seen, 3, "$name: and the new ledger is shipped");
}

$node->stop;
done_testing();
