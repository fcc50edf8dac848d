# One contract, always the same bytes: on clones of the cluster that differ in
# every setting and in the hour, on a promoted standby, and after an attempt
# was killed.  The same rows give the same records in a cluster of another
# locale, and known bytes.  And which rows belong to a contract: those that its
# snapshot saw, whoever commits what afterwards.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();

# A locale in which nearly everything is different: i and I are no pair, the
# comma stands in numbers.  Compiled here, since the machine may have none.
mkdir "$folder/locales";
PostgreSQL::Test::Utils::system_or_bail('localedef', '-i', 'tr_TR', '-f', 'UTF-8', "$folder/locales/tr_TR.UTF-8");
$ENV{LOCPATH} = "$folder/locales";

# A library that moves the clock of a whole server.
my $other_hour = "$folder/other_hour.so";
PostgreSQL::Test::Utils::system_or_bail('cc', '-shared', '-fPIC', '-o', $other_hour,
	EvidenceNode::tool_path('../lib/other_hour.c'));

my $node = EvidenceNode->new('main', max_exporters => 0,
	max_active_per_requester => 100);
$node->append_conf('postgresql.conf', <<~'CONF');
	max_prepared_transactions = 5
	wal_level = replica
	max_wal_senders = 4
	hot_standby = on
	CONF
$node->start;
$node->create_extension;
$node->fill(3000, 20);
$node->safe_psql('postgres', <<~'SQL');
	INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
	SELECT now() - interval '1 day' + n * interval '1 microsecond', 'odd', 'number.' || n,
	       (ARRAY['=1+1', 'password=Wm5xTq8Zr2', E'two\nlines', '', NULL, 'Ä, "ö"'])[1 + n % 6]
	  FROM generate_series(1, 500) AS n
	SQL

# A snapshot has to leave out what was open when it was taken, also a
# subtransaction and a prepared transaction.
my $open = $node->background_psql('postgres');
my $nested = $node->background_psql('postgres');
my $insert = sub {
	my ($actor, $when) = @_;
	$when //= "now() - interval '2 hours'";
	return 'INSERT INTO evidence.audit_log (created_at, actor_id, action)'
	  . " VALUES ($when, '$actor', 'snapshot.test')";
};

$open->query_safe('BEGIN;' . $insert->('open'));
$nested->query_safe('BEGIN; SAVEPOINT a;' . $insert->('nested') . '; RELEASE a; SAVEPOINT b');
$node->safe_psql('postgres',
	'BEGIN;' . $insert->('prepared') . q{; PREPARE TRANSACTION 'evidence'});
$node->safe_psql('postgres', 'BEGIN;' . $insert->('rolled-back') . '; ROLLBACK');
$node->safe_psql('postgres', $insert->('before'));

# A requester whose own snapshot is older than a commit.
my $repeatable = $node->background_psql('postgres');
$repeatable->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', $insert->('just-before'));

my $range = q{now() - interval '30 days', now() + interval '1 hour', 'snapshot'};
my $late = $repeatable->query_safe("SELECT evidence.request_audit_export($range)");
$repeatable->query_safe('COMMIT');

# The requesting transaction writes before and after its request.  Another one
# that begins and ends in between moves the snapshot past its number.
my $own = $node->background_psql('postgres');
$own->query_safe('BEGIN;' . $insert->('own') . '; SAVEPOINT a;'
	  . $insert->('own-nested') . '; RELEASE a');
$node->safe_psql('postgres', $insert->('between'));
my $id = $own->query_safe("SELECT evidence.request_audit_export($range, 'one', filters => '{}')");
$own->query_safe($insert->('own-after') . '; COMMIT');

$open->query_safe('COMMIT');
$nested->query_safe('COMMIT');
$node->safe_psql('postgres', q{COMMIT PREPARED 'evidence'});
$node->safe_psql('postgres', $insert->('late', "now() - interval '10 days'"));
my $after = $node->safe_psql('postgres', "SELECT evidence.request_audit_export($range)");
$_->quit foreach $open, $nested, $own, $repeatable;

# Clones of the cluster in which all three contracts still wait: one with
# every setting changed, and a standby that will be promoted.
$node->backup('clone');

