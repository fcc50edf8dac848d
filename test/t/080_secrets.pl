# Secrets that somebody wrote into the log, a request or an error message, and
# those of the extension itself, end up nowhere else: not in a package, not in
# the tables and views of the extension, not in the server log at its most
# talkative, not in a file.
#
# The contract keeps purpose, filters and key as they were given, and a grant
# its reason, in columns that only the owner reads; all else is searched.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();

# One needle for each place, so that a leak tells where it comes from.
my %needle = (
	actor => 'Nk4Xw8Tq01',
	role => 'Nk4Xw8Tq02',
	action => 'Nk4Xw8Tq03',
	type => 'Nk4Xw8Tq04',
	target => 'Nk4Xw8Tq05',
	code => 'Nk4Xw8Tq06',
	request => 'Nk4Xw8Tq07',
	summary => 'Nk4Xw8Tq08',
	tenant => 'Nk4Xw8Tq09',
	metadata => 'Nk4Xw8Tq10',
	purpose => 'Nk4Xw8Tq11',
	filter => 'Nk4Xw8Tq12',
	download => 'Nk4Xw8Tq13',
	cancel => 'Nk4Xw8Tq14',
	key => 'Nk4Xw8Tq15',
	message => 'Nk4Xw8Tq16',
	detail => 'Nk4Xw8Tq17',
	hint => 'Nk4Xw8Tq18',
	fingerprint => 'Nk4Xw8Tq19Nk4Xw8Tq19',
	source => '203.0.113.77');

append_to_file("$folder/fingerprint.key", "k1:$needle{fingerprint}\n");
chmod 0600, "$folder/fingerprint.key";

my $node = EvidenceNode->new('main', max_active_per_requester => 100,
	max_attempts => 1,
	fingerprint_key_file => "$folder/fingerprint.key");
# The server logs no statement of a user here, for those may quote anything;
# what is left in the log are lines of its own processes.
$node->append_conf('postgresql.conf', <<~'CONF');
	log_statement = none
	log_min_messages = debug5
	log_min_error_statement = panic
	log_error_verbosity = verbose
	log_temp_files = 0
	log_autovacuum_min_duration = 0
	log_lock_waits = on
	CONF
$node->start;
$node->create_extension;
$node->safe_psql('postgres', <<~'SQL');
	CREATE ROLE app LOGIN;
	SELECT evidence.grant_capability('app', 'writer');
	CREATE ROLE anna LOGIN;
	SELECT evidence.grant_capability('anna', 'requester');
	SQL

# The rows come from a file.  COPY quotes its line in whatever the server says
# meanwhile, so this session of a user lets it say less.
append_to_file("$folder/rows.csv", join(',',
	map { "\"x password=$_\"" } @needle{qw(tenant actor role action type target code request summary)})
	  . ",\"{\"\"k\"\": \"\"password=$needle{metadata}\"\"}\"\n");
$node->safe_psql('postgres', "SET log_min_messages = warning; COPY evidence.audit_log (tenant_id, actor_id, actor_role, action, target_type, target_id, error_code, request_id, summary, metadata) FROM '$folder/rows.csv' (FORMAT csv)");
append_to_file("$folder/source.sql",
	"SELECT evidence.record_audit_event('session.login', 'anna', source => '$needle{source}');\n"
	  . "SELECT evidence.fingerprint('$needle{source}');\n");

sub run_as
{
	my ($role, $file) = @_;
	my ($out, $err) = ('', '');
	local %ENV = $node->_get_env(PGDATABASE => 'postgres', PGUSER => $role);

	IPC::Run::run([ 'psql', '-XqAt', '-f', $file ], '>', \$out, '2>', \$err);
	is($err, '', 'no error');
	return $out;
}

sub program_as
{
	my ($role, @arguments) = @_;
	local $ENV{PGUSER} = $role;

	return $node->program(@arguments);
}

like(run_as('app', "$folder/source.sql"), qr/^k1:[0-9a-f]{64}$/m,
	'S1.45: a source becomes a fingerprint');

