# The server process that works for an uploader dies before each step of
# claiming, sending, confirming, failing and removing.  The uploader then does
# what it would do: another one comes when the lease is over, looks the object
# up if something may have been sent, and brings the archive to its place once.

use strict;
use warnings;

use KillMatrix;
use Test::More;

my $matrix = KillMatrix->new(
	delivery => 'object_store',
	lease => 60,
	download_window => 10_000_000,
	staged_deadline => 30_000_000);
my $node = $matrix->node;
my $clock = 0;
my $token;

# Time goes by, and every session knows.
sub later
{
	my ($seconds) = @_;

	$clock += $seconds;
	$matrix->set(clock_offset => $clock);
	return;
}

sub staged
{
	my $id = $matrix->request;

	$matrix->wait_until("SELECT state = 'STAGED' FROM evidence.audit_export WHERE id = '$id'");
	return $id;
}

sub claim
{
	my %item;

	@item{qw(token kind id look_up)} = split /\|/, $matrix->sql(
		"SELECT delivery_token, kind, export_id, look_up FROM evidence.claim_delivery('test', 'bucket', 'test')");
	return \%item;
}

# What a look-up in the store finds, if it is there.
sub found
{
	my ($id) = @_;

	return $matrix->sql("SELECT archive_bytes || ', ''' || archive_sha256 || '''' FROM evidence.audit_export WHERE id = '$id'");
}

sub upload
{
	my ($item) = @_;

	$matrix->sql("SELECT evidence.record_sending('$item->{token}')")
	  unless $item->{look_up} eq 't';
	return $matrix->sql("SELECT evidence.confirm_delivery('$item->{token}', " . found($item->{id}) . ')');
}

# The calls of one phase: what comes before, and the call itself.
my %phases = (
	'delivery, claim' => sub {
		my ($id) = @_;

		return "* FROM evidence.claim_delivery('test', 'bucket', 'test')";
	},
	'delivery, send' => sub {
		my ($id) = @_;

		$token = claim()->{token};
		return "evidence.record_sending('$token')";
	},
	'delivery, confirm' => sub {
		my ($id) = @_;

		$token = claim()->{token};
		$matrix->sql("SELECT evidence.record_sending('$token')");
		return "evidence.confirm_delivery('$token', " . found($id) . ')';
	},
	'delivery, fail' => sub {
		my ($id) = @_;

		$token = claim()->{token};
		return "evidence.fail_delivery('$token', 'transient', 'SlowDown', 'test')";
	},
	'delivery, remove' => sub {
		my ($id) = @_;

		upload(claim());
		$matrix->sql("SELECT evidence.revoke_audit_export('$id', 'test')");
		$token = claim()->{token};
		return "evidence.confirm_removal('$token', true)";
	});

# Calls it in a session of its own that comes to the case's step, and lets that
# session die there.
sub die_at
{
	my ($case, $call) = @_;
	my $step = $case->{step};
	my ($pid, $session);

	if ($step eq '(returned)' || $step eq '(answered)')
	{
		$session = $node->background_psql('postgres', on_error_stop => 0);
		$pid = $session->query_safe('SELECT pg_backend_pid()');
		$session->query_safe('BEGIN') if $step eq '(returned)';
		$session->query_safe("SELECT $call");
	}
	elsif ($step eq '(commit record)')
	{
		$session = $matrix->start("SET synchronous_commit = on; SELECT $call");
		$pid = $matrix->wait_commit_record('client backend');
	}
	else
	{
		($pid, $session) =
		  $matrix->bring_to($case, sub { return $matrix->start("SELECT $call") });
	}
	$matrix->kill_held($case, $pid);
	$matrix->end_session($session);
	return;
}

sub state_of
{
	my ($id) = @_;

	return $matrix->sql(<<"SQL");
SELECT concat_ws(' ', e.state, u.state, d.state, e.object_key IS NOT NULL)
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.outbox_event AS u ON u.export_id = e.id AND u.kind = 'archive.upload'
  LEFT JOIN evidence.outbox_event AS d ON d.export_id = e.id AND d.kind = 'object.delete'
 WHERE e.id = '$id'
SQL
}

