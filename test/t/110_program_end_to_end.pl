# The client program against the real server: what an administrator does in a
# day, each exit code with the condition that brings it about, and what
# happens when the server goes away or refuses for the moment.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $program = EvidenceNode::program_path();
my $folder = PostgreSQL::Test::Utils::tempdir();
my $uuid = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

my $node = EvidenceNode->new('main', max_active_per_requester => 100);
$node->start;
$node->create_extension;
$node->fill(3000, 10);
$node->safe_psql('postgres', <<~'SQL');
	CREATE ROLE anna LOGIN PASSWORD 'blue moon';
	CREATE ROLE bob LOGIN;
	CREATE ROLE olga LOGIN;
	CREATE ROLE arne LOGIN;
	CREATE ROLE nobody LOGIN;
	SELECT evidence.grant_capability('anna', 'requester'), evidence.grant_capability('bob', 'requester'),
	       evidence.grant_capability('olga', 'operator'), evidence.grant_capability('arne', 'auditor');
	CREATE DATABASE bare;
	SQL

delete @ENV{qw(PGSERVICE PGPASSWORD PGPASSFILE PGTZ PGOPTIONS)};

my $start = $node->safe_psql('postgres', "SELECT to_char((now() - interval '20 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
my $end = $node->safe_psql('postgres', "SELECT to_char((now() + interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
my @request = ('request', "--start=$start", "--end=$end");

# run_as(role, argument, ...): exit code, standard output, standard error.
sub run_as
{
	my ($role, @arguments) = @_;
	local $ENV{PGUSER} = $role;

	return $node->program(@arguments);
}

sub code_of
{
	return (run_as(@_))[0];
}

# The one JSON document that a run prints.
sub json_of
{
	my ($code, $out, $err) = run_as(@_, '--json');
	my $document = eval { JSON::PP->new->utf8->decode($out) };

	ok(defined $document, "one JSON document: $_[1]") || diag("$out $err");
	return ($code, $document);
}

sub request_as
{
	my ($role, @arguments) = @_;
	my ($code, $out, $err) =
	  run_as($role, @request, '--purpose=test', '-q', @arguments);

	die "request failed: $err" unless $out =~ /^($uuid)$/m;
	return $1;
}

# From the request to the file in one go.
my $zip = "$folder/one.zip";
my ($code, $out, $err) =
  run_as('anna', @request, '--purpose=access review', '--wait', "--output=$zip");
is($code, 0, 'request --wait --output') || diag($err);
like($out, qr/\A$uuid\n\Q$zip\E\n\z/, 'it prints the id and the file');
my ($id) = $out =~ /($uuid)/;
package_ok($node, $zip, 'the package');
cells_ok($node, $zip, "action NOT LIKE 'audit_export.%'", 'the package');
is(manifest_of($zip)->{requested_by}, 'anna', 'by a role with nothing but its capability');
is((stat $zip)[2] & 0777, 0600, 'the file is private');

# The same as JSON.
{
	my ($code, $document) =
	  json_of('anna', @request, '--purpose=json', "--output=$folder/json.zip");
	is($code, 0, 'request --output --json');
	is($document->{export}{state}, 'READY', 'JSON: the export is READY');
	is($document->{file}, "$folder/json.zip", 'JSON: the file');
	is($document->{verify}{intact}, JSON::PP::true, 'JSON: intact');
	is($document->{export}{record_count},
		scalar @{ records_of("$folder/json.zip") },
		'JSON: the number of records');

	($code, $document) = json_of('anna', 'show', $id);
	is("$code $document->{export}{id}", "0 $id", 'show --json');
	like($document->{export}{archive_sha256}, qr/^[0-9a-f]{64}$/, 'show --json: the digest');

	($code, $document) = json_of('anna', 'list');
	is(scalar @{ $document->{exports} }, 2, 'list --json: both exports');

	($code, $document) = json_of('anna', 'show', '00000000-0000-0000-0000-000000000000');
	is("$code $document->{error}{exit_code} $document->{error}{status}",
		'3 3 denied', 'a failure is a document as well');

	($code, $document) = json_of('anna', 'verify', $zip);
	is($code, 0, 'verify --json');
	is($document->{verify}{intact}, JSON::PP::true, 'verify --json: intact');
}

# Who may see and take what.
my %may = (
	#        show list download cancel
	anna => [ 0, 1, 0, 6 ],
	olga => [ 0, 1, 0, 6 ],
	arne => [ 0, 1, 3, 3 ],
	bob => [ 3, 0, 3, 3 ],
	nobody => [ 3, undef, 3, 3 ]);
foreach my $role (sort keys %may)
{
	my ($show, $list, $download, $cancel) = @{ $may{$role} };
	my $file = "$folder/by-$role.zip";

	is(code_of($role, 'show', $id), $show, "$role: show");
	is(scalar(grep { /^$id / } split /\n/, (run_as($role, 'list'))[1]), $list, "$role: list")
	  if defined $list;
	is(code_of($role, 'download', $id, '-o', $file), $download, "$role: download");
	is(-e $file ? 1 : 0, $download == 0 ? 1 : 0, "$role: there is a file only of a download");
	is(code_of($role, 'cancel', $id, '--reason=x'), $cancel, "$role: cancel of a READY export");
}
is(code_of('arne', @request, '--purpose=x'), 3, 'arne: request');
is(code_of('nobody', 'list'), 3, 'nobody: list');
is( $node->safe_psql('postgres', <<~"SQL"), 'anna,anna,olga', 'each download, and no other, is in the audit log');
	SELECT string_agg(actor_id, ',' ORDER BY actor_id) FROM evidence.audit_log
	 WHERE action = 'audit_export.download' AND target_id = '$id'
	SQL

# Filters, columns and times.
{
	my $file = "$folder/some.zip";
	is( code_of('anna', @request, '--purpose=some', '--filter=outcome=failure',
			'--filter=actor_id=user-1', '--filter=actor_id=user-2',
			'--columns=summary,id,actor_id', '-o', $file),
		0, 'filters and columns');
	cells_ok($node, $file, q{outcome = 'failure' AND actor_id IN ('user-1', 'user-2')},
		'filters and columns', qw(id actor_id summary));

	local $ENV{PGTZ} = 'Asia/Tokyo';
	is(code_of('anna', 'request', '--start=2026-03-01 09:00', '--end=2026-03-02 09:00',
			'--purpose=zone', '-o', "$folder/zone.zip"),
		0, 'a time without an offset');
	is(manifest_of("$folder/zone.zip")->{range}{start},
		'2026-03-01T00:00:00.000000Z', 'it is taken in the zone of PGTZ');
}

# Nothing to do with the server, or no server.
is(code_of('anna'), 1, 'exit 1: no command');
is(code_of('anna', 'request', '--purpose=x'), 1, 'exit 1: no range');
is(code_of('anna', 'list', '-h', '/nonexistent'), 2, 'exit 2: no server');
is(code_of('anna', 'list', '-d', 'bare'), 15, 'exit 15: no extension');

# Refusals.
is(code_of('anna', 'request', "--start=$end", "--end=$start", '--purpose=x'), 4, 'exit 4: reversed range');
is(code_of('anna', 'request', '--start=2026-01-01', '--end=2026-03-01', '--purpose=x'), 4, 'exit 4: long range');
is(code_of('anna', @request, '--purpose=x', '--filter=colour=red'), 4, 'exit 4: unknown filter');
is(code_of('anna', @request, '--purpose=x', '--columns=metadata'), 4, 'exit 4: unknown column');
is(code_of('anna', @request, '--purpose=x', '--source=nothing'), 4, 'exit 4: unknown source');
{
	my ($code, $document) = json_of('anna', 'request', "--start=$end", "--end=$start", '--purpose=x');
	is($document->{error}{sqlstate}, '22023', 'a refusal has its SQLSTATE');
	like($document->{error}{hint}, qr/^[A-Z].*\.$/, 'and a hint');
}

# Keys.
{
	my $first = request_as('anna', '--key=monthly');
	is(request_as('anna', '--key=monthly'), $first, 'the same request under the same key is the same export');
	is(code_of('anna', @request, '--purpose=another', '--key=monthly'), 8, 'exit 8: another request under that key');
	isnt(request_as('bob', '--key=monthly'), $first, 'keys are per requester');
}

# Not ready, cancelled, too late.
$node->set(max_exporters => 0);
{
	my $queued = request_as('anna');
	is(code_of('anna', 'download', $queued, '-o', $folder), 6, 'exit 6: not ready yet');
	is(code_of('anna', 'wait', $queued, '--timeout=1'), 12, 'exit 12: not ready in time');
	is(code_of('bob', 'cancel', $queued, '--reason=x'), 3, 'exit 3: cancel of another one\'s export');
	($code, $out, $err) = run_as('anna', 'cancel', $queued, '--reason=wrong month');
	is("$code $out", "0 CANCELLED\n", 'cancel prints the state');
	is(code_of('anna', 'wait', $queued), 11, 'exit 11: wait for a cancelled export');
	is(code_of('anna', 'download', $queued, '-o', $folder), 11, 'exit 11: download of one');
	is( $node->safe_psql('postgres', <<~"SQL"), 'anna|wrong month', 'who cancelled it and why is on record');
		SELECT actor, reason FROM evidence.export_event WHERE export_id = '$queued' AND event = 'cancelled'
		SQL

	$node->set(max_active_per_requester => 1);
	request_as('bob');
	is(code_of('bob', @request, '--purpose=more'), 5, 'exit 5: quota');
	$node->set(max_active_per_requester => 100);
}
$node->set(max_exporters => 1, max_records => 100);
{
	my $many = request_as('anna');
	my ($code, $document) = json_of('anna', 'wait', $many);
	is("$code $document->{error}{sqlstate}", '10 PE002', 'exit 10: too many rows, with the code');
	is(code_of('anna', 'download', $many, '-o', $folder), 10, 'exit 10: download of a failed export');
	$node->set(max_records => 50000);
}

# Local files.
is(code_of('anna', 'download', $id, '-o', $zip), 13, 'exit 13: the file exists');
is(code_of('anna', 'download', $id, '-o', "$folder/no/where.zip"), 13, 'exit 13: no such folder');
is(code_of('anna', 'download', $id, '-o', $zip, '--force'), 0, '--force replaces it');
is(code_of('anna', 'verify', "$folder/nothing.zip"), 13, 'exit 13: no file to verify');

# A changed file, and a changed archive.
{
	my $bytes = bytes_of($zip);
	my $at = int(length($bytes) / 2);

	substr($bytes, $at, 1) = chr(ord(substr $bytes, $at, 1) ^ 1);
	append_to_file("$folder/changed.zip", '');
	open my $file, '>:raw', "$folder/changed.zip" or die;
	print $file $bytes;
	close $file;
	($code, $out, $err) = run_as('nobody', 'verify', "$folder/changed.zip");
	is($code, 9, 'exit 9: verify of a changed file');
	like($out, qr/NOT intact/, 'it says so');

	my $tampered = request_as('anna', '--wait');
	$node->safe_psql('postgres', "UPDATE evidence.archive_chunk SET data = set_byte(data, 100, get_byte(data, 100) # 1) WHERE export_id = '$tampered'");
	is(code_of('anna', 'download', $tampered, '-o', "$folder/tampered.zip"), 9, 'exit 9: the archive in the database was changed');
	ok(!-e "$folder/tampered.zip", 'nothing of it is kept');
}

# Gone.
{
	my $revoked = request_as('anna', '--wait');
	$node->safe_psql('postgres', "SELECT evidence.revoke_audit_export('$revoked', 'wrong')");
	is(code_of('anna', 'download', $revoked, '-o', $folder), 7, 'exit 7: revoked');

	my $old = request_as('anna', '--wait');
	$node->set(clock_offset => 24 * 3600 - 300);
	is(code_of('anna', 'download', $old, '-o', $folder), 0, 'an archive can be had for 24 hours');
	$node->set(clock_offset => 24 * 3600);
	is(code_of('anna', 'download', $old, '-o', $folder, '--force'), 7, 'exit 7: not after that');
	$node->set(clock_offset => 0);
}

# A server that restarts while the program waits.
{
	$node->set(max_exporters => 0);
	my $waiting = request_as('anna');
	my ($out, $err) = ('', '');
	local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGUSER => 'anna');
	my $wait = IPC::Run::start([ $program, 'wait', $waiting ],
		'<', \undef, '>', \$out, '2>', \$err);

	$node->poll(q{SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'anna'});
	$node->restart;
	$node->set(max_exporters => 1);
	$wait->finish;
	is($? >> 8, 0, 'wait lasts over a restart of the server') || diag($err);
	like($out, qr/^READY$/m, 'until the export is READY');
	like($err, qr/connection lost/, 'and says what happened');
}

# A conflict is retried under every default isolation level.  The first
# attempt waits for the requester's row, and its snapshot is then too old.
foreach my $level ('repeatable read', 'serializable')
{
	my $offset = -s $node->logfile;
	my $holder = $node->background_psql('postgres', on_error_stop => 1);
	my ($out, $err) = ('', '');

	$holder->query_safe("BEGIN; SET LOCAL ROLE anna; SELECT evidence.request_audit_export('$start', '$end', 'holder')");
	{
		local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGUSER => 'anna',
			PGOPTIONS => '-c default_transaction_isolation=' . $level =~ s/ /\\ /r);
		my $asking = IPC::Run::start([ $program, @request, '--purpose=conflict', '-q' ],
			'<', \undef, '>', \$out, '2>', \$err);
		$node->poll(q{SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'anna' AND wait_event_type = 'Lock'});
		$holder->query_safe('COMMIT');
		$asking->finish;
	}
	is($? >> 8, 0, "C47: $level: a conflict is retried") || diag($err);
	like($out, qr/^$uuid$/, "C47: $level: and gives the id");
	like(slurp_file($node->logfile, $offset), qr/could not serialize access/,
		"C47: $level: there was a conflict");
	$holder->quit;
}