# A request with secrets in all its texts, carried out and downloaded.  The
# program sends them as parameters.
my $start = $node->safe_psql('postgres', "SELECT now() - interval '1 day'");
my $end = $node->safe_psql('postgres', "SELECT now() + interval '1 day'");
my @request = ('request', "--start=$start", "--end=$end");
my $zip = "$folder/first.zip";
my ($code, $out, $err) = program_as('anna', @request,
	"--purpose=review token=$needle{purpose} today",
	"--key=key password=$needle{key}", '-o', $zip);
is($code, 0, 'an export with secrets in its request is made') || diag($err);
my $all = "$out $err";

my $filtered = "$folder/filtered.zip";
($code, $out, $err) = program_as('anna', @request, '--purpose=filter',
	"--filter=actor_id=x password=$needle{actor}",
	"--filter=actor_id=y password=$needle{filter}", '-o', $filtered);
is($code, 0, 'an export with secrets in its filter is made') || diag($err);
$all .= "$out $err";

my $id = manifest_of($zip)->{export_id};
($code, $out, $err) = program_as('anna', 'download', $id, '-o', "$folder/again.zip",
	"--reason=asked by token=$needle{download}");
is($code, 0, 'it is downloaded again') || diag($err);
$all .= "$out $err";

# One that is cancelled.
$node->set(max_exporters => 0);
my ($queued) = (program_as('anna', @request, '--purpose=cancelled', '-q'))[1];
chomp $queued;
($code, $out, $err) = program_as('anna', 'cancel', $queued, "--reason=wrong password=$needle{cancel}");
is($code, 0, 'one is cancelled') || diag($err);
$all .= "$out $err";

# One whose attempt fails with a message that repeats what it should not.
# Its texts come from a table, since the server may log the source of a
# function.
append_to_file("$folder/trap.csv",
	"could not put https://u:$needle{message}\@store.invalid/o,"
	  . "The answer was: token=$needle{detail},Try again with password=$needle{hint}\n");
append_to_file("$folder/trap.sql", <<"SQL");
	CREATE TABLE public.trap_text (message text, detail text, hint text);
	COPY public.trap_text FROM '$folder/trap.csv' (FORMAT csv);
	CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS \$\$
	DECLARE
		t public.trap_text;
	BEGIN
		SELECT * INTO t FROM public.trap_text;
		RAISE EXCEPTION '%', t.message USING DETAIL = t.detail, HINT = t.hint;
	END \$\$;
	CREATE TRIGGER trap BEFORE INSERT ON evidence.archive_chunk FOR EACH ROW EXECUTE FUNCTION public.trap();
SQL
run_as($node->safe_psql('postgres', 'SELECT current_user'), "$folder/trap.sql");
$node->set(max_exporters => 1);
my ($failing) = (program_as('anna', @request, '--purpose=failing', '-q'))[1];
chomp $failing;
$node->wait_state($failing, 'FAILED');
like($node->safe_psql('postgres', "SELECT error_message || ' ' || coalesce(error_hint, '') FROM evidence.audit_export_status WHERE id = '$failing'"),
	qr/store\.invalid.*Try again/, 'C33: the error of a failed attempt and its hint are kept');
($code, $out, $err) = program_as('anna', 'show', $failing);
$all .= "$out $err";
($code, $out, $err) = program_as('anna', 'wait', $failing);
is($code, 10, 'the program tells that it failed');
$all .= "$out $err";

# The same in a session, where an error could reach the client.
my $session = $node->safe_psql('postgres',
	"SELECT evidence.request_audit_export('$start', '$end', 'failing', 'session')");
$node->set(max_exporters => 0);
$node->psql('postgres', 'CALL evidence.run_once()', stderr => \$err);
$all .= $err;
$node->safe_psql('postgres', 'DROP FUNCTION public.trap CASCADE');