my $other = PostgreSQL::Test::Cluster->new('other');
$other->init_from_backup($node, 'clone');
bless $other, 'EvidenceNode';
$other->append_conf('postgresql.conf', <<~'CONF');
	timezone = 'Asia/Kathmandu'
	datestyle = 'German, DMY'
	intervalstyle = sql_standard
	extra_float_digits = -3
	bytea_output = escape
	lc_messages = 'tr_TR.UTF-8'
	lc_time = 'tr_TR.UTF-8'
	lc_numeric = 'tr_TR.UTF-8'
	lc_monetary = 'tr_TR.UTF-8'
	xmloption = document
	default_transaction_isolation = serializable
	enable_indexscan = off
	enable_indexonlyscan = off
	work_mem = '64kB'
	jit = on
	jit_above_cost = 0
	CONF
{
	local $ENV{TZ} = 'America/St_Johns';
	local $ENV{LC_ALL} = 'tr_TR.UTF-8';
	local $ENV{LD_PRELOAD} = $other_hour;
	local $ENV{EVIDENCE_HOURS} = 29;
	my $mask = umask 0077;
	$other->start;
	umask $mask;
}
cmp_ok($other->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())::bigint') - time,
	'>', 28 * 3600, 'the other cluster lives in another hour and day');
$other->safe_psql('postgres', <<~'SQL');
	DO $$ BEGIN
	EXECUTE format('ALTER ROLE %I SET timezone = ''Pacific/Chatham''', current_user);
	EXECUTE format('ALTER ROLE %I SET search_path = trap, pg_catalog', current_user);
	END $$;
	ALTER DATABASE postgres SET datestyle = 'SQL, MDY';
	ALTER DATABASE postgres SET bytea_output = 'escape';
	ALTER DATABASE postgres SET default_transaction_read_only = on;
	ALTER DATABASE postgres SET row_security = off;
	ALTER DATABASE postgres SET standard_conforming_strings = off;
	ALTER DATABASE postgres SET array_nulls = off;
	SQL
$other->safe_psql('postgres', <<~'SQL');
	SET default_transaction_read_only = off;
	BEGIN READ WRITE;
	CREATE SCHEMA trap;
	CREATE FUNCTION trap.upper(text) RETURNS text LANGUAGE sql AS $$ SELECT 'trapped' $$;
	CREATE OPERATOR trap.^@ (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq);
	COMMIT;
	SQL

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'clone', has_streaming => 1);
bless $standby, 'EvidenceNode';
$standby->start;
$standby->promote;
$standby->poll('SELECT NOT pg_is_in_recovery()');

# Every cluster makes the three archives by itself.
my %archive;
foreach my $cluster ($node, $other, $standby)
{
	my $name = $cluster->name;

	$cluster->set(max_exporters => 2);
	foreach my $export ($id, $late, $after)
	{
		$cluster->wait_state($export, 'READY');
		my $zip = "$folder/$name-$export.zip";
		local $ENV{PGOPTIONS} = '-c default_transaction_read_only=off';
		$cluster->export_to_file($export, $zip);
		$archive{$name}{$export} = bytes_of($zip);
	}
}
foreach my $name ('other', 'standby')
{
	is(sha256_hex($archive{$name}{$_}), sha256_hex($archive{main}{$_}),
		"C19, C35: cluster $name makes the same bytes")
	  foreach $id, $late, $after;
}
{
	local $ENV{PGOPTIONS} = '-c default_transaction_read_only=off';
	is( $other->safe_psql('postgres',
			"SELECT bool_and(ok) FROM evidence.verify_audit_export('$id')"),
		't',
		'C19: verification agrees under other settings, too');
}
$other->stop;
$standby->stop;

# Which rows are in.
my $zip = "$folder/main-$id.zip";
my $outsiders =
  q{actor_id NOT IN ('open', 'nested', 'prepared', 'rolled-back', 'own', 'own-nested', 'own-after', 'late')};
my %actors = map { $_->{actor_id} => 1 } @{ records_of($zip) };

