# The uploader dies between every two steps, by kill -9 and by SIGTERM; server
# and gateway die under it; one that has slept past its lease wakes up.  In the
# end each archive is in the store once, and nothing else is there.

use strict;
use warnings;

use Delivery;
use ObjectStore;
use Test::More;
use Time::HiRes qw(usleep);

my $store = ObjectStore->new;
my $delivery = Delivery->new($store, lease => 60);
my $node = $delivery->node;
my @parts = ('--multipart-threshold=1');

# The steps of each kind of work, in their order; a trace of work that nobody
# disturbs is held against them below.
my @whole = qw(record-sending put sent confirm);
my @in_parts = qw(begin record-sending part complete sent confirm);
my @again = qw(look-up record-sending put sent confirm);
my @resumed = qw(look-up list-parts complete sent confirm);
my @found = qw(look-up confirm);
my @removal = qw(remove delete deleted confirm);

# An upload of which the store has got everything but the last word.
sub interrupted
{
	my ($id, $step, @arguments) = @_;
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => $step }, '--once', @arguments);

	$uploader->wait_stopped;
	$uploader->signal('KILL');
	is($uploader->end, -9, "killed at \"$step\"");
	return;
}

# All leases run out.
sub pass_leases
{
	$delivery->pass_time(61);
	return;
}

# What an uploader that nobody disturbs says of its steps.
sub trace
{
	my (@arguments) = @_;
	my ($code, $out, $err) = $delivery->upload({ PG_EVIDENCE_PAUSE => 'trace' }, @arguments);

	is($code, 0, 'undisturbed: exit code') || diag($err);
	return join ' ', $err =~ /comes to "([a-z-]+)"/g;
}

# The table above is true, and complete.
{
	my $id = $delivery->staged;
	is(trace(), "@whole", 'the steps of an upload in one request');

	$id = $delivery->staged;
	is(trace(@parts), "@in_parts", 'the steps of an upload in parts');
	my $removed = $id;

	$id = $delivery->staged;
	interrupted($id, 'put');
	pass_leases();
	is(trace(), "@again", 'the steps of an attempt after one that sent nothing');

	$id = $delivery->staged;
	interrupted($id, 'sent');
	pass_leases();
	is(trace(), "@found", 'the steps of an attempt after one that sent everything');

	$id = $delivery->staged;
	interrupted($id, 'complete', @parts);
	pass_leases();
	is(trace(@parts), "@resumed", 'the steps of an attempt that goes on with parts');

	$delivery->value("SELECT evidence.revoke_audit_export('$removed', 'test')");
	is(trace(), "@removal", 'the steps of a removal');
	is($delivery->faults, '', 'nothing is wrong so far');
}

# Each step of each kind, once by each signal.  An uploader that is told to end
# gives the work back; one that is killed leaves a lease that runs out.
sub die_at
{
	my ($signal, $kind, $step, $number, @arguments) = @_;
	my $name = "$kind, $signal at \"$step\"";
	my $pause = $number > 1 ? "$step:$number" : $step;
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => $pause }, @arguments);

	$uploader->wait_stopped;
	$uploader->signal($signal);
	$uploader->signal('CONT') if $signal ne 'KILL';
	is($uploader->end, $signal eq 'KILL' ? -9 : 0, $name);
	return;
}

