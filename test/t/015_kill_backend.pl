# A session dies before each step of requesting, cancelling, granting and
# fetching.  What was committed counts, what was not never happened, and who got
# no answer repeats the request under its key.

use strict;
use warnings;

use EvidenceNode;
use IPC::Run ();
use KillMatrix;
use PostgreSQL::Test::Utils;
use Test::More;

my $matrix = KillMatrix->new;
my $node = $matrix->node;
my $file = PostgreSQL::Test::Utils::tempdir() . '/evidence.zip';

sub count_of
{
	my ($from) = @_;

	return $matrix->sql("SELECT count(*) FROM $from");
}

# Calls a function in a session of its own that comes to the case's step.
# Returns the process id, the session and, where the client has got it, the
# function's result.
sub bring_to
{
	my ($case, $call) = @_;
	my $step = $case->{step};

	if ($step eq '(returned)' || $step eq '(answered)')
	{
		my $session =
		  $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');

		$session->query_safe('BEGIN') if $step eq '(returned)';
		return ($pid, $session, $session->query_safe("SELECT $call"));
	}
	if ($step eq '(commit record)')
	{
		my $session =
		  $matrix->start("SET synchronous_commit = on; SELECT $call");

		return ($matrix->wait_commit_record('client backend'), $session);
	}
	return $matrix->bring_to($case,
		sub { return $matrix->start("SELECT $call") });
}

# Requesting.  The exporters wait until all sessions have died, so that none of
# them dies in somebody else's crash.
{
	my (@kept, $number);

	$matrix->set(max_exporters => 0);
	$matrix->request;
	$matrix->check_steps('backend', ['request'], sub { $matrix->request });
	foreach my $case ($matrix->cases('request'))
	{
		my $key = 'key ' . ++$number;
		my $call = $matrix->request_call(idempotency_key => $key);
		my $export = "evidence.audit_export WHERE idempotency_key = '$key'";
		my ($pid, $session) = bring_to($case, $call);

		$matrix->kill_held($case, $pid);
		$matrix->end_session($session);

		my $committed = $matrix->is_after($case, '(returned)') ? 1 : 0;

		is(count_of($export), $committed,
			"$case->{name}: " . ($committed ? 'committed' : 'nothing is left'));
		push @kept,
		  {
			id => $matrix->sql("SELECT $call"),
			case => $case,
			outcome => ($committed ? 'kept' : 'undone, asked again')
			  . ', made once'
		  };
		is(count_of($export), 1, "$case->{name}: one export after asking again");
	}
	$matrix->set(max_exporters => 2);
	$matrix->is_made($_->{case}, $_->{id}, 1, 0, $_->{outcome}) foreach @kept;
	$matrix->wait_until(
		"SELECT count(*) = 0 FROM evidence.audit_export WHERE state <> 'READY'");
}

# Cancelling what the launcher has not delivered yet.
sub request_for_later
{
	return $matrix->sql(<<"SQL");
BEGIN;
SELECT @{[ $matrix->request_call ]} AS id \\gset
UPDATE evidence.outbox_event SET next_attempt_at = now() + interval '1 hour' WHERE export_id = :'id';
COMMIT;
SELECT :'id'
SQL
}

{
	my $id = request_for_later();

	$matrix->check_steps('backend', ['cancel, queued'],
		sub { $matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')") }
	);
}
foreach my $case ($matrix->cases('cancel, queued'))
{
	my $id = request_for_later();
	my ($pid, $session) =
	  bring_to($case, "evidence.cancel_audit_export('$id', 'test')");

	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);
	if ($matrix->is_after($case, '(returned)'))
	{
		$matrix->is_in_state($case, $id, 'CANCELLED', 0, 0);
	}
	else
	{
		$matrix->sql("UPDATE evidence.outbox_event SET next_attempt_at = now()"
			  . " WHERE export_id = '$id'; SELECT @{[ $matrix->request_call ]}");
		$matrix->is_made($case, $id, 1, 0, 'undone, made once');
	}
}