package_ok($node, $zip, 'the package');
cells_ok($node, $zip,
	"$outsiders AND (action <> 'audit_export.request' OR target_id = '$late')"
	  . " AND action <> 'audit_export.download'",
	'the package');
ok($actors{$_}, "a row committed before the request is in: $_")
  foreach qw(before just-before between);
ok(!$actors{'rolled-back'}, 'a row that was rolled back is not');
ok(!$actors{$_}, "C39: a row of a transaction open at the request stays out: $_")
  foreach qw(open nested prepared);
ok(!$actors{$_}, "a row of the requesting transaction stays out: $_")
  foreach qw(own own-nested own-after);
ok(!$actors{late},
	'C39: a row committed after the request stays out, however early its time');

my %late_actors =
  map { $_->{actor_id} => 1 } @{ records_of("$folder/main-$late.zip") };
ok($late_actors{'just-before'},
	'a request in an old REPEATABLE READ transaction gets what was committed before it');
my %after_actors =
  map { $_->{actor_id} => 1 } @{ records_of("$folder/main-$after.zip") };
is_deeply(
	[ grep { !$after_actors{$_} } qw(open nested prepared own own-nested own-after late) ],
	[], 'a later request gets them all');
is(manifest_of($zip)->{snapshot}{consistency},
	'as-of-request', 'the manifest says which promise that is');