# One that does not end.
{
	my $holder = $node->background_psql('postgres', on_error_stop => 1);
	$holder->query_safe("BEGIN; SET LOCAL ROLE anna; SELECT evidence.request_audit_export('$start', '$end', 'holder')");
	local $ENV{PGOPTIONS} = '-c lock_timeout=20ms';
	is(code_of('anna', @request, '--purpose=conflict'), 14, 'exit 14: every retry is refused');
	$holder->query_safe('ROLLBACK');
	$holder->quit;
}

# Connecting as people do: service file, password file.
{
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $old = slurp_file($hba);

	# The first one has expired when the clock stood at a day later.
	my $fresh = request_as('anna', '--wait');

	unlink $hba;
	append_to_file($hba, "local all anna scram-sha-256\n$old");
	$node->reload;
	$node->poll(q{SELECT count(*) = 1 FROM pg_hba_file_rules WHERE user_name = '{anna}'});
	append_to_file("$folder/service.conf", "[audit]\nhost=" . $node->host
		  . "\nport=" . $node->port . "\ndbname=postgres\nuser=anna\n");
	append_to_file("$folder/pgpass", "*:*:*:anna:blue moon\n");
	chmod 0600, "$folder/pgpass";

	local %ENV = %ENV;
	delete @ENV{ grep { /^PG/ } keys %ENV };
	$ENV{PGSERVICEFILE} = "$folder/service.conf";
	$ENV{PGPASSFILE} = "$folder/pgpass";
	my $run = sub {
		my ($out, $err) = ('', '');
		IPC::Run::run([ $program, @_ ], '<', \undef, '>', \$out, '2>', \$err);
		return ($? >> 8, $out, $err);
	};
	is(($run->('show', $id, '-d', 'service=audit'))[0], 0, 'service file and password file');
	$ENV{PGSERVICE} = 'audit';
	is(($run->('download', $fresh, '-o', "$folder/service.zip"))[0], 0, 'also for a download');
	$ENV{PGPASSFILE} = '/nonexistent';
	is(($run->('show', $id, '-w'))[0], 2, 'exit 2: no password');
	($code, $out, $err) = $run->('show', $id, '-d', "service=audit password='blue moon'");
	is($code, 1, 'exit 1: a password on the command line is refused');
	unlike("$out$err", qr/blue moon/, 'and not repeated');
}

