# An ordinary role lays out everything that PostgreSQL lets it create, named
# like what the extension uses, and every function of the extension is called
# in the middle of it (C61).  None of the traps may be called, as whoever it
# is, and every answer is the one without traps.
#
# Which functions there are is asked of the catalog: a new one fails this test
# until there is a call of it in lib/attack_calls.sql and in %bait.

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceNode;
use File::Basename qw(dirname);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $lib = dirname(abs_path(__FILE__)) . '/lib';
my $extension = EvidenceNode::tool_path('../../extension');
my @capabilities = qw(requester operator auditor writer uploader);

append_to_file("$folder/fingerprint.key", 'test:' . '89abcdef' x 8 . "\n");
chmod 0600, "$folder/fingerprint.key";

my $node = EvidenceNode->new('main', max_active_per_requester => 1000,
	fingerprint_key_file => "$folder/fingerprint.key",
	debug_pause => 'launcher-round');
$node->append_conf('postgresql.conf', "autovacuum_naptime = 1\n");
$node->start;

sub sql
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# Runs a script as a role in a session of its own; returns what it printed on
# each channel, without what differs from one run to the next.
sub psql_as
{
	my ($role, $script, %variables) = @_;
	my ($out, $err) = ('', '');
	my @variables = map { ('-v', "$_=$variables{$_}") } sort keys %variables;
	local %ENV = $node->_get_env(PGDATABASE => 'postgres');

	$ENV{PGUSER} = $role if $role ne 'superuser';
	IPC::Run::run([ 'psql', '-XqAt', @variables ], '<', \$script, '>', \$out, '2>', \$err);
	s/[0-9a-f]{8}-[0-9a-f-]{27}/<uuid>/g, s/[0-9a-f]{64}/<hex>/g foreach $out, $err;
	return ($out, $err);
}

# What was sprung since that place in the log, one line each.
sub sprung
{
	my ($offset) = @_;
	my $log = slurp_file($node->logfile, $offset);
	my %springs = map { $_ => 1 } $log =~ /LOG:  (SPRUNG: .*)/g;

	return join "\n", sort keys %springs;
}

# The traps are there before the extension is, and the database's owner, who
# is no superuser, has put them in front of everything for everybody.
my $code = '';
$code .= slurp_file($_)
  foreach glob("$extension/ledger/*.c"), glob("$extension/schema/*.sql");