# Cancelling what an exporter works on.
{
	my ($exporter, $id) = $matrix->hold_exporter('telling');

	$matrix->check_steps('backend', ['cancel, running'],
		sub { $matrix->sql("SELECT evidence.cancel_audit_export('$id', 'test')") }
	);
	$matrix->release;
}
foreach my $case ($matrix->cases('cancel, running'))
{
	my ($exporter, $id) = $matrix->hold_exporter($case->{step});
	my ($pid, $session) =
	  bring_to($case, "evidence.cancel_audit_export('$id', 'test')");

	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);
	if ($matrix->is_after($case, '(returned)'))
	{
		$matrix->is_in_state($case, $id, 'CANCELLED', 1, 0);
	}
	else
	{
		$matrix->is_made($case, $id,
			$case->{signal} eq 'TERM' ? (1, 0) : (2, 0), 'undone, made once');
	}
}

# Returns how many bytes a grant opens.
sub save
{
	my ($grant) = @_;

	return $node->fetch_to_file($grant, $file, $matrix->query);
}

# Granting.  A grant that was not committed opens nothing, also for a client
# that knows it.
sub refused
{
	my ($grant) = @_;

	return ($node->error_of("SELECT evidence.fetch_audit_export('$grant')"))[0];
}

my $ready = $matrix->request;

$matrix->is_made({ name => 'an archive to take' }, $ready, 1, 0);
my $size = $matrix->sql(
	"SELECT archive_bytes FROM evidence.audit_export WHERE id = '$ready'");

$matrix->check_steps('backend', ['grant'], \&grant);
foreach my $case ($matrix->cases('grant'))
{
	my $before = count_of('evidence.download_grant');
	my ($pid, $session, $grant) =
	  bring_to($case, "evidence.grant_audit_export_download('$ready')");
	my $committed = $matrix->is_after($case, '(returned)') ? 1 : 0;

	is(refused($grant), '42501', "$case->{name}: it opens nothing yet")
	  if $grant && !$committed;
	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);
	is(count_of('evidence.download_grant') - $before,
		$committed, "$case->{name}: " . ($committed ? 'on record' : 'undone'));
	if ($grant && $committed)
	{
		is(save($grant), $size, "$case->{name}: it opens the archive");
	}
	elsif ($grant)
	{
		is(refused($grant), '42501', "$case->{name}: it opens nothing");
	}
	$matrix->is_sound($case, $committed ? 'on record' : 'undone, opens nothing');
}

# Fetching.  Every byte that has left was granted and on record before.  Short
# lines let the client show all but the last of what it got.
sub start_fetch
{
	my ($grant) = @_;
	my $query = <<"SQL";
COPY (SELECT encode(substr((f).data, i, 256), 'hex')
        FROM (SELECT evidence.fetch_audit_export('$grant') AS f OFFSET 0) AS chunk,
             generate_series(1, length((f).data), 256) AS i) TO STDOUT
SQL

	return IPC::Run::start(
		[ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', $query ],
		'>', $file, '2>', \my $errors);
}

sub grant
{
	return $matrix->sql(
		"SELECT evidence.grant_audit_export_download('$ready')");
}

{
	my $grant = grant();

	$matrix->check_steps('backend', ['fetch'],
		sub { save($grant) });
}
foreach my $case ($matrix->cases('fetch'))
{
	my $grant = grant();
	my $on_record = count_of('evidence.audit_log'
		  . " WHERE action = 'audit_export.download' AND target_id = '$ready'");
	my ($pid, $psql) =
	  $matrix->bring_to($case, sub { return start_fetch($grant) });

	$matrix->kill_held($case, $pid);
	$psql->finish;

	my $left = (slurp_file($file) =~ tr/0-9a-f//) / 2;
	my $outcome =
	  $case->{step} eq 'fetching' ? $left == 0 : $left > 0 && $left < $size;

	ok($outcome, "$case->{name}: $left of $size bytes have left");
	is( count_of('evidence.audit_log'
			  . " WHERE action = 'audit_export.download' AND target_id = '$ready'"),
		$on_record,
		"$case->{name}: their audit row is there");
	is(save($grant), $size,
		"$case->{name}: the grant opens the archive again");
	$matrix->is_sound($case,
		$left == 0 ? 'no byte has left' : 'some bytes have left, on record');
}

$matrix->finish;
done_testing();