foreach my $phase (sort keys %phases)
{
	{
		my $id = staged();
		my $call = $phases{$phase}->($id);

		$matrix->check_steps('backend', [$phase], sub { $matrix->sql("SELECT $call") });
		later(1000);
		while (my $item = claim())
		{
			last unless $item->{token};
			$item->{kind} eq 'archive.upload'
			  ? upload($item)
			  : $matrix->sql("SELECT evidence.confirm_removal('$item->{token}', true)");
		}
	}
	foreach my $case ($matrix->cases($phase))
	{
		my $id = staged();
		my $call = $phases{$phase}->($id);

		die_at($case, $call);

		my $committed = $matrix->is_after($case, '(returned)');

		if ($phase eq 'delivery, remove')
		{
			is(state_of($id), 'REVOKED DELIVERED ' . ($committed ? 'DELIVERED' : 'PENDING') . ' t',
				$case->{name});
			later(1000) unless $committed;
			$matrix->sql("SELECT evidence.confirm_removal('" . claim()->{token} . "', false)")
			  unless $committed;
			is(state_of($id), 'REVOKED DELIVERED DELIVERED t', "$case->{name}: removed once");
			$matrix->is_sound($case, $committed ? 'removed' : 'undone, removed by another');
			next;
		}
		if ($phase eq 'delivery, confirm' && $committed)
		{
			is(state_of($id), 'READY DELIVERED t', $case->{name});
			$matrix->is_sound($case, 'READY');
			next;
		}
		is(state_of($id), 'STAGED PENDING f', $case->{name});
		later(1000);

		my $next = claim();

		is($next->{id}, $id, "$case->{name}: another uploader gets it");
		is($next->{look_up}, $phase eq 'delivery, confirm' || ($phase eq 'delivery, send' && $committed) ? 't' : 'f',
			"$case->{name}: and is told whether to look");
		is(upload($next), 'READY', "$case->{name}: READY once");
		$matrix->is_sound($case,
			$next->{look_up} eq 't' ? 'looked up, READY once' : 'sent again, READY once');
	}
}

# The launcher ends what is over, in the database as well.
later(1000);
$matrix->set(delivery => 'database', download_window => 1000);
foreach my $case ($matrix->cases('expire'))
{
	my $id = $matrix->request;

	$matrix->wait_until("SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$id'");
	my ($pid) = $matrix->bring_to($case, sub { later(1001) });

	$matrix->kill_held($case, $pid);
	$matrix->wait_until("SELECT state = 'EXPIRED' FROM evidence.audit_export WHERE id = '$id'");
	is($matrix->sql("SELECT count(*) FROM evidence.archive_chunk WHERE export_id = '$id'"),
		'0', "$case->{name}: no byte is left");
	$matrix->is_sound($case, 'expired once');
}

# An export that cannot be ended holds up none that comes after it.
{
	my $broken = $matrix->request;

	$matrix->wait_until("SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$broken'");
	my $next = $matrix->request;

	$matrix->wait_until("SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$next'");
	$matrix->sql(<<"SQL");
CREATE FUNCTION kill.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not this one''; END';
CREATE TRIGGER refuse BEFORE UPDATE ON evidence.audit_export FOR EACH ROW WHEN (OLD.id = '$broken') EXECUTE FUNCTION kill.refuse();
SQL
	my $offset = -s $node->logfile;

	later(1001);
	$matrix->wait_until("SELECT state = 'EXPIRED' FROM evidence.audit_export WHERE id = '$next'");
	$node->wait_for_log(qr/ERROR: +not this one/, $offset);
	is($matrix->sql("SELECT state FROM evidence.audit_export WHERE id = '$broken'"),
		'READY', 'an export that cannot be ended stays as it is');
	$matrix->sql('DROP TRIGGER refuse ON evidence.audit_export');
	later(61);
	$matrix->wait_until("SELECT state = 'EXPIRED' FROM evidence.audit_export WHERE id = '$broken'");
}

$matrix->finish;
done_testing();