# A grant opens an archive, so it is a secret as well.
my $grant = $node->safe_psql('postgres', "SELECT evidence.grant_audit_export_download('$id')");
$needle{grant} = $grant;
like($grant, qr/^[0-9a-f]{64}$/, 'there is a grant');
$node->safe_psql('postgres', "SELECT length((evidence.fetch_audit_export('$grant')).data)");

# The files of an attempt that is under way.
$node->set(max_exporters => 1, debug_pause => 'stored');
my $offset = -s $node->logfile;
my ($paused) = (program_as('anna', @request, '--purpose=paused', '-q'))[1];
$node->wait_for_log(qr/pauses at "stored"/, $offset);
my $files = join '', map { bytes_of($_) } glob($node->data_dir . '/base/pgsql_tmp/*');
cmp_ok(length $files, '>', 500, 'an attempt has temporary files');
my $activity = $node->safe_psql('postgres', 'SELECT string_agg(a::text, chr(10)) FROM pg_stat_activity AS a WHERE pid <> pg_backend_pid()');
$node->set(debug_pause => '');
chomp $paused;
$node->wait_state($paused, 'READY');

# Now everything is searched for every needle.
sub search_text
{
	my ($where, $text, @allowed) = @_;
	my %skip = map { $_ => 1 } @allowed;
	my @found = grep { !$skip{$_} && index($text, $needle{$_}) >= 0 } sort keys %needle;

	return is("@found", '', $where);
}

search_text("9.7: no secret in a package: $_",
	member_of("$folder/$_.zip", 'records.csv') . member_of("$folder/$_.zip", 'manifest.json')
	  . bytes_of("$folder/$_.zip"))
  foreach qw(first filtered again);
search_text('9.7: no secret in what the program printed', $all);
search_text('C33: no secret in the temporary files of an attempt', $files);
search_text('9.7: no secret in pg_stat_activity', $activity);
like(member_of($zip, 'manifest.json'), qr/review token=\[redacted:\w+\] today/,
	'C33: the purpose is redacted in the manifest');
is_deeply(manifest_of($filtered)->{filters}{actor_id},
	[ 'x password=[redacted:password]', 'y password=[redacted:password]' ],
	'C33: the filter is redacted in the manifest');
is(scalar @{ records_of($filtered) }, 1, 'C33: and selects by the real text');

# Tables and views, but for the columns that keep a user's own text.
my %own_text = (
	'audit_export.purpose' => ['purpose'],
	'audit_export.filters' => [ 'actor', 'filter' ],
	'audit_export.idempotency_key' => ['key'],
	'download_grant.reason' => ['download']);
my @columns = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', <<~'SQL');
	SELECT c.relname, a.attname
	  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
	 WHERE c.relnamespace = 'evidence'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')
	   AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'audit_log'
	 ORDER BY 1, 2
	SQL
cmp_ok(scalar @columns, '>', 100, 'there are columns to search');
my @leaks;
foreach my $column (@columns)
{
	my ($table, $name) = @$column;
	my %skip = map { $_ => 1 } @{ $own_text{"$table.$name"} // [] };
	my $text = $node->safe_psql('postgres',
		qq{SELECT string_agg("$name"::text, chr(10)) FROM evidence."$table"});

	push @leaks, "$table.$name: $_"
	  foreach grep { !$skip{$_} && index($text, $needle{$_}) >= 0 } sort keys %needle;
}
is(join(', ', @leaks), '', '9.7: no secret in a table or view of the extension');
is($node->safe_psql('postgres', "SELECT count(*) FROM evidence.audit_log AS l WHERE l::text LIKE '%$needle{source}%'"),
	0, 'S1.45: the log holds no raw source');

# The server log.
$node->stop;
my $log = slurp_file($node->logfile);
like($log, qr/export \Q$id\E is ready/, 'the server log tells about the export');
like($log, qr/attempt 1 of export \Q$failing\E failed: .*store\.invalid/,
	'the server log tells why an attempt failed');
search_text('9.7: no secret in the server log, however talkative', $log);

done_testing();
