# The drill of an outage (S1.56): facts commit while the store is away, work is
# given up, an operator repairs and takes it up again, old workers are fenced
# off, and what comes too late ends and is made anew.  The store is a real one.

use strict;
use warnings;

use Delivery;
use FaultProxy;
use ObjectStore;
use Test::More;

my $day = 24 * 60 * 60;
my $store = ObjectStore->new(memory => 1);
my $proxy = FaultProxy->new($store->port);
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my ($code, $out, $err);

$delivery->endpoint($proxy->endpoint);
$node->safe_psql('postgres', <<~'SQL');
	CREATE ROLE olga LOGIN;
	SELECT evidence.grant_capability('olga', 'operator');
	SQL

# A statement of the operator's.
sub olga
{
	my ($sql) = @_;
	my ($result, $stdout, $stderr) = $node->psql('postgres', "SET ROLE olga; $sql", extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	return $result == 0 ? $stdout : $stderr;
}

# The upload event of an export, for instance its state.
sub event
{
	my ($id, $column) = @_;

	return $delivery->value("SELECT $column FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'archive.upload' ORDER BY generation DESC LIMIT 1");
}

sub fact
{
	my ($id, $column) = @_;

	return $delivery->value("SELECT $column FROM evidence.audit_export WHERE id = '$id'");
}

# The store is away: the facts commit all the same, and no attempt is burnt.
$proxy->fault(-1, '*', '.', 'close');
my $since = $delivery->value('SELECT evidence._now()');
my @ids = map { $delivery->staged } 1 .. 3;
my $uploader = $delivery->start({});
$node->poll("SELECT count(DISTINCT event_id) = 3 FROM evidence.upload_attempt WHERE error_code = 'NoAnswer'");
$uploader->signal('TERM');
is($uploader->end, 0, 'the store is away: the uploader goes on trying until it is told to end');
is(join(' ', map { event($_, 'state') } @ids), 'PENDING PENDING PENDING', 'the work is kept');

# It comes back and refuses: given up, in one place to look at.
$proxy->clear;
$proxy->fault(-1, 'PUT', '.', 'redirect', 'http://127.0.0.1:1/elsewhere');
foreach my $try (1 .. 10)
{
	last if $delivery->value("SELECT count(*) FROM evidence.outbox_event WHERE state = 'DEAD'") == @ids;
	$delivery->pass_time(600) if $try > 1;
	$delivery->upload;
}
is(join(' ', map { event($_, 'state') } @ids), 'DEAD DEAD DEAD', 'the store refuses: the work is given up');
is(join(' ', map { $node->export_state($_) } @ids), 'STAGED STAGED STAGED', 'and the exports wait');
isnt(event($ids[0], 'error_code'), '', 'with the reason');
$proxy->clear;

# Taken up again: the same event, once its facts have been looked at again.
my $third = fact($ids[2], 'records_sha256');
my $event = event($ids[0], 'id');
my $key = $delivery->key_of($ids[0]);
is(olga("SELECT evidence.requeue_outbox_event($event, 'the store is back')"), 'PENDING', 'an operator takes one up again');
$delivery->value("SELECT evidence.cancel_audit_export('$ids[1]', 'not needed any more')");
like(olga('SELECT evidence.requeue_outbox_event(' . event($ids[1], 'id') . ", 'the store is back')"),
	qr/55000/, 'one that is not wanted any more is refused');

# An uploader takes it and falls asleep; when its lease is over another one
# delivers, and the first can change nothing any more.
my $token = $delivery->value("SELECT delivery_token FROM evidence.claim_delivery('asleep', 'archive', 'pg-evidence')");
$delivery->value("SELECT evidence.record_sending('$token')");
$delivery->pass_time(10);
$delivery->drain;
is($node->export_state($ids[0]), 'READY', 'another uploader delivers it');
is(event($ids[0], 'id'), $event, 'it is the same event');
is(fact($ids[0], 'object_key'), $key, 'and the same key') if $key ne '';
my ($sqlstate) = $node->error_of("SELECT evidence.confirm_delivery('$token', archive_bytes, archive_sha256) FROM evidence.audit_export WHERE id = '$ids[0]'");
is($sqlstate, 'PE004', 'the one that slept has lost its lease');
is($delivery->value("SELECT count(*) FROM evidence.outbox_event WHERE kind = 'audit_export.generate' AND export_id = '$ids[0]'"),
	1, 'nothing was made twice');
is($delivery->value("SELECT string_agg(actor_id, ' ') FROM evidence.audit_log WHERE action = 'outbox_event.requeue'"), 'olga', 'the requeue stands in the log');

# A day later: too late to take the third one up, and the first is gone.
my $records = fact($ids[0], 'records_sha256');
$key = fact($ids[0], 'object_key');
is($store->object('archive', $key)->{status}, 200, 'the object is there');
$delivery->pass_time($day);
like(olga('SELECT evidence.requeue_outbox_event(' . event($ids[2], 'id') . ", 'too late')"),
	qr/55000.*too long ago/s, 'after 24 hours a requeue is refused, with the reason');
$node->wait_state($ids[0], 'EXPIRED');
$delivery->drain;
is($store->object('archive', $key)->{status}, 404, 'the archive that was READY is EXPIRED, and its object deleted');

# Another day: the archive that nobody delivered ends as FAILED, and is made
# again as the next generation of the same export.
$delivery->pass_time($day);
$node->wait_state($ids[2], 'FAILED');
is(olga("SELECT evidence.retry_audit_export('$ids[2]', 'the store is back')"), 'QUEUED', 'an operator opens it again');
$node->wait_state($ids[2], 'STAGED');
$delivery->drain;
is($node->export_state($ids[2]) . ' ' . fact($ids[2], 'generation'), 'READY 2', 'its second generation is READY');
is(fact($ids[2], 'records_sha256'), $third, 'with the same records');

# And the one that is gone is made anew, with the same records.
my $again = olga("SELECT evidence.recreate_audit_export('$ids[0]', 'the auditor came a day late')");
like($again, qr/^[0-9a-f-]{36}$/, 'an operator has the expired one made anew');
$node->wait_state($again, 'STAGED');
$delivery->drain;
is($node->export_state($again), 'READY', 'it is READY');
is(fact($again, 'records_sha256'), $records, 'with the same records');

# The record of it all has no broken link, and nothing is left over.
foreach my $id (@ids, $again)
{
	is($delivery->value("SELECT string_agg(detail::text, ' ') FROM evidence.trace_audit_export('$id') WHERE event = 'missing'"), '', 'the trace has no broken link');
}
isnt($delivery->value("SELECT detail FROM evidence.recovery_report('$since') WHERE kind = 'result' AND name = 'partial'"),
	'', 'before a comparison with the store the recovery is partial');
is($delivery->faults, '', 'each archive is there once, and nothing else');

is($delivery->value("SELECT name || ' ' || score FROM evidence.recovery_report('$since') WHERE kind = 'result'"),
	'recovered 100.00', 'after it, all is recovered')
  || diag($delivery->value("SELECT * FROM evidence.recovery_report('$since')"));
my $case = olga("SELECT evidence.open_human_case('who missed the deadline?', 'olga', evidence._now() + interval '1 day', 'drill')");
is($delivery->value("SELECT name FROM evidence.recovery_report('$since') WHERE kind = 'result'"),
	'partial', 'while somebody has yet to decide, it is partial');
$delivery->pass_time($day);
is($delivery->value("SELECT overdue FROM evidence.human_queue WHERE case_id = $case"), 't', 'a case that nobody decides becomes overdue');

$node->stop;
done_testing();
