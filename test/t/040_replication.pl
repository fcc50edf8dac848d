# Standby and promotion, binary upgrade, dump and restore: where a ledger may
# go on, and where it must not.

use strict;
use warnings;

use EvidenceNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $file = "$folder/evidence.zip";
my $primary = PostgreSQL::Test::Cluster->new('primary');

bless $primary, 'EvidenceNode';
$primary->init(
	allows_streaming => 1,
	extra => [ '--no-locale', '--encoding=UTF8' ]);
$primary->configure(lease => 30);
$primary->start;
$primary->create_extension;
$primary->fill(2000, 10);
$primary->safe_psql('postgres', <<'SQL');
CREATE ROLE clerk LOGIN;
SELECT evidence.grant_capability('clerk', 'requester');
SELECT evidence.add_redaction_rule('badge', 'BADGE-[0-9]+', 'test');
SQL

# The two digests that tell whether an export is still the same.
sub digests
{
	my ($node, $id) = @_;

	return $node->safe_psql('postgres',
		"SELECT records_sha256, archive_sha256 FROM evidence.audit_export WHERE id = '$id'"
	);
}

sub bad_checks
{
	my ($node, $id) = @_;

	return $node->safe_psql('postgres',
		"SELECT string_agg(check_name, ' ') FROM evidence.verify_audit_export('$id') WHERE NOT ok"
	);
}

sub downloads_well
{
	my ($node, $id, $name) = @_;

	$node->export_to_file($id, $file);
	is(($node->program('verify', $file))[0], 0, "$name: the package is intact");
	return;
}