my %names = map { $_ => 1 } $code =~ /\b([a-z][a-z0-9_]+)\(/g;

sql(<<~'SQL');
	CREATE ROLE mallory LOGIN;
	ALTER DATABASE postgres OWNER TO mallory;
	CREATE SCHEMA trap AUTHORIZATION mallory;
	SQL
{
	my $known = sql('SELECT string_agg(DISTINCT quote_ident(proname), chr(10)) FROM pg_proc'
		  . q{ WHERE pronamespace = 'pg_catalog'::regnamespace});
	my $names = join ',', grep { $names{$_} } split /\n/, $known;

	cmp_ok(scalar(split /,/, $names), '>', 30, 'the SQL of the extension was found');
	my ($counts, $error) = psql_as('mallory', slurp_file("$lib/traps.sql"), names => "{$names}");
	is($error, '', 'the traps are laid out');
	my ($operators, $functions) = $counts =~ /^(\d+)\|(\d+)\n\z/m;
	cmp_ok($operators, '>', 5000, "there are $operators operators");
	cmp_ok($functions, '>', 3000, "there are $functions functions");
	($counts, $error) = psql_as('mallory', 'ALTER DATABASE postgres SET search_path = trap, pg_catalog');
	is($error, '', 'and stand in front for everybody');
}

# That they would be called.
{
	my $offset = -s $node->logfile;

	psql_as('superuser', <<~'SQL');
		SELECT left('abc'::pg_catalog.text, 1);
		SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text;
		SELECT oid FROM pg_catalog.pg_class WHERE oid <> 0::pg_catalog.int4;
		SELECT '1'::uuid;
		SELECT pg_catalog.length(ROW('x')::trap.envelope);
		SELECT 'x'::trap.looking;
		SELECT statement FROM trap.temporary LIMIT 1 \gexec
		INSERT INTO pg_attribute VALUES (1);
		SQL
	my @springs = split /\n/, sprung($offset);
	cmp_ok(scalar @springs, '>=', 4, 'the traps spring') || diag("@springs");
	like("@springs", qr/as "@{[ sql('SELECT current_user') ]}"/, 'as a superuser, too');
	psql_as('superuser', 'CREATE FUNCTION public.lent() RETURNS pg_catalog.text LANGUAGE sql SECURITY DEFINER AS $$'
		  . q{SELECT 'x'::trap.looking $$; GRANT EXECUTE ON FUNCTION public.lent() TO PUBLIC});
	$offset = -s $node->logfile;
	psql_as('mallory', 'SELECT public.lent()');
	like(sprung($offset), qr/domain as "(?!mallory)/, 'the domain sees who evaluates it');
}

my $start = -s $node->logfile;

psql_as('superuser', 'CREATE EXTENSION pg_evidence');
is(sprung($start), '', 'C61: CREATE EXTENSION in a hostile database springs no trap');
is(sql('SELECT pg_catalog.count(*) FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) \'pg_evidence\''),
	1, 'and it is created');
sql('SET search_path = pg_catalog; ' . <<~'SQL');
	ALTER DATABASE postgres RESET search_path;
	SQL
is(sql(<<~'SQL'), '', 'C61: no object of it depends on a trap');
	SELECT string_agg(pg_describe_object(classid, objid, objsubid), ', ')
	  FROM pg_depend AS d, pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS r,
	       pg_identify_object(d.classid, d.objid, d.objsubid) AS o
	 WHERE r.identity ~ '\mtrap\M' AND o.identity ~ '\mevidence\M'
	SQL

# Who calls.
sql(<<~'SQL');
	CREATE ROLE target;
	CREATE ROLE anna LOGIN;
	SELECT evidence.grant_capability('anna', 'requester');
	INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
	SELECT timestamptz '2026-01-01 00:00+00' + n * interval '1 minute', 'actor-' || n, 'made.up', md5(n::text)
	  FROM generate_series(1, 300) AS n;
	SQL
sql("CREATE ROLE mallory_$_ LOGIN; SELECT evidence.grant_capability('mallory_$_', '$_')")
  foreach @capabilities;

# READY exports, made without any worker: one id for each role given.
sub ready_exports
{
	my (@roles) = @_;
	my ($out, $err) = ('', '');
	my $script = join '', map {
		($_ eq 'superuser' ? '' : "SET ROLE $_;\n")
		  . "SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'made before');\n"
		  . "RESET ROLE;\nCALL evidence.run_once();\n"
	} @roles;
	my @ids = split /\n/, sql($script);
	my $ready = sql("SELECT count(*) FROM evidence.audit_export WHERE state = 'READY' AND id IN ('" . join("','", @ids) . "')");

	die "$ready exports are ready, not " . @roles if $ready != @roles;
	return @ids;
}

# Variables for four runs of the calls by each role.
my @callers = ((map { "mallory_$_" } @capabilities), 'superuser');
my %variables;
{
	my @owners;
	foreach my $role (@callers)
	{
		my $owner = $role =~ /requester|operator|superuser/ ? $role : 'anna';
		push @owners, ($owner, $owner, 'anna') x 4;
	}
	my @ids = ready_exports(@owners);
	my $key = 0;
	foreach my $role (@callers)
	{
		foreach (1 .. 4)
		{
			my %run = (key => 'key ' . ++$key);
			@run{qw(ready own foreign)} = splice @ids, 0, 3;
			push @{ $variables{$role} }, \%run;
		}
	}
}

my $calls = slurp_file("$lib/attack_calls.sql");
my @functions = split /\n/, sql(<<~'SQL');
	SELECT proname FROM pg_proc WHERE pronamespace = 'evidence'::regnamespace ORDER BY 1
	SQL

cmp_ok(scalar @functions, '>', 20, 'the extension has functions');
is(join(' ', grep { $calls !~ /\bevidence\.\Q$_\E\(/ } @functions),
	'', 'C61: lib/attack_calls.sql calls every function of the extension');
is(sql(<<~'SQL'), '', 'C61: and looks into every view');
	SELECT string_agg(relname, ' ') FROM pg_class
	 WHERE relnamespace = 'evidence'::regnamespace AND relkind = 'v'
	   AND relname NOT IN ('audit_export_status', 'state_move', 'state_combination', 'queue_health', 'metrics', 'human_queue')
	SQL

# Settings that any role may change.
my $settings = <<'SQL';
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SET backslash_quote = on;
SET transform_null_equals = on;
SET array_nulls = off;
SET datestyle = 'SQL, DMY';
SET intervalstyle = sql_standard;
SET timezone = 'Pacific/Chatham';
SET bytea_output = escape;
SET extra_float_digits = -15;
SET xmloption = document;
SET plan_cache_mode = force_generic_plan;
SET row_security = off;
SET constraint_exclusion = on;
SET join_collapse_limit = 1;
SET from_collapse_limit = 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_material = off;
SET work_mem = '64kB';
SET gin_pending_list_limit = 64;
SET default_text_search_config = 'pg_catalog.simple';
SET default_toast_compression = pglz;
SET synchronous_commit = off;
SQL
my $traps = <<'SQL';
SET client_min_messages = error;
SELECT statement FROM trap.temporary ORDER BY oid DESC \gexec
CREATE OR REPLACE FUNCTION pg_temp.count(pg_catalog.text) RETURNS pg_catalog.int8 LANGUAGE sql AS 'SELECT 0::pg_catalog.int8';
INSERT INTO pg_temp.capability (role_name, capability) SELECT r, c FROM pg_catalog.unnest('{mallory_requester,mallory_operator,mallory_auditor,mallory_writer,mallory_uploader}'::pg_catalog.text[]) AS r, pg_catalog.unnest('{requester,operator,auditor,writer}'::pg_catalog.text[]) AS c;
INSERT INTO pg_temp.audit_source (name, table_name, columns, column_version, consistency) VALUES ('audit_log', 'pg_catalog.pg_authid', '{rolname,rolpassword}', 1, 'as-of-request');
SELECT 1 / (pg_catalog.count(*) OPERATOR(pg_catalog.>) 0)::pg_catalog.int4 AS temporary_tables FROM pg_temp.capability;
RESET client_min_messages;
SET search_path = pg_temp, trap, pg_catalog, evidence;
SQL

# The rows above spring their own triggers, as whoever inserts them.
sub sprung_in_calls
{
	my ($offset) = @_;

	return join "\n", grep { !/SPRUNG: (?:pg_temp\.|pg_temp_\d+\.|)"?(?:capability|audit_source)"? as/ } split /\n/, sprung($offset);
}

my %answers;
foreach my $role (@callers)
{
	my @variables = @{ $variables{$role} };
	my @clean = psql_as($role, $calls, %{ $variables[0] });
	my $offset = -s $node->logfile;

	# In a session that has made no plan yet.
	my @trapped = psql_as($role, $settings . $traps . $calls, %{ $variables[1] });
	$trapped[0] =~ s/\A1\n//;
	# What bytea and interval look like is the session's own affair.
	s/PK\\003\\004/\\x504b0304/g foreach @trapped;
	is($trapped[0], $clean[0], "C61: $role, traps in front: the same answers");
	is($trapped[1], $clean[1], "C61: $role, traps in front: the same refusals");
	is(sprung_in_calls($offset), '', "C61: $role, traps in front: none springs");

	# In a session that had made its plans before.
	$offset = -s $node->logfile;
	my $set = join '', map { "\\set $_ '$variables[3]{$_}'\n" } sort keys %{ $variables[3] };
	my @later = psql_as($role, $calls . $settings . $traps . $set . $calls, %{ $variables[2] });
	my ($first, $again) = split /^1\n(?=request\n)/m, $later[0];
	s/PK\\003\\004/\\x504b0304/g foreach $again;
	is($again, $clean[0], "C61: $role, traps after the plans: the same answers");
	is($first, $clean[0], "C61: $role, traps after the plans: as before them");
	is($later[1], $clean[1] x 2, "C61: $role, traps after the plans: the same refusals");
	is(sprung_in_calls($offset), '', "C61: $role, traps after the plans: none springs");
	$answers{$role} = \@clean;
}

# That the calls do something where they are allowed, and nothing where not.
{
	my ($out, $err) = @{ $answers{superuser} };

	like($out, qr/^READY\|300\|1\|1\.0000$/m, 'a superuser makes the export, of all its rows');
	like($out, qr/^0\|t\n0\|\\x504b0304$/m, 'fetches it');
	like($out, qr/^REVOKED$/m, 'and revokes it');
	like($out, qr/^CANCELLED$/m, 'cancels another');
	is_deeply([ $err =~ /ERROR:  (\w{5})/g ],
		# the conflict of keys, the long range, two kinds of shipping that is off, two that are READY, the grant that is none,
		# five deliveries that are none, a download that is in no store, an event that is none, a retry of what has not failed,
		# two repairs of what is not broken, a download that was none, nothing to adopt, four refused changes, five trigger functions that were called by hand
		[ qw(PE001 22023 55000 55000 55000 55000 42501), ('PE004') x 5, qw(PE006 22023 55000 55000 55000 42501), ('55000') x 5, ('39P01') x 5 ],
		'what a superuser is refused')
	  || diag($err);
	foreach my $role (qw(mallory_auditor mallory_writer mallory_uploader))
	{
		my $refusals = () = $answers{$role}[1] =~ /ERROR:  42501/g;
		cmp_ok($refusals, '>=', 30, "$role is refused what is not its own ($refusals times)");
	}
	unlike($answers{mallory_requester}[0], qr/administer\n(?!views)/, 'a requester administers nothing');
}

# A domain as the type of an argument: its check is evaluated by the caller.
{
	my $offset = -s $node->logfile;
	my ($out, $err) = psql_as('mallory_writer', <<~'SQL');
		SELECT evidence.record_audit_event('a.b'::trap.looking, 'c'::trap.looking, summary => 'd'::trap.looking) OPERATOR(pg_catalog.>) 0;
		SELECT evidence.fingerprint('a'::trap.looking);
		SQL
	like($out, qr/^t\ntest:/, 'C61: arguments of a domain are taken');
	is("$err" . sprung($offset), '', 'C61: and evaluated as their giver');
}

# Somebody else's view or function lends its table rights, and no capability.
{
	my $offset = -s $node->logfile;

	sql(<<~'SQL');
		CREATE SCHEMA shared;
		GRANT USAGE ON SCHEMA shared TO PUBLIC;
		GRANT CREATE ON SCHEMA shared TO anna;
		CREATE FUNCTION shared.write(what text) RETURNS bigint LANGUAGE sql SECURITY DEFINER
		    AS $$SELECT evidence.record_audit_event('victim.write', what)$$;
		CREATE VIEW shared.all_exports AS SELECT id, requested_by FROM evidence.audit_export_status;
		GRANT SELECT ON shared.all_exports TO PUBLIC;
		CREATE ROLE mallory_nobody LOGIN;
		SQL
	psql_as('anna', 'CREATE VIEW shared.mine AS SELECT id, requested_by FROM evidence.audit_export_status; GRANT SELECT ON shared.mine TO PUBLIC');
	my ($out, $err) = psql_as('mallory_nobody', $settings . $traps . "\\set VERBOSITY sqlstate\n" . <<~'SQL');
		SELECT pg_catalog.count(*) FROM shared.all_exports;
		SELECT pg_catalog.count(*) FROM shared.mine;
		SELECT shared.write('victim') OPERATOR(pg_catalog.>) 0;
		SQL
	like($out, qr/^t$/m, 'C61: a function of its owner works in the middle of the caller\'s traps');
	is(sprung_in_calls($offset), '', 'C61: and springs none');
	unlike($out, qr/^[1-9]\d*\n(?!t)/m, "C61: the view of somebody who sees more shows no more")
	  || diag("$out$err");
	($out, $err) = psql_as('mallory_requester', 'SELECT count(*) FROM shared.all_exports WHERE requested_by <> current_user');
	is($out, "0\n", 'C61: a requester sees only own exports through a superuser\'s view') || diag($err);
}

# Sessions that became somebody else are judged by what they became.
{
	my $try = <<'SQL';
\set VERBOSITY sqlstate
SELECT evidence.grant_capability('target', 'operator');
CALL evidence.run_once();
SELECT evidence.record_audit_event('a.b', 'c');
SQL
	my ($out, $err) = psql_as('superuser', "SET SESSION AUTHORIZATION mallory_auditor;\n$try");
	is_deeply([ $err =~ /(\w{5})$/mg ], [ ('42501') x 3 ], 'C61: SET SESSION AUTHORIZATION: judged as that role');
	($out, $err) = psql_as('superuser', "SET ROLE mallory_auditor;\n$try");
	is_deeply([ $err =~ /(\w{5})$/mg ], [ ('42501') x 3 ], 'C61: SET ROLE: judged as that role');
	($out, $err) = psql_as('mallory_writer', "SET ROLE anna;\n$try");
	like($err, qr/permission denied to set role/, 'C61: no role becomes one it is no member of');
	# Not even where a superuser's session called it.
	sql('CREATE FUNCTION shared.climb() RETURNS void LANGUAGE plpgsql AS $$BEGIN RESET ROLE; PERFORM evidence.grant_capability(\'target\', \'operator\'); END$$');
	($out, $err) = psql_as('mallory_operator', "\\set VERBOSITY sqlstate\nSELECT shared.climb()");
	like($err, qr/42501/, 'C61: RESET ROLE leads back to who logged in');
}

# What maintenance runs on somebody else's behalf gets nothing done, whichever
# function it calls and whoever starts it.
{
	my ($ready) = ready_exports('superuser');
	my %bait = (
		request_audit_export => "SELECT evidence.request_audit_export('2026-01-01', '2026-01-02', 'bait')",
		cancel_audit_export => "SELECT evidence.cancel_audit_export('$ready', 'bait')",
		revoke_audit_export => "SELECT evidence.revoke_audit_export('$ready', 'bait')",
		grant_audit_export_download => "SELECT evidence.grant_audit_export_download('$ready')",
		fetch_audit_export => "SELECT evidence.fetch_audit_export('bait')",
		verify_audit_export => "SELECT evidence.verify_audit_export('$ready')",
		record_audit_event => "SELECT evidence.record_audit_event('bait.taken', 'bait')",
		fingerprint => "SELECT evidence.fingerprint('bait')",
		grant_capability => "SELECT evidence.grant_capability('mallory_nobody', 'operator')",
		revoke_capability => "SELECT evidence.revoke_capability('anna', 'requester')",
		add_redaction_rule => "SELECT evidence.add_redaction_rule('bait', 'x', 'bait')",
		retire_redaction_rule => "SELECT evidence.retire_redaction_rule('password', 'bait')",
		run_once => 'CALL evidence.run_once()',
		ship_pass => 'CALL evidence.ship_pass()',
		# PL/pgSQL itself wants a variable for the argument that comes back.
		ship_audit_records => "EXECUTE 'CALL evidence.ship_audit_records(''2026-01-01'')'",
		claim_delivery => "SELECT evidence.claim_delivery('bait', 'bucket', '')",
		renew_delivery => "SELECT evidence.renew_delivery('$ready')",
		read_delivery_chunk => "SELECT evidence.read_delivery_chunk('$ready', 0)",
		record_sending => "SELECT evidence.record_sending('$ready')",
		confirm_delivery => "SELECT evidence.confirm_delivery('$ready', 1, repeat('a', 64))",
		confirm_removal => "SELECT evidence.confirm_removal('$ready', true)",
		fail_delivery => "SELECT evidence.fail_delivery('$ready', 'definite', 'bait', 'bait')",
		delivery_status => 'SELECT evidence.delivery_status()',
		known_objects => "SELECT evidence.known_objects('bucket')",
		record_reconciliation => "SELECT evidence.record_reconciliation('bucket', '', now(), 0, '[]')",
		locate_download => "SELECT evidence.locate_download('bait')",
		record_download => "SELECT evidence.record_download('bait', 1, repeat('a', 64))",
		requeue_outbox_event => "SELECT evidence.requeue_outbox_event(1, 'bait')",
		retry_audit_export => "SELECT evidence.retry_audit_export('$ready', 'bait')",
		recreate_audit_export => "SELECT evidence.recreate_audit_export('$ready', 'bait')",
		freeze_audit_export => "SELECT evidence.freeze_audit_export('$ready', 'bait')",
		unfreeze_audit_export => "SELECT evidence.unfreeze_audit_export('$ready', 'bait')",
		fail_audit_export => "SELECT evidence.fail_audit_export('$ready', 'bait')",
		fill_in_audit_export => "SELECT evidence.fill_in_audit_export('$ready', 'bucket', 'key', 1, 'x', 'bait')",
		trace_audit_export => "SELECT evidence.trace_audit_export('$ready')",
		trace_download => 'SELECT evidence.trace_download(1)',
		recovery_report => "SELECT evidence.recovery_report('2026-01-01')",
		duplicate_exports => 'SELECT evidence.duplicate_exports()',
		open_human_case => "SELECT evidence.open_human_case('bait', 'bait', '2999-01-01', 'bait')",
		recheck_human_case => "SELECT evidence.recheck_human_case(1, '2999-01-01', 'bait')",
		close_human_case => "SELECT evidence.close_human_case(1, 'bait')",
		audit_export_dossier => "SELECT evidence.audit_export_dossier('$ready')",
		adopt_instance => "SELECT evidence.adopt_instance('bait')");
	my @entries = grep { !/^_|^evidence_version$/ } @functions;

	is(join(' ', grep { !$bait{$_} } @entries), '', 'C61: there is a bait for every function of the interface');

	# mallory has every capability, so that nothing but the place is wrong.
	sql("SELECT evidence.grant_capability('mallory', '$_')") foreach @capabilities;
	psql_as('mallory', 'SET search_path = pg_catalog;' . <<~'SQL');
		CREATE TABLE trap.bait (a int);
		INSERT INTO trap.bait SELECT generate_series(1, 3);
		CREATE FUNCTION trap.take(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog AS 'BEGIN RETURN $1; END';
		CREATE INDEX bait_index ON trap.bait (trap.take(a));
		CREATE MATERIALIZED VIEW trap.bait_view AS SELECT trap.take(a) AS a FROM trap.bait;
		SQL
	# What an index uses can be replaced by something that is not IMMUTABLE.
	# A procedure that commits has no chance in a function at all.
	my %refusal = map { $_ => /^(?:run_once|ship_pass|ship_audit_records)$/ ? '25001' : '42501' } keys %bait;
	my $refusals = join ' ', map { "$_ $refusal{$_}" } sort keys %bait;
	my $take = "CREATE OR REPLACE FUNCTION trap.take(int) RETURNS int LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS \$f\$\nBEGIN\n";
	foreach my $name (sort keys %bait)
	{
		$take .= "BEGIN $bait{$name}; RAISE LOG 'SPRUNG: $name was taken'; EXCEPTION WHEN OTHERS THEN"
		  . " RAISE LOG 'bait $name refused with % by \"%\"', SQLSTATE, current_setting('application_name'); END;\n";
		$take =~ s/BEGIN SELECT/BEGIN PERFORM/g;
	}
	$take .= "RETURN \$1;\nEND\n\$f\$;";
	my ($out, $err) = psql_as('mallory', $take);
	is($err, '', 'the bait is laid out');

	my $before = sql(q{SELECT (SELECT count(*) FROM evidence.audit_log), (SELECT count(*) FROM evidence.export_event), (SELECT count(*) FROM evidence.capability), (SELECT count(*) FROM evidence.redaction_rule)});
	foreach my $statement ('ANALYZE trap.bait', 'REINDEX TABLE trap.bait', 'REINDEX INDEX CONCURRENTLY trap.bait_index',
		'CLUSTER trap.bait USING bait_index', 'VACUUM (FULL, ANALYZE) trap.bait', 'REFRESH MATERIALIZED VIEW trap.bait_view')
	{
		my $offset = -s $node->logfile;

		sql($statement);
		my %refused = slurp_file($node->logfile, $offset) =~ /bait (\w+) refused with (\w{5})/g;
		is( join(' ', map { "$_ " . ($refused{$_} // 'not tried') } sort keys %bait),
			$refusals,
			"C61: $statement: every function refuses");
		is(sprung($offset), '', "C61: $statement: no bait is taken");
	}

	# autovacuum comes by itself.
	my $offset = -s $node->logfile;
	sql('ALTER TABLE trap.bait SET (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0)');
	($out, $err) = psql_as('mallory', q{SET search_path = pg_catalog; CREATE OR REPLACE FUNCTION trap.take(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'; INSERT INTO trap.bait SELECT generate_series(1, 3000);}
		  . $take);
	is($err, '', 'rows for autovacuum');
	$node->poll(q{SELECT last_autoanalyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'bait'});
	my %refused = slurp_file($node->logfile, $offset) =~ /bait (\w+) refused with (\w{5}) by ""/g;
	is( join(' ', map { "$_ " . ($refused{$_} // 'not tried') } sort keys %bait),
		$refusals,
		'C61: autovacuum: every function refuses');
	is(sprung($offset), '', 'C61: autovacuum: no bait is taken');
	is(sql(q{SELECT (SELECT count(*) FROM evidence.audit_log), (SELECT count(*) FROM evidence.export_event), (SELECT count(*) FROM evidence.capability), (SELECT count(*) FROM evidence.redaction_rule)}),
		$before, 'C61: and nothing has changed');
}

# Workers: the database's owner has set everything for everybody.
{
	foreach my $setting (split /\n/, $settings)
	{
		$setting =~ s/^SET/ALTER DATABASE postgres SET/;
		sql($setting);
	}
	sql('ALTER DATABASE postgres SET search_path = trap, pg_catalog, evidence');
	my $offset = -s $node->logfile;

	# A new launcher, so that it takes the settings up.
	$node->restart;
	$node->write_settings(debug_pause => '');
	$node->reload;
	$node->wait_for_log(qr/pg_evidence launcher serves/, $offset);
	my $quiet = 'SET search_path = pg_catalog, evidence;';
	my $id = sql("$quiet SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'for the worker')");
	$id =~ s/\s//g;
	foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if sql("$quiet SELECT state FROM evidence.audit_export WHERE id = '$id'") =~ /READY|FAILED/;
		Time::HiRes::usleep(100_000);
	}
	is(sql("$quiet SELECT state, record_count FROM evidence.audit_export WHERE id = '$id'"),
		'READY|300', 'C61: workers of a hostile database make the export');
	is(sql("$quiet SELECT count(*) FROM evidence.verify_audit_export('$id') WHERE NOT ok"),
		0, 'C61: and it is right');
	is(sprung($offset), '', 'C61: and no trap springs');
	like(slurp_file($node->logfile, $offset), qr/export \Q$id\E is ready/, 'an exporter made it');
}

$node->stop;
done_testing();
