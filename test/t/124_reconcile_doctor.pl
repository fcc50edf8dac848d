# pg_evidence reconcile and pg_evidence doctor against a real object store:
# each kind of finding, what --fix mends and what it leaves alone, and what the
# doctor says of buckets that are well and of some that are not.

use strict;
use warnings;

use Delivery;
use FaultProxy;
use JSON::PP;
use ObjectStore;
use Test::More;

my $store = ObjectStore->new(memory => 1);
my $delivery = Delivery->new($store);
my $node = $delivery->node;
my ($code, $out, $err);

sub uuid
{
	return $delivery->value('SELECT gen_random_uuid()');
}

# One JSON document that a run prints.
sub document
{
	my ($text) = @_;
	my $document = eval { JSON::PP->new->utf8->decode($text) };

	ok(defined $document, 'one JSON document') || diag($text);
	return $document;
}

# The findings of a reconciliation: "rule action fixed" by key.
sub findings
{
	my (@arguments) = @_;

	($code, $out, $err) = $delivery->reconcile('--json', @arguments);
	my %found;

	foreach my $finding (@{ document($out)->{findings} })
	{
		$found{ $finding->{key} } = join ' ', $finding->{rule},
		  $finding->{action}, $finding->{fixed} ? 'fixed' : 'open';
	}
	return %found;
}

# What the ledger has of it, by key.
sub recorded
{
	my %open = map { split /\|/, $_, 2 } split /\n/,
	  $delivery->value('SELECT subject, rule FROM evidence.finding WHERE closed_at IS NULL');

	return %open;
}

($code, $out, $err) = $delivery->run('anna', 'reconcile', '--bucket=archive', '--allow-http');
is($code, 3, 'without the capability: exit code') || diag($err);

# An empty store, and one with what should be there.
is(scalar(() = findings()), 0, 'an empty store: no finding');
is($code, 0, 'an empty store: exit code');
my @ids = map { $delivery->staged } 1 .. 4;
$delivery->drain;
is(scalar(() = findings()), 0, 'everything is as it should be: no finding');
is($code, 0, 'everything is as it should be: exit code');
like($delivery->value("SELECT counts::text FROM evidence.pass_log ORDER BY id DESC LIMIT 1"),
	qr/"objects": 4/, 'each pass is on record');

# One of each kind.
my %key = map { $_ => $delivery->key_of($_) } @ids;
my $orphan = 'pg-evidence/' . uuid() . '/attempts/' . uuid() . '.zip';
my $probe = 'pg-evidence/doctor/' . uuid();
my $unfinished = 'pg-evidence/' . uuid() . '/attempts/' . uuid() . '.zip';
my $sha256 = $delivery->value("SELECT archive_sha256 FROM evidence.audit_export WHERE id = '$ids[1]'");
my $original = $store->object('archive', $key{ $ids[2] })->{body};

$store->request('DELETE', 'archive', $key{ $ids[0] });
$store->put('archive', $key{ $ids[1] }, 'other bytes, and a lie', 'x-amz-meta-sha256' => $sha256);
$store->put('archive', $key{ $ids[2] }, 'x' x length $original);
$store->put('archive', $orphan, 'belongs to nobody');
$store->put('archive', $probe, 'of a doctor who was interrupted');
$store->put('archive', 'pg-evidence/notes.txt', 'of somebody else');
$store->put('archive', "pg-evidence/$ids[0]/attempts/../x y'&<>.zip", 'of somebody else');
$store->put('archive', 'pg-evidence2/x', 'not ours to look at');
is($store->request('POST', 'archive', $unfinished, query => { uploads => '' })->{status}, 200, 'an upload is begun');
is($store->request('POST', 'archive', 'pg-evidence/other', query => { uploads => '' })->{status}, 200, 'and one of somebody else');

my %expected = (
	$key{ $ids[0] } => 'object_missing revoke open',
	$key{ $ids[1] } => 'object_differs revoke open',
	$key{ $ids[2] } => 'object_differs revoke open',
	$orphan => 'object_orphan clean open',
	$probe => 'object_orphan clean open',
	$unfinished => 'multipart_unfinished clean open',
	'pg-evidence/other' => 'object_foreign record open',
	'pg-evidence/notes.txt' => 'object_foreign record open',
	"pg-evidence/$ids[0]/attempts/../x y'&<>.zip" => 'object_foreign record open');

is_deeply({ findings() }, \%expected, 'each kind of finding');
is($code, 18, 'each kind of finding: exit code');
is_deeply({ recorded() }, { map { $_ => (split / /, $expected{$_})[0] } keys %expected }, 'the ledger has them all');