# A package of several pages, by several people at once.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, summary)
		SELECT now() - interval '1 hour' + n * interval '1 millisecond', 'large', 'a', 'large.write',
		       (SELECT string_agg(md5(n || 'x' || i), '') FROM generate_series(1, 12) AS i)
		  FROM generate_series(1, 20000) AS n
		SQL
	my ($code, $out, $err) = run_as('bob', @request, '--purpose=large', '--filter=tenant_id=large', '--wait', '-q');
	is($code, 0, 'a large export') || diag($err);
	my ($large) = $out =~ /($uuid)/;
	cmp_ok($node->safe_psql('postgres', "SELECT archive_bytes FROM evidence.audit_export WHERE id = '$large'"),
		'>', 4 * 1024 * 1024, 'it has several pages');

	my @codes;
	{
		local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGUSER => 'bob');
		my @runs = map {
			IPC::Run::start(
				[ $program, 'download', $large, '-q', '-o', "$folder/large$_.zip" ],
				'<', \undef, '>', \my $o, '2>', \my $e)
		} 1 .. 3;
		@codes = map { $_->finish; $? >> 8 } @runs;
	}
	is("@codes", '0 0 0', 'three downloads at once');
	ok(bytes_of("$folder/large$_.zip") eq bytes_of("$folder/large1.zip"), "the same bytes: $_")
	  foreach 2 .. 3;
	cells_ok($node, "$folder/large1.zip", "tenant_id = 'large'", 'a large export');
}

$node->stop;
done_testing();
