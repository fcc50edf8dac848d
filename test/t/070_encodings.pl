# Databases that are not UTF-8.  A package always is: bytes without meaning
# become U+FFFD and are counted, characters are converted, and nothing that
# the log can hold makes a process crash or a package wrong.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();

# Runs a query through a file, so that its bytes reach the server unchanged.
sub run_bytes
{
	my ($node, $sql, %options) = @_;
	my $file = "$folder/bytes.sql";
	my ($out, $err) = ('', '');

	open my $handle, '>:raw', $file or die "could not create $file: $!";
	print $handle $sql;
	close $handle;
	local %ENV = $node->_get_env(PGDATABASE => 'postgres',
		PGCLIENTENCODING => $options{client} // 'SQL_ASCII');
	IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-f', $file ],
		'<', \undef, '>', \$out, '2>', \$err);
	die "psql: $err" if $err ne '' && !$options{may_fail};
	chomp $out;
	return $options{may_fail} ? ($out, $err) : $out;
}

sub start_node
{
	my ($name, $encoding) = @_;
	my $node = EvidenceNode->new($name, encoding => $encoding,
		max_active_per_requester => 100);

	$node->start;
	$node->create_extension;
	return $node;
}

my $request = q{SELECT evidence.request_audit_export(now() - interval '1 day', now() + interval '1 minute'};

# SQL_ASCII: any bytes.
{
	my $node = start_node('ascii', 'SQL_ASCII');
	my @cases = (
		# what is stored, what must be in the package
		[ '\xff', "\x{fffd}" ],
		[ 'a\xffb', "a\x{fffd}b" ],
		[ '\xed\xa0\xbd', "\x{fffd}\x{fffd}\x{fffd}" ],
		[ '\xc0\x80', "\x{fffd}\x{fffd}" ],
		[ '\xe2\x82', "\x{fffd}\x{fffd}" ],
		[ 'end\xf0\x9f\x98', "end\x{fffd}\x{fffd}\x{fffd}" ],
		[ '\xf5\x80\x80\x80', "\x{fffd}" x 4 ],
		[ '\xf4\x90\x80\x80', "\x{fffd}" x 4 ],
		[ '\x80', "\x{fffd}" ],
		[ 'caf\xe9', "caf\x{fffd}" ],
		[ 'caf\xc3\xa9', "caf\x{e9}" ],
		[ '\xf0\x9f\x98\x80', "\x{1f600}" ],
		[ '\xe9=1+1', "\x{fffd}=1+1" ],
		[ '\xff\x01=1+1', "\x{fffd} =1+1" ],
		[ '=\xff', "'=\x{fffd}" ],
		[ 'x, \xff"', "x, \x{fffd}\"" ],
		[ '\xff password=Zt5nWq8LkX', "\x{fffd} password=[redacted:password]" ]);
	my $values = join ', ',
	  map { "('case-$_', E'$cases[$_][0]')" } 0 .. $#cases;

	$node->safe_psql('postgres',
		"INSERT INTO evidence.audit_log (actor_id, action, summary) SELECT k, 'bytes.write', v FROM (VALUES $values) AS t(k, v)");
	my $id = $node->export(filters => '{"action": ["bytes.*"]}');
	my $zip = "$folder/ascii.zip";
	$node->export_to_file($id, $zip);
	package_ok($node, $zip, 'SQL_ASCII');
	cells_ok($node, $zip, q{action = 'bytes.write'}, 'C16: SQL_ASCII');
	my %summary = map { $_->{actor_id} => $_->{summary} } @{ records_of($zip) };
	# A planted secret stands in no output, not even in the name of its test.
	is($summary{"case-$_"}, $cases[$_][1], 'C16: SQL_ASCII: ' . $cases[$_][0] =~ s/password=\K.*/.../r)
	  foreach 0 .. $#cases;
	is(manifest_of($zip)->{cells}{cleaned},
		scalar(grep { $_->[1] =~ /\x{fffd}/ } @cases),
		'C16: cells with replaced bytes are counted');
	ok(index(member_of($zip, 'records.csv'), 'Zt5nWq8LkX') < 0,
		'C16: a secret behind a broken byte is found');

	# What the request itself says.
	run_bytes($node, "INSERT INTO evidence.audit_log (actor_id, action) VALUES ('jos\xc3\xa9', 'name.utf'), ('jos\xe9', 'name.latin')");
	my $named = run_bytes($node,
		qq{$request, 'pr\xc3\xbcfung', filters => '{"actor_id": ["jos\xc3\xa9"]}')});
	$node->wait_state($named, 'READY');
	$node->export_to_file($named, $zip);
	package_ok($node, $zip, 'SQL_ASCII with UTF-8 in the request');
	is(manifest_of($zip)->{purpose}, "pr\x{fc}fung", 'SQL_ASCII: the purpose is UTF-8');
	is_deeply([ map { $_->{action} } @{ records_of($zip) } ],
		['name.utf'], 'SQL_ASCII: a filter compares bytes');

	foreach my $case (
		[ 'purpose', "$request, 'pr\xfcfung')" ],
		[ 'filter', qq{$request, 'p', filters => '{"actor_id": ["jos\xe9"]}')} ],
		[ 'key', "$request, 'p', 'key \xe9')" ],
		[ 'role', qq{CREATE ROLE "j\xe9" LOGIN; SELECT evidence.grant_capability('"j\xe9"', 'requester'); SET ROLE "j\xe9"; $request, 'p')} ])
	{
		my ($what, $sql) = @$case;
		my ($out, $err) = run_bytes($node, $sql, may_fail => 1);

		if ($err ne '')
		{
			like($err, qr/ERROR:\s+22/, "C16: SQL_ASCII: broken bytes in the $what are refused")
			  || diag($err);
			next;
		}
		# Accepted, so it must come to a valid package.
		my ($broken) = $out =~ /([0-9a-f-]{36})$/;
		$node->wait_state($broken, 'READY');
		$node->export_to_file($broken, $zip);
		package_ok($node, $zip, "SQL_ASCII with broken bytes in the $what");
	}
	ok(!$node->log_contains(qr/PANIC|terminated by signal/), 'SQL_ASCII: no process died');
	$node->stop;
}