# As a table.
($code, $out, $err) = $delivery->reconcile;
is($code, 18, 'the table: exit code');
like($out, qr/^object_missing +revoke +\Q$key{$ids[0]}\E$/m, 'the table: a line');
like($out, qr/^ +export $ids[0] is READY$/m, 'the table: whose it is');
like($out, qr/: 7 objects, 4 needed, 2 unfinished uploads, 9 findings open$/m, 'the table: its last line');

# A grant is not given for what is missing or wrong.
($code, $out, $err) = $delivery->run('anna', 'download', $ids[0], '--allow-http');
isnt($code, 0, 'what is missing cannot be downloaded');

# Young things are left alone, then cleaned; the rest is nobody's to touch.
is_deeply({ findings('--fix') }, \%expected, 'within the grace period nothing is mended');
foreach my $key (grep { $expected{$_} =~ / clean / } keys %expected)
{
	$expected{$key} =~ s/open$/fixed/;
}
is_deeply({ findings('--fix', '--grace=0s') }, \%expected, '--fix');
is($code, 18, '--fix: what is left open tells');
delete $expected{$_} foreach grep { $expected{$_} =~ /fixed$/ } keys %expected;
is_deeply({ recorded() }, { map { $_ => (split / /, $expected{$_})[0] } keys %expected }, '--fix: the ledger has the rest');
is_deeply({ findings() }, \%expected, 'afterwards');
is($store->object('archive', 'pg-evidence/notes.txt')->{body}, 'of somebody else', 'what others have put there stays');
is($store->object('archive', 'pg-evidence2/x')->{status}, 200, 'and what lies outside of the prefix');

# Closed when it is no longer so.
$store->put('archive', $key{ $ids[2] }, $original);
$delivery->value("SELECT evidence.revoke_audit_export(id, 'test') FROM unnest('{$ids[0],$ids[1]}'::uuid[]) AS id");
$delivery->drain;
$store->request('DELETE', 'archive', $_)
  foreach 'pg-evidence/notes.txt', "pg-evidence/$ids[0]/attempts/../x y'&<>.zip";
my $id_of_upload = $store->request('GET', 'archive', '', query => { uploads => '' })->{body} =~ m{<UploadId>([^<]+)</UploadId>} ? $1 : '';
$store->request('DELETE', 'archive', 'pg-evidence/other', query => { uploadId => $id_of_upload });
is(scalar(() = findings()), 0, 'all has been put right');
is($code, 0, 'all has been put right: exit code');
is(scalar(() = recorded()), 0, 'all has been put right: the ledger knows');

# A removal that was given up leaves an object; an upload at work is no finding.
{
	my $id = $delivery->staged;
	my $uploader = $delivery->start({ PG_EVIDENCE_PAUSE => 'complete' }, '--once', '--multipart-threshold=1');

	$uploader->wait_stopped;
	is(scalar(() = findings('--fix', '--grace=0s')), 0, 'an upload at work is left alone');
	$uploader->signal('CONT');
	is($uploader->end, 0, 'and comes to its end');
	my $key = $delivery->key_of($id);

	$delivery->value("SELECT evidence.revoke_audit_export('$id', 'test')");
	is(scalar(() = findings('--fix', '--grace=0s')), 0, 'so is an object that waits for its removal');
	my $proxy = FaultProxy->new($store->port);

	$proxy->fault(1, 'DELETE', $id, 'redirect', 'http://127.0.0.1:1/');
	$delivery->endpoint($proxy->endpoint);
	($code) = $delivery->upload;
	$delivery->endpoint($store->endpoint);
	is($code, 18, 'a removal is given up');
	is_deeply({ findings() }, { $key => 'object_left clean open' }, 'the object was left');
	is_deeply({ findings('--fix', '--grace=0s') }, { $key => 'object_left clean fixed' }, 'it is removed');
	is(scalar(() = findings()), 0, 'and that was that');
}

# Versions: those that nobody selected are orphans, and a locked one stays.
$delivery->bucket('locked');
{
	my $id = $delivery->staged;

	$delivery->drain('--lock-mode=GOVERNANCE', '--lock-days=1');
	my $key = $delivery->key_of($id);

	is(scalar(() = findings()), 0, 'a locked version: no finding');
	$store->put('locked', $key, 'a second version');
	is_deeply({ findings() }, { $key => 'object_orphan clean open' }, 'a version that nobody selected');
	is_deeply({ findings('--fix', '--grace=0s') }, { $key => 'object_orphan clean fixed' }, 'it is removed');
	is($store->object('locked', $key)->{status}, 200, 'and the selected one is not');
	is(scalar(() = findings()), 0, 'afterwards');

	# The remover learns until when, and comes back then.
	$delivery->value("SELECT evidence.revoke_audit_export('$id', 'test')");
	($code, $out, $err) = $delivery->upload;
	is($code, 18, 'removal of a locked object: exit code');
	like($err, qr/could not remove the object.*/, 'removal of a locked object: text');
	ok($delivery->value("SELECT next_attempt_at > now() + interval '20 hours' AND attempts = 0 FROM evidence.outbox_event WHERE export_id = '$id' AND kind = 'object.delete'") eq 't',
		'removal of a locked object: not before the lock ends');
}
$delivery->bucket('archive');

