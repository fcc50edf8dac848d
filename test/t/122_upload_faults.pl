# Whatever happens between uploader and store, at whichever request: in the end
# each archive is in the store once, with equal bytes, and nothing else is
# there.  A proxy breaks one request of each export, in its own way.

use strict;
use warnings;

use Delivery;
use FaultProxy;
use ObjectStore;
use Test::More;

my $store = ObjectStore->new(memory => 1);
my $proxy = FaultProxy->new($store->port);
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my ($code, $out, $err);

$delivery->endpoint($proxy->endpoint);

# Each of these breaks one request.  A redirect is refused for good, so
# somebody has to want the work again.
my @requests = (
	[ 'status', 503 ],
	[ 'status', 503, 'Retry-After: 1' ],
	[ 'status', 500 ],
	[ 'status', 429 ],
	['page'],
	[ 'redirect', 'http://127.0.0.1:1/elsewhere' ],
	['close'],
	['rst']);
my @answers = (
	[ 'swallow', 'close' ],
	[ 'swallow', 'rst' ],
	[ 'swallow', 503 ]);
my @bodies = (['continue'], [ 'eat', 1000 ], [ 'cut', 1000 ]);
my @errors = ([ 'error', 'InternalError' ], [ 'error', 'SlowDown' ]);

# What a request is told by: its method, and the address behind the id of the
# export.
my %steps = (
	put => [ 'PUT', '/attempts/[0-9a-f-]+\.zip$' ],
	head => [ 'HEAD', '' ],
	begin => [ 'POST', '.*uploads' ],
	part => [ 'PUT', '.*partNumber' ],
	complete => [ 'POST', '.*uploadId' ],
	abort => [ 'DELETE', '.*uploadId' ],
	delete => [ 'DELETE', '/attempts/[0-9a-f-]+\.zip$' ]);

my @cases;

# break_one(id, step, fault...): one request of that step, for that export.
sub break_one
{
	my ($id, $step, @fault) = @_;
	my ($method, $address) = @{ $steps{$step} };

	$proxy->fault(1, $method, "$id$address", @fault);
	push @cases, { id => $id, step => $step, fault => "@fault" };
	return;
}

# All faults have come about, and then all has come right.
sub settle
{
	my ($state, @arguments) = @_;

	$delivery->drain(@arguments);
	$delivery->requeue;
	$delivery->drain(@arguments);
	my @seen = $proxy->requests;

	foreach my $case (@cases)
	{
		my ($word) = split / /, $case->{fault};
		my ($method) = @{ $steps{ $case->{step} } };
		my $name = "$case->{fault} at $case->{step}";

		ok((grep { /^\Q$method\E \S*$case->{id}\S* \Q$word\E/ } @seen), "$name: it came about")
		  || diag(join '', grep { /$case->{id}/ } @seen);
		is($node->export_state($case->{id}), $state, "$name: all is well");
	}
	is($delivery->faults, '', 'each archive is there once, and nothing else');
	@cases = ();
	$proxy->clear;
	return;
}

# A store that stands still, and one that takes everything and says nothing:
# each takes a minute, while all the others go by.
my @patient = map { $delivery->staged } 1 .. 2;
my @faults = ([ 'stall', 100 ], [ 'swallow', 'hang' ]);

break_one($patient[$_], 'put', @{ $faults[$_] }) foreach 0, 1;
my @uploaders = map { $delivery->start({}) } @patient;

$node->poll('SELECT count(*) = 2 FROM evidence.upload_attempt WHERE sent_at IS NOT NULL AND ended_at IS NULL');

# In one request.
foreach my $fault (@requests, @bodies, @answers, @errors)
{
	break_one($delivery->staged, 'put', @$fault);
}
foreach my $fault (@requests)
{
	break_one($delivery->staged, 'head', @$fault);
}
$delivery->drain;
$_->signal('TERM') foreach @uploaders;
is(join(' ', map { $_->end } @uploaders), '0 0', 'a store that stands still is given up');
settle('READY');