# LATIN1: characters of one byte, controls above 0x7f among them.
{
	my $node = start_node('latin', 'LATIN1');

	run_bytes($node, <<~"SQL", client => 'LATIN1');
		INSERT INTO evidence.audit_log (actor_id, action, summary)
		VALUES ('jos\xe9', 'latin.write', 'caf\xe9 \xdf\xe0\xff'),
		       ('jose', 'latin.write', E'one\x85two'),
		       ('nbsp', 'latin.write', '\xa0=1+1'),
		       ('shy', 'latin.write', 'password=Gn\xad4kWt7Xz')
		SQL
	my $id = run_bytes($node,
		qq{$request, 'pr\xfcfung \xa7 5', filters => '{"actor_id": ["jos\xe9"]}')},
		client => 'LATIN1');
	my $zip = "$folder/latin.zip";
	$node->wait_state($id, 'READY');
	$node->export_to_file($id, $zip);
	package_ok($node, $zip, 'LATIN1');
	is_deeply([ map { $_->{summary} } @{ records_of($zip) } ],
		["caf\x{e9} \x{df}\x{e0}\x{ff}"], 'LATIN1: characters arrive as UTF-8');
	is(manifest_of($zip)->{purpose}, "pr\x{fc}fung \x{a7} 5", 'LATIN1: the purpose, too');
	is_deeply(manifest_of($zip)->{filters}, { actor_id => ["jos\x{e9}"] },
		'LATIN1: and the filters');

	# A role whose name is not ASCII.
	my $by = run_bytes($node, <<~"SQL", client => 'LATIN1');
		CREATE ROLE "jos\xe9" LOGIN;
		SELECT evidence.grant_capability('"jos\xe9"', 'requester');
		SET ROLE "jos\xe9";
		$request, 'p', filters => '{"action": ["latin.*"]}')
		SQL
	($by) = $by =~ /([0-9a-f-]{36})$/;
	$node->wait_state($by, 'READY');
	$node->export_to_file($by, $zip);
	package_ok($node, $zip, 'LATIN1 by a role with an accent');
	cells_ok($node, $zip, q{action = 'latin.write'}, 'C16: LATIN1');
	is(manifest_of($zip)->{requested_by}, "jos\x{e9}", 'LATIN1: the requester, too');
	my %summary = map { $_->{actor_id} => $_->{summary} } @{ records_of($zip) };
	is($summary{jose}, 'one two', 'C11: LATIN1: a control above ASCII is cleaned');
	is($summary{nbsp}, "'\x{a0}=1+1", 'C03: LATIN1: a blank above ASCII hides no formula');
	unlike($summary{shy}, qr/4kWt7Xz/, 'C28: LATIN1: a soft hyphen hides no secret');

	# The program speaks UTF-8 with every database.
	my ($code, $out, $err) = $node->program('request', '--start=2026-01-01T00:00Z',
		'--end=2026-01-02T00:00Z', "--purpose=gr\xc3\xbc\xc3\x9fe", '--wait', '--json');
	is($code, 0, 'LATIN1: the program requests') || diag($err);
	is(JSON::PP->new->utf8->decode($out)->{export}{purpose},
		"gr\x{fc}\x{df}e", 'LATIN1: and gets its purpose back');
	($code, $out, $err) = $node->program('request', '--start=2026-01-01T00:00Z',
		'--end=2026-01-02T00:00Z', "--purpose=\xe6\xbc\xa2", '--json');
	is($code, 4, 'LATIN1: a purpose that the database cannot hold is refused') || diag("$out $err");
	$node->stop;
}