foreach my $signal (qw(KILL TERM))
{
	foreach my $case ([ 'one request', \@whole ], [ 'in parts', \@in_parts, @parts ])
	{
		my ($kind, $steps, @arguments) = @$case;

		foreach my $step (@$steps)
		{
			$delivery->staged;
			die_at($signal, $kind, $step, 1, @arguments);
			# What was given back is due again after a second.
			pass_leases() if $signal eq 'KILL';
			$delivery->drain(@arguments);
		}
	}

	# The second attempt dies too.
	foreach my $step (qw(look-up list-parts complete sent confirm))
	{
		my $id = $delivery->staged;

		interrupted($id, 'complete', @parts);
		pass_leases();
		die_at($signal, 'parts of an earlier attempt', $step, 1, @parts);
		pass_leases();
		$delivery->drain(@parts);
	}

	foreach my $step (@removal)
	{
		my $id = $delivery->staged;

		$delivery->drain;
		$delivery->value("SELECT evidence.revoke_audit_export('$id', 'test')");
		die_at($signal, 'removal', $step, 1);
		pass_leases();
		$delivery->drain;
		is($delivery->value("SELECT string_agg(state, ' ') FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'object.delete'"),
			'DELIVERED', "removal, $signal at \"$step\": it is done");
	}
	is($delivery->value("SELECT count(*) FROM evidence.audit_export WHERE state NOT IN ('READY', 'REVOKED')"),
		0, "$signal: every archive was delivered or removed");
	is($delivery->faults, '', "$signal: each archive is there once, and nothing else");
}

# A sleeper: others have taken over its work when it wakes up.  Once it knows
# by its own clock, and once only the ledger does.
foreach my $lease (60, 3)
{
	$node->set(lease => $lease);
	sleep_at($_, $lease) foreach @whole;
}
$node->set(lease => 60);

sub sleep_at
{
	my ($step, $lease) = @_;
	my $id = $delivery->staged;
	my $sleeper = $delivery->start({ PG_EVIDENCE_PAUSE => $step }, '--once');

	$sleeper->wait_stopped;
	my $asleep = $delivery->value('SELECT clock_timestamp()');

	pass_leases();
	$delivery->drain;
	$node->poll("SELECT clock_timestamp() > '$asleep'::timestamptz + interval '$lease seconds'")
	  if $lease < 60;
	my $before = $delivery->value("SELECT version || ' ' || ready_at FROM evidence.audit_export WHERE id = '$id'");

	$sleeper->signal('CONT');
	is($sleeper->end, 0, "asleep at \"$step\": exit code") || diag($sleeper->said);
	like($sleeper->said, qr/export $id: cancelled, or taken over/, "asleep at \"$step\": it notices");
	is($delivery->value("SELECT version || ' ' || ready_at FROM evidence.audit_export WHERE id = '$id'"),
		$before, "asleep at \"$step\": it changes nothing");
	return;
}

# Cancelled under its hands, at each step.
foreach my $step (@whole, 'part', 'complete')
{
	my $id = $delivery->staged;
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => $step }, '--once',
		$step =~ /part|complete/ ? @parts : ());

	$uploader->wait_stopped;
	$delivery->value("SELECT evidence.cancel_audit_export('$id', 'test')");
	$uploader->signal('CONT');
	$uploader->end;
	is($node->export_state($id), 'CANCELLED', "cancelled at \"$step\"");

	# Until its lease is over, it might still be sending.
	pass_leases();
	$delivery->drain;
	is(scalar(grep { /$id/ } $store->keys_in('archive', 'pg-evidence/')),
		0, "cancelled at \"$step\": nothing is left in the store");
}
is($delivery->faults, '', 'sleepers and cancellations: nothing is wrong');

# The server dies, and the gateway, at each step of an upload.
foreach my $step (@whole)
{
	my $id = $delivery->staged;
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => $step });

	$uploader->wait_stopped;
	$node->stop('immediate');
	$uploader->signal('CONT');
	$node->start;
	$node->wait_state($id, 'READY');
	$uploader->signal('TERM');
	is($uploader->end, 0, "the server dies at \"$step\": the uploader goes on");

	$id = $delivery->staged;
	$uploader = $delivery->start({ PG_EVIDENCE_PAUSE => $step });
	$uploader->wait_stopped;
	$store->kill_gateway;
	$uploader->signal('CONT');
	$store->start or die $store->{error};
	$node->wait_state($id, 'READY');
	$uploader->signal('TERM');
	is($uploader->end, 0, "the gateway dies at \"$step\": the uploader goes on");
}
is($delivery->faults, '', 'deaths of server and gateway: nothing is wrong');

done_testing();