# In parts.
foreach my $fault (@requests, @answers, @errors)
{
	break_one($delivery->staged, 'begin', @$fault);
	break_one($delivery->staged, 'complete', @$fault);
}
foreach my $fault (@requests, @bodies, @answers, @errors)
{
	break_one($delivery->staged, 'part', @$fault);
}
settle('READY', '--multipart-threshold=1');

# Removal.
{
	my @ids = map { $delivery->staged } @requests, @answers;

	$delivery->drain;
	foreach my $fault (@requests, @answers)
	{
		my $id = shift @ids;

		break_one($id, 'delete', @$fault);
		$delivery->value("SELECT evidence.revoke_audit_export('$id', 'test')");
	}
	settle('REVOKED');
	is($delivery->value("SELECT count(*) FROM evidence.outbox_event WHERE kind = 'object.delete' AND state <> 'DELIVERED'"),
		0, 'each removal is confirmed');
}

# The keys are refused: no archive is to blame, and none is spoiled.
{
	my @ids = map { $delivery->staged } 1 .. 3;

	$proxy->fault(-1, '*', '.*', 'status', 403);
	($code, $out, $err) = $delivery->upload;
	is($code, 17, 'keys refused: exit code');
	like($err, qr/this attempt does not count/, 'keys refused: it does not count');
	my $uploader = $delivery->start({});

	$uploader->wait_for(qr/object store cannot be used.*object store cannot be used/s);
	is($delivery->value("SELECT sum(attempts) FROM evidence.outbox_event WHERE export_id IN ('$ids[0]', '$ids[1]', '$ids[2]')"),
		0, 'keys refused: nothing was counted');
	cmp_ok($delivery->value("SELECT count(*) FROM evidence.upload_attempt WHERE export_id IN ('$ids[0]', '$ids[1]', '$ids[2]')"),
		'<=', 2, 'keys refused: work is not asked for in vain');
	$proxy->clear;
	$node->wait_state($_, 'READY') foreach @ids;
	$uploader->signal('TERM');
	is($uploader->end, 0, 'keys accepted again: the uploader goes on by itself');
}

# Other bytes lie under the key: nothing is overwritten, and nobody gets them.
{
	my $id = $delivery->staged;
	my $before = $delivery->start({ PG_EVIDENCE_PAUSE => 'put' }, '--once');

	$before->wait_stopped;
	my $key = $delivery->key_of($id);
	$store->put('archive', $key, 'something else');
	$before->signal('CONT');
	is($before->end, 18, 'other bytes: exit code');
	like($before->said, qr/the archive is in quarantine/, 'other bytes: text');
	is($node->export_state($id), 'FAILED', 'other bytes: the export has failed');
	is($delivery->value("SELECT error_code FROM evidence.audit_export WHERE id = '$id'"), 'PE006', 'other bytes: with PE006');
	is($store->object('archive', $key)->{body}, 'something else', 'other bytes: they are as they were');
	($code, $out, $err) = $delivery->reconcile('--fix', '--grace=0s');
	is($code, 18, 'other bytes: an open finding');
	like($out, qr/^object_differs +revoke .*\Q$key\E/m, 'other bytes: reconcile shows them');
	is($store->object('archive', $key)->{body}, 'something else', 'other bytes: and leaves them alone');
	$store->request('DELETE', 'archive', $key);
	($code, $out, $err) = $delivery->reconcile;
	is($code, 0, 'other bytes: closed when they are gone') || diag($out);
}

# The same bytes without our metadata are read back, and accepted.
{
	my $id = $delivery->staged;
	my $before = $delivery->start({ PG_EVIDENCE_PAUSE => 'put' }, '--once');

	$before->wait_stopped;
	my $key = $delivery->key_of($id);
	my $bytes = pack 'H*', $delivery->value("SELECT string_agg(encode(data, 'hex'), '' ORDER BY seq) FROM evidence.archive_chunk WHERE export_id = '$id'");
	$store->put('archive', $key, $bytes);
	$before->signal('CONT');
	is($before->end, 0, 'equal bytes of somebody else: exit code') || diag($before->said);
	is($node->export_state($id), 'READY', 'equal bytes of somebody else: READY');
}
is($delivery->faults, '', 'nothing is wrong with ledger and store');

done_testing();