# An attempt that dies when all is stored and nothing committed leaves no
# trace, and the next one makes the same bytes again.  The first archive is
# seen in its temporary file, behind the room for a longer header.
{
	$node->set(max_exporters => 1, debug_pause => 'stored');
	my $offset = -s $node->logfile;
	my $killed = $node->safe_psql('postgres',
		"SELECT evidence.request_audit_export($range, columns => '{created_at,actor_id,action,summary}')");

	$node->wait_for_log(qr/pauses at "stored"/, $offset);
	my ($pid) = slurp_file($node->logfile, $offset) =~ /process (\d+) pauses at "stored"/;
	my @first = grep { s/\A\0*(?=PK)// } map { bytes_of($_) }
	  glob($node->data_dir . "/base/pgsql_tmp/pgsql_tmp$pid.*");

	is(scalar @first, 1, 'the first attempt has made its archive');
	open my $copy, '>:raw', "$folder/first.zip";
	print $copy $first[0];
	close $copy;

	# The second attempt sees more rows, more transactions and other settings.
	$node->safe_psql('postgres', $insert->('later-still', "now() - interval '3 days'"));
	$node->safe_psql('postgres', q{ALTER DATABASE postgres SET timezone = 'Asia/Tehran'});
	kill 'TERM', $pid;
	$node->poll("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	$node->set(debug_pause => '');
	$node->wait_state($killed, 'READY');
	$node->export_to_file($killed, "$folder/second.zip");

	ok(bytes_of("$folder/first.zip") eq bytes_of("$folder/second.zip"),
		'C35: a second attempt makes the same bytes');
	is( $node->safe_psql('postgres',
			"SELECT count(DISTINCT attempt) FROM evidence.export_event WHERE export_id = '$killed' AND event = 'claimed'"),
		'2',
		'it was a second attempt');
	is( $node->safe_psql('postgres', <<~"SQL"), '0', 'no chunk of the first attempt is left');
		SELECT count(*) FROM evidence.archive_chunk AS c JOIN evidence.audit_export AS e ON e.id = c.export_id
		 WHERE e.id = '$killed' AND c.attempt_token <> e.archive_token
		SQL
	is_deeply([ glob($node->data_dir . '/base/pgsql_tmp/*') ],
		[], 'no temporary file is left');
}

# Rows that never change, in two clusters that have nothing in common but these
# rows: another locale means other rules for upper and lower case, for sorting
# and for numbers.
{
	my $rows = <<~'SQL';
		INSERT INTO evidence.audit_log (id, created_at, tenant_id, actor_id, actor_role, action, target_type,
		                                target_id, outcome, error_code, request_id, source_fingerprint, summary)
		OVERRIDING SYSTEM VALUE
		SELECT 9000000 - n, timestamptz '2026-02-03 04:05:06.789+00' + (n / 3) * interval '1.000001 seconds', 'pinned',
		       (ARRAY['ISPARTA', 'ısparta', 'İzmir', 'izmir', 'Ω', 'ß', '-7', U&'z\0301'])[1 + n % 8], 'clerk', 'pin.' || n % 7,
		       'record', n::text, (ARRAY['success', 'failure', 'denied'])[1 + n % 3], CASE n % 5 WHEN 0 THEN 'E' || n END,
		       'request-' || n / 4, 'key:' || encode(sha256(n::text::bytea), 'hex'),
		       (ARRAY['=1+1', 'PASSWİORD, PASSWORD=Wm5xTq8Zr2 and API_KEY=Rt7Yu3Io9p', E'two\r\nlines\t', '', NULL, 'Ä, "ö"',
		              '3,14 TITLE title', repeat('long ', 40) || n, U&'\202Ebidi', '١٢٣'])[1 + n % 10]
		  FROM generate_series(1, 5000) AS n
		SQL
	my %contract = (
		start_at => '2026-02-03 00:00:00+00',
		end_at => '2026-02-10 00:00:00+00',
		purpose => 'İstanbul, I and i',
		filters => '{"tenant_id": ["pinned"], "action": ["pin.*"], "actor_id": ["ISPARTA", "izmir", "İzmir", "-7", "Ω", "ß", "\u0131sparta", "z\u0301"]}');
	my $turk = EvidenceNode->new('turk', locale => 'tr_TR.UTF-8');
	my %made;

	{
		local $ENV{LD_PRELOAD} = $other_hour;
		local $ENV{EVIDENCE_HOURS} = -19;
		$turk->start;
	}
	$turk->create_extension;
	is($turk->safe_psql('postgres', "SELECT lower('I') || to_char(3.5, '0D0')"),
		'ı 3,5', 'this cluster has other letters and numbers');
	foreach my $cluster ($node, $turk)
	{
		my $zip = "$folder/pinned-" . $cluster->name . '.zip';

		$cluster->safe_psql('postgres', $rows);
		$cluster->export_to_file($cluster->export(%contract), $zip);
		package_ok($cluster, $zip, 'pinned rows in cluster ' . $cluster->name);
		cells_ok($cluster, $zip, q{tenant_id = 'pinned'}, 'pinned rows in cluster ' . $cluster->name);
		$made{ $cluster->name } = $zip;
	}
	$turk->stop;

	ok(member_of($made{main}, 'records.csv') eq member_of($made{turk}, 'records.csv'),
		'C19: the same rows are the same records in a cluster of another locale');
	my ($ours, $theirs) = map { manifest_of($_) } @made{qw(main turk)};
	foreach my $name (qw(export_id requested_at snapshot))
	{
		delete $_->{$name} foreach $ours, $theirs;
	}
	is_deeply($theirs, $ours,
		'C19: and their manifests differ only in what is of this cluster and this request');

	# What these rows became when this was written.
	my $codec = $ours->{producer}{codec};
	my %pinned = (
		records => '23af1e7d9761b18d85a6f3331c2da5275c46fe951f82f49264bbe422bb058241',
		'isa-l 2.30.0 igzip 1, blocks of 256 KiB' => '35c2c828ad9a31efc3f9ac0de552b225ff716def0357a6bb199593c3e420b7f5',
		'isa-l 2.31.1 igzip 1, blocks of 256 KiB' => '35c2c828ad9a31efc3f9ac0de552b225ff716def0357a6bb199593c3e420b7f5');
	is(sha256_hex(member_of($made{main}, 'records.csv')), $pinned{records}, 'records.csv is what it always was')
	  || diag('The same rows now give another records.csv, so verify_audit_export() will call every'
		  . ' older package altered.  This must not happen; rules for cells need a version of their own.');
	is(sha256_hex(packed_member_of($made{main}, 'records.csv')),
		$pinned{$codec} // "no bytes are pinned for this codec", "so are its bytes when packed by $codec")
	  || diag('The compressor, its blocks or its library changed, so archives of one contract differ before'
		  . ' and after.  The codec in the manifest must tell the two apart: give the new one a name of its'
		  . ' own in ev_archive_codec() and pin its bytes here, beside those of the old one.');
}

$node->stop;
done_testing();