# WIN1252 has bytes without a meaning, and PostgreSQL stores them.
{
	my $node = start_node('windows', 'WIN1252');

	run_bytes($node, "INSERT INTO evidence.audit_log (actor_id, action, summary) VALUES ('a', 'good.write', 'price \x80 5'), ('a', 'odd.write', 'odd \x81 byte')",
		client => 'WIN1252');
	my $id = $node->export(filters => '{"action": ["good.*"]}');
	my $zip = "$folder/windows.zip";
	$node->export_to_file($id, $zip);
	package_ok($node, $zip, 'WIN1252');
	cells_ok($node, $zip, q{action = 'good.write'}, 'C16: WIN1252');
	is(records_of($zip)->[0]{summary}, "price \x{20ac} 5", 'WIN1252: characters arrive as UTF-8');

	$id = $node->request(filters => '{"action": ["odd.*"]}');
	$node->poll("SELECT state IN ('READY', 'FAILED') FROM evidence.audit_export WHERE id = '$id'");
	if ($node->export_state($id) eq 'READY')
	{
		$node->export_to_file($id, $zip);
		package_ok($node, $zip, 'WIN1252 with a byte without meaning');
		like(records_of($zip)->[0]{summary}, qr/\x{fffd}/, 'C16: WIN1252: it is replaced visibly');
	}
	else
	{
		my $row = $node->safe_psql('postgres', q{SELECT id FROM evidence.audit_log WHERE action = 'odd.write'});
		like($node->safe_psql('postgres', "SELECT error_message FROM evidence.audit_export_status WHERE id = '$id'"),
			qr/\b$row\b/, 'C16: WIN1252: the export fails with the id of the row');
	}
	$node->stop;
}

# EUC_JP: characters of several bytes, whose second half looks like ASCII to
# nobody, and half-width forms.
{
	my $node = start_node('japan', 'EUC_JP');

	run_bytes($node, "INSERT INTO evidence.audit_log (actor_id, action, summary) VALUES ('\xb4\xc1\xbb\xfa', 'kanji.write', '\xa1\xe11+1'), ('a', 'kanji.write', '\xa1\xa1=1')",
		client => 'EUC_JP');
	my $id = $node->export(filters => '{"action": ["kanji.*"]}');
	my $zip = "$folder/japan.zip";
	$node->export_to_file($id, $zip);
	package_ok($node, $zip, 'EUC_JP');
	cells_ok($node, $zip, q{action = 'kanji.write'}, 'EUC_JP');
	is_deeply([ map { $_->{summary} } @{ records_of($zip) } ],
		[ "'\x{ff1d}1+1", "'\x{3000}=1" ], 'C05: EUC_JP: full-width formulas are guarded');
	$node->stop;
}

done_testing();