# A hot standby and its promotion.
{
	my $name = 'standby';

	$primary->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');

	bless $standby, 'EvidenceNode';
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;

	my $ready = $primary->request;

	$primary->wait_state($ready, 'READY');

	my $grant = $primary->safe_psql('postgres',
		"SELECT evidence.grant_audit_export_download('$ready')");
	my $offset = $primary->pause_before('half-read');
	my $running = $primary->request;

	$primary->wait_paused('half-read', $offset);
	my $waiting = $primary->request;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is( $standby->safe_psql('postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'evidence'"),
		'0',
		"$name: no launcher");
	my ($code, $text) =
	  $standby->error_of("SELECT evidence.fetch_audit_export('$grant')");
	is($code, '55000', "$name: nothing can be fetched");
	like($text, qr/HINT/, "$name: and the hint says where");
	($code) = $standby->error_of(
		"SELECT evidence.request_audit_export(now() - interval '1 day', now(), 'test')");
	is($code, '25006', "$name: nothing can be requested");
	is($standby->export_state($ready), 'READY', "$name: states can be read");

	$primary->stop('immediate');
	$offset = -s $standby->logfile;
	$standby->promote;
	$standby->wait_for_log(qr/launcher serves database/, $offset);
	pass('promotion: the launcher starts');
	$standby->wait_state($running, 'READY');
	$standby->wait_state($waiting, 'READY');
	is($standby->ledger_faults, '',
		'promotion: what ran and what waited is carried out once');
	is(bad_checks($standby, $_), '', 'promotion: verified against the live rows')
	  foreach $ready, $running;
	downloads_well($standby, $ready, 'promotion');
	$standby->stop;

	# The tests below go on with the first server.
	$primary->write_settings(debug_pause => '');
	$primary->start;
	$primary->wait_state($_, 'READY') foreach $running, $waiting;
}

# What the following copies must still know.
my $done = $primary->request;

$primary->wait_state($done, 'READY');
my $useless_grant = $primary->safe_psql('postgres',
	"SELECT evidence.grant_audit_export_download('$done')");
my $revoked = $primary->request;

$primary->wait_state($revoked, 'READY');
$primary->safe_psql('postgres',
	"SELECT evidence.revoke_audit_export('$revoked', 'test')");
$primary->set(max_exporters => 0);
my $pending = $primary->request(idempotency_key => 'pending');
my $digests = digests($primary, $done);

# Dump and restore, in every form that administrators use.
$primary->command_ok(
	[
		'pg_dump', '-d', $primary->connstr('postgres'),
		'-f', "$folder/plain.sql"
	],
	'dump: plain');
$primary->command_ok(
	[
		'pg_dump', '-d', $primary->connstr('postgres'), '--inserts',
		'-f', "$folder/inserts.sql"
	],
	'dump: as INSERTs');
$primary->command_ok(
	[
		'pg_dump', '-d', $primary->connstr('postgres'), '-Fc',
		'-f', "$folder/custom.dump"
	],
	'dump: custom format');

my @restores = (
	[ 'plain', 'psql', '-f', "$folder/plain.sql" ],
	[ 'single transaction', 'psql', '-1', '-f', "$folder/plain.sql" ],
	[ 'as INSERTs', 'psql', '-f', "$folder/inserts.sql" ],
	[ 'custom format, two jobs', 'pg_restore', '-j2', "$folder/custom.dump" ],
	[ 'custom format, single transaction', 'pg_restore', '-1', "$folder/custom.dump" ]);
my $restored =
  EvidenceNode->new('restored', database => 'copy', lease => 30);

$restored->start;
$restored->safe_psql('postgres', 'CREATE ROLE clerk LOGIN');
foreach my $restore (@restores)
{
	my ($form, $program, @arguments) = @$restore;

	restore_and_adopt("restore, $form", $program, @arguments);
}
$restored->stop;

sub restore_and_adopt
{
	my ($name, $program, @arguments) = @_;
	my $offset = -s $restored->logfile;

	$restored->safe_psql('postgres',
		'DROP DATABASE IF EXISTS copy WITH (FORCE)');
	$restored->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
	$restored->command_ok(
		[
			$program,
			($program eq 'psql' ? ('-X', '-q', '-v', 'ON_ERROR_STOP=1') : ('-e')),
			'-d', $restored->connstr('copy'), @arguments
		],
		"$name: restores");

	# The ledger is there, and nobody works on it.
	my $copy = sub { return $restored->safe_psql('copy', $_[0]); };

	$restored->wait_for_log(
		qr/launcher waits: the evidence ledger in database "copy" belongs to another cluster/,
		$offset);
	pass("$name: the workers stay off and say so");
	is($copy->("SELECT string_agg(state, ' ' ORDER BY state) FROM evidence.audit_export"
			  . " WHERE id IN ('$done', '$revoked', '$pending')"),
		'QUEUED READY REVOKED', "$name: the exports are there");
	foreach my $call (
		"SELECT evidence.request_audit_export(now() - interval '1 day', now(), 'test')",
		"SELECT evidence.verify_audit_export('$done')",
		'CALL evidence.run_once()')
	{
		my ($code, $text) = $restored->error_of($call, dbname => 'copy');
		my ($function) = $call =~ /evidence\.(\w+)/;

		is($code, '55000', "$name: $function() is refused");
		like($text, qr/HINT:.*adopt_instance/, "$name: $function() hints at adoption");
	}
	my ($code) =
	  $restored->error_of("SELECT evidence.fetch_audit_export('$useless_grant')",
		dbname => 'copy');
	is($code, '42501', "$name: a grant of the other cluster is worth nothing");
	is( $copy->('SELECT count(*) FROM evidence.attempt'), '0',
		"$name: no attempt came along");

	# Adoption.
	$offset = -s $restored->logfile;
	my $rows = $copy->('SELECT count(*) FROM evidence.audit_log');

	is($copy->("SELECT evidence.adopt_instance('restore test')"),
		$rows, "$name: adopt_instance() stamps every row");
	is($copy->("SELECT string_agg(state, ' ' ORDER BY state) FROM evidence.audit_export"
			  . " WHERE id IN ('$done', '$revoked', '$pending')"),
		'EXPIRED FAILED REVOKED',
		"$name: what was open failed, what was ready expired with its bytes");
	is($copy->(
			"SELECT count(*) FROM evidence.audit_log WHERE action = 'instance.adopt'"),
		'1', "$name: the adoption stands in the log");
	($code) = $restored->error_of("SELECT evidence.adopt_instance('again')",
		dbname => 'copy');
	is($code, '55000', "$name: there is nothing to adopt twice");
	$restored->wait_for_log(qr/launcher serves database "copy"/, $offset);

	# It is a ledger like any other now.
	my $request = "SET ROLE clerk;"
	  . " SELECT evidence.request_audit_export(now() - interval '30 days', now() + interval '1 hour', 'after')";
	my $id = $copy->($request);

	chomp $id;
	ok( $restored->poll_query_until('copy',
			"SELECT state = 'READY' FROM evidence.audit_export WHERE id = '$id'"),
		"$name: a new request is carried out, with the capability of before");
	is($copy->("SELECT count(*) FROM evidence.verify_audit_export('$id') WHERE NOT ok"),
		'0', "$name: and verified against the live rows");
	# All rows but those of the adoption and the request themselves.
	is($copy->("SELECT record_count FROM evidence.audit_export WHERE id = '$id'"),
		$rows + 1, "$name: and holds all rows");
	is($copy->("SELECT ruleset_version > 1 FROM evidence.audit_export WHERE id = '$id'"),
		't', "$name: rules of one's own came along");
	is($copy->(<<'SQL'),
SELECT (SELECT count(*) FROM evidence.export_event),
       (SELECT count(DISTINCT id) FROM evidence.export_event),
       (SELECT count(*) - count(DISTINCT id) FROM evidence.audit_log)
SQL
		$copy->('SELECT count(*), count(*), 0 FROM evidence.export_event'),
		"$name: sequences go on where they were");
	is($copy->(
			"SELECT count(*) FROM evidence.redaction_rule WHERE name = 'badge'"),
		'1', "$name: the rule is there once");
	return;
}

# pg_upgrade, from this version to this version.
{
	my $name = 'pg_upgrade';
	my $new = EvidenceNode->new('upgraded', lease => 30);
	my $bindir = $primary->config_data('--bindir');

	$primary->stop;
	# pg_upgrade writes into the current folder.
	chdir $folder or die "could not enter $folder: $!";
	command_ok(
		[
			'pg_upgrade', '--no-sync',
			'-d', $primary->data_dir, '-D', $new->data_dir,
			'-b', $bindir, '-B', $bindir,
			'-s', $new->host,
			'-p', $primary->port, '-P', $new->port
		],
		"$name: succeeds with the library preloaded on both sides");
	$new->start;
	$new->wait_for_log(qr/launcher serves database "postgres"/);
	pass("$name: the ledger is still this cluster's own");
	is(digests($new, $done), $digests, "$name: exports are as they were");
	is(bad_checks($new, $done), '', "$name: verified against the live rows");
	downloads_well($new, $done, $name);
	$new->wait_state($pending, 'READY');
	is(bad_checks($new, $pending),
		'', "$name: what was pending is made, and holds the right rows");
	is($new->ledger_faults, '', "$name: one archive each and nothing else");
	is($new->request(idempotency_key => 'pending',
			start_at => $new->safe_psql('postgres',
				"SELECT start_at FROM evidence.audit_export WHERE id = '$pending'"),
			end_at => $new->safe_psql('postgres',
				"SELECT end_at FROM evidence.audit_export WHERE id = '$pending'")),
		$pending, "$name: idempotency keys go on");
	$new->stop;
	chdir '/';
}

done_testing();