# The doctor: "result" by check.
sub doctor
{
	my (@arguments) = @_;

	($code, $out, $err) = $delivery->run('courier', 'doctor', "--bucket=" . $delivery->bucket, '--allow-http', '--json', @arguments);
	my %result = map { $_->{check} => $_->{result} } @{ document($out)->{checks} };

	return \%result;
}

my $before = join ' ', $store->keys_in('archive');
my $result = doctor();
is($code, 0, 'the doctor finds nothing that fails: exit code') || diag($out);
is_deeply(
	$result,
	{
		(map { $_ => 'ok' } 'server', 'capability', 'delivery', 'keys', 'bucket', 'clock',
			'versions', 'lock', 'put', 'create-only', 'head', 'get', 'delete', 'parts', 'list'),
		queue => 'warning',
		encryption => 'warning',
		lifecycle => 'warning'
	},
	'the doctor: what is well, and what could be better') || diag($out);
is(join(' ', $store->keys_in('archive')), $before, 'the doctor leaves nothing behind');

# The lifecycle: set, read back, rules of others kept, and too fast.
my $foreign = '<LifecycleConfiguration><Rule><ID>theirs</ID><Filter><Prefix>logs/</Prefix></Filter>'
  . '<Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>';
is($store->request('PUT', 'archive', '', query => { lifecycle => '' }, body => $foreign)->{status}, 200, 'somebody has a rule');
is(doctor()->{lifecycle}, 'warning', 'it is no safety net of ours');
is(doctor('--apply-lifecycle')->{lifecycle}, 'ok', '--apply-lifecycle');
my $rules = $store->request('GET', 'archive', '', query => { lifecycle => '' })->{body};
like($rules, qr{theirs}, 'their rule is still there');
like($rules, qr{<Prefix>pg-evidence/</Prefix>}, 'and ours');
is(doctor()->{lifecycle}, 'ok', 'it is read back');
$foreign =~ s{logs/}{pg-ev};
is($store->request('PUT', 'archive', '', query => { lifecycle => '' }, body => $foreign)->{status}, 200, 'somebody has a rule that is too fast');
is(doctor()->{lifecycle}, 'FAIL', 'it would remove what can still be downloaded');
is($code, 18, 'and that is a failure');
$store->request('DELETE', 'archive', '', query => { lifecycle => '' });

# Locks that are wanted and not to be had, and some that are.
is(doctor('--lock-mode=GOVERNANCE', '--lock-days=1')->{lock}, 'FAIL', 'no locks in this bucket');
$delivery->bucket('locked');
is(doctor('--lock-mode=GOVERNANCE', '--lock-days=1')->{lock}, 'ok', 'but in that one');
is($store->request('GET', 'locked', '', query => { versions => '', prefix => 'pg-evidence/doctor/' })->{body} =~ /<Version>|<DeleteMarker>/ ? 1 : 0,
	0, 'not even a version is left behind');
$delivery->bucket('archive');

# Whatever is wrong is said in the words of whoever knows.
$delivery->bucket('nowhere');
is(doctor()->{bucket}, 'FAIL', 'no bucket');
is($code, 18, 'no bucket: exit code');
$delivery->bucket('archive');
$delivery->endpoint('http://127.0.0.1:1');
is(doctor()->{bucket}, 'FAIL', 'no store');
$delivery->endpoint($store->endpoint);
($code, $out, $err) = $delivery->run('courier', { AWS_SECRET_ACCESS_KEY => 'another/secret' }, 'doctor', '--bucket=archive', '--allow-http');
like($out, qr/^FAIL +bucket +/m, 'wrong keys') || diag($out);
unlike($out . $err, qr{another/secret}, 'which are not shown');
($code, $out, $err) = $delivery->run('anna', 'doctor', '--bucket=archive', '--allow-http');
like($out, qr/^FAIL +capability .*\n +Ask a superuser for SELECT evidence.grant_capability/m, 'no capability');
like($out, qr/^ok +get /m, 'the store is looked at all the same');
($code, $out, $err) = $delivery->run('courier', { PGPORT => 1 }, 'doctor', '--bucket=archive', '--allow-http');
like($out, qr/^FAIL +server +could not connect/m, 'no server');
$node->set(delivery => 'database');
is(doctor()->{delivery}, 'warning', 'archives stay in the database');
$node->set(delivery => 'object_store');

is(join("\n", $delivery->secrets), '', 'no secret was printed');

done_testing();
