# The edges of a contract: how many rows, which times, which filters, which
# columns.  Nothing is cut in silence, nothing is doubled, nothing is missing.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $node = EvidenceNode->new('main', max_active_per_requester => 1000,
	max_exporters => 2);
$node->start;
$node->create_extension;

sub value_of
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub literal
{
	my ($text) = @_;

	$text =~ s/'/''/g;
	return "'$text'";
}

# SQLSTATE of a request that must fail.
sub refusal
{
	my (%arguments) = @_;
	my $list = join ', ',
	  map { "$_ => " . literal($arguments{$_}) } sort keys %arguments;
	my ($out, $err) = ('', '');

	$node->psql('postgres',
		"\\set VERBOSITY sqlstate\nSELECT evidence.request_audit_export($list, purpose => 'refused')",
		stdout => \$out, stderr => \$err);
	return $err =~ /ERROR:\s+(\w{5})/ ? $1 : "no error: $out $err";
}

# Requests, waits, downloads; returns the file.  The usual range is asked for
# only once.
my ($from, $to) = split /\|/,
  value_of(q{SELECT now() - interval '720 hours', now() + interval '23 hours'});

sub export_zip
{
	my (%arguments) = @_;
	my $id = $node->export(start_at => $from, end_at => $to, %arguments);

	$node->export_to_file($id, "$folder/$id.zip");
	return "$folder/$id.zip";
}

sub ids_of
{
	my ($zip) = @_;

	return [ map { $_->{id} } @{ records_of($zip) } ];
}

# 50,000 rows are the default limit.
{
	my $insert = sub {
		my ($rows) = @_;
		$node->safe_psql('postgres', <<~"SQL");
			INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
			SELECT date_trunc('hour', now()) - interval '40 hours' + n * interval '1 second', 'many', 'a', 'count.me'
			  FROM generate_series(1, $rows) AS n
			SQL
	};
	my @what = (filters => '{"tenant_id": ["many"]}');

	$insert->(49999);
	my $id = $node->export(@what);
	is(value_of("SELECT record_count FROM evidence.audit_export_status WHERE id = '$id'"),
		49999, 'C40: 49,999 rows are exported');

	$insert->(1);
	$id = $node->export(@what);
	is(value_of("SELECT record_count FROM evidence.audit_export_status WHERE id = '$id'"),
		50000, 'C40: 50,000 rows are exported');
	$node->export_to_file($id, "$folder/many.zip");
	package_ok($node, "$folder/many.zip", '50,000 rows');
	cells_ok($node, "$folder/many.zip", "tenant_id = 'many'", 'C40: 50,000 rows');

	$insert->(1);
	$id = $node->request(@what);
	$node->wait_state($id, 'FAILED');
	is(value_of("SELECT error_code, record_count FROM evidence.audit_export_status WHERE id = '$id'"),
		'PE002|50001', 'C40: 50,001 rows fail and the real number is told');
	like(value_of("SELECT error_message FROM evidence.audit_export_status WHERE id = '$id'"),
		qr/50001 records.*50000/, 'C40: the message tells it, too');
	is(value_of("SELECT count(*) FROM evidence.archive_chunk WHERE export_id = '$id'"),
		0, 'C40: nothing is left of it');
	is(value_of("SELECT attempts FROM evidence.background_job WHERE export_id = '$id'"),
		1, 'C40: it is not tried again');

	# The limit holds for what matches, not for what is looked at.
	my $zip = export_zip(filters => '{"tenant_id": ["many", "none"], "actor_id": ["b"]}');
	is(manifest_of($zip)->{record_count}, 0, 'C40: rows that do not match do not count');
}

# A thousand rows of one instant, and ties over every border of 100 rows.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
		SELECT date_trunc('hour', now()) - interval '5 hours', 'ties', 'instant', 'n.' || n
		  FROM generate_series(1, 1000) AS n;
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
		SELECT date_trunc('hour', now()) - interval '4 hours' + (n / 7) * interval '1 microsecond', 'ties', 'sevens', 'n.' || n
		  FROM generate_series(1, 1500) AS n ORDER BY n % 11, n;
		SQL
	my $zip = export_zip(filters => '{"tenant_id": ["ties"]}');
	package_ok($node, $zip, 'ties');
	cells_ok($node, $zip, "tenant_id = 'ties'", 'C39: rows of equal times');

	my @ids = @{ ids_of($zip) };
	my %seen = map { $_ => 1 } @ids;
	is(scalar @ids, 2500, 'C39: each row is there');
	is(scalar keys %seen, 2500, 'C39: and once only');

	# The end of one range and the start of the next are that very instant.
	my ($before, $instant, $behind) = split /\|/, value_of(<<~'SQL');
		SELECT t - interval '1 hour', t, t + interval '1 microsecond'
		  FROM (SELECT DISTINCT created_at FROM evidence.audit_log WHERE actor_id = 'instant') AS at(t)
		SQL
	my @of_ties = (filters => '{"tenant_id": ["ties"]}');
	is(manifest_of(export_zip(@of_ties, start_at => $before, end_at => $instant))->{record_count},
		0, 'C20: none of a thousand rows at the end of a range is in it');
	$zip = export_zip(@of_ties, start_at => $instant, end_at => $behind);
	is(manifest_of($zip)->{record_count}, 1000, 'C20: and all that are at its start');
	cells_ok($node, $zip, "tenant_id = 'ties' AND action LIKE 'n.%' AND actor_id = 'instant'",
		'C39: a thousand rows of one microsecond');
}

# Ends of the range, to the microsecond.
{
	my $t = '2026-03-10 12:00:00.000000+00';
	$node->safe_psql('postgres', <<~"SQL");
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
		SELECT timestamptz '$t' + n * interval '1 microsecond', 'ends', 'a', 'n.' || n
		  FROM generate_series(-50, 50) AS n
		SQL
	my @what = (filters => '{"tenant_id": ["ends"]}');
	my $zip = export_zip(@what,
		start_at => '2026-03-10 12:00:00.000000+00', end_at => '2026-03-10 12:00:00.000001+00');
	is_deeply([ map { $_->{action} } @{ records_of($zip) } ],
		['n.0'], 'C20: the start belongs to the range, the end does not');
	is_deeply(manifest_of($zip)->{range},
		{ start => '2026-03-10T12:00:00.000000Z', end => '2026-03-10T12:00:00.000001Z' },
		'C20: the manifest has the range to the microsecond');

	my @borders = ('11:59:59.999950', '11:59:59.999999', '12:00:00', '12:00:00.000007',
		'12:00:00.00002', '12:00:00.000051');
	my @ids;
	foreach my $i (1 .. $#borders)
	{
		push @ids, @{
			ids_of(
				export_zip(@what,
					start_at => "2026-03-10 $borders[$i - 1]+00",
					end_at => "2026-03-10 $borders[$i]+00"))
		};
	}
	is( join(',', @ids),
		value_of(q{SELECT string_agg(id::text, ',' ORDER BY created_at, id) FROM evidence.audit_log WHERE tenant_id = 'ends'}),
		'C20: neighbouring ranges give every row once');
}

# An empty range of rows is a package like any other.
{
	my $zip = export_zip(start_at => '2020-01-01 00:00+00', end_at => '2020-01-02 00:00+00');
	my $manifest = manifest_of($zip);

	package_ok($node, $zip, 'no rows');
	is(member_of($zip, 'records.csv'),
		join(',', @EvidencePackage::columns) . "\r\n", 'C36: no rows: the header line is there');
	is($manifest->{record_count}, 0, 'C36: no rows: the count is 0');
	ok(!defined $manifest->{first} && !defined $manifest->{last},
		'C36: no rows: there is no first and no last one');
	reference_ok($zip, rows_to_file($node, 'false'), 'no rows');
}

# Days are 24 hours whatever the session's zone says.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
		SELECT t, 'zone', 'a', 'half.hour'
		  FROM generate_series(timestamptz '2026-03-01 00:00+00', '2026-11-10 00:00+00', interval '30 minutes') AS t
		SQL
	local $ENV{PGTZ} = 'Europe/Berlin';
	is(refusal(start_at => '2026-10-05 00:00', end_at => '2026-11-05 00:00'),
		'22023', 'C20: 31 days with a 25th hour are too long');
	my $zip = export_zip(start_at => '2026-10-05 00:00', end_at => '2026-11-04 23:00',
		filters => '{"tenant_id": ["zone"]}');
	is(manifest_of($zip)->{record_count}, 31 * 48, 'C20: 744 hours over the end of summer time are complete');
	cells_ok($node, $zip, q{tenant_id = 'zone' AND created_at >= '2026-10-04 22:00+00' AND created_at < '2026-11-04 22:00+00'},
		'C20: over the end of summer time');
	$zip = export_zip(start_at => '2026-03-05 00:00', end_at => '2026-04-05 00:00',
		filters => '{"tenant_id": ["zone"]}');
	is(manifest_of($zip)->{record_count}, 31 * 48 - 2, 'C20: 31 days less an hour over its begin');
}

# Times that are none.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action)
		VALUES ('infinity', 'never', 'a', 'in.finite'), ('-infinity', 'never', 'a', 'in.finite'),
		       ('0044-03-15 12:00 BC', 'old', 'a', 'ides'), ('12026-01-01 00:00+00', 'far', 'a', 'future'),
		       ('1890-01-01 00:00+00', 'old', 'a', 'before.zones')
		SQL
	is(refusal(start_at => $_->[0], end_at => $_->[1]), '22023', "C18: refused: $_->[0] to $_->[1]")
	  foreach [ '-infinity', '2026-01-01' ], [ '2026-01-01', 'infinity' ],
	  [ '-infinity', 'infinity' ], [ '2026-01-02', '2026-01-01' ], [ '2026-01-01', '2026-01-01' ];

	my $zip = export_zip(filters => '{"tenant_id": ["never"]}');
	is(manifest_of($zip)->{record_count}, 0, 'C18: rows of infinite times are in no range');

	my %form = (
		'0044-03-15 00:00 BC' => '-0043-03-15T12:00:00.000000Z',
		'12026-01-01 00:00' => '+12026-01-01T00:00:00.000000Z',
		'1890-01-01 00:00' => '1890-01-01T00:00:00.000000Z');
	local $ENV{PGTZ} = 'UTC';
	foreach my $from (sort keys %form)
	{
		$zip = export_zip(
			start_at => $from,
			end_at => value_of("SELECT timestamptz '$from' + interval '24 hours'"));
		is_deeply([ map { $_->{created_at} } @{ records_of($zip) } ],
			[ $form{$from} ], "C18: the form of $from is unmistakable");
	}
}

# Ids that readers of JSON would round.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (id, created_at, tenant_id, actor_id, action)
		OVERRIDING SYSTEM VALUE
		VALUES (9007199254740993, now() - interval '2 hours', 'big', 'a', 'big.id'),
		       (9223372036854775807, now() - interval '1 hour', 'big', 'a', 'big.id')
		SQL
	my $zip = export_zip(filters => '{"tenant_id": ["big"]}');
	package_ok($node, $zip, 'large ids');
	cells_ok($node, $zip, q{tenant_id = 'big'}, 'C36: large ids');
	is_deeply([ map { manifest_of($zip)->{$_}{id} } qw(first last) ],
		[ '9007199254740993', '9223372036854775807' ], 'C36: the manifest keeps every digit of them');
}

# Filters of every kind.  The conditions beside them are written for this
# test and share nothing with those of the extension.
{
	$node->safe_psql('postgres', <<~'SQL');
		INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, target_type, target_id, outcome, error_code)
		SELECT now() - interval '1 hour' + row_number() OVER () * interval '1 millisecond', 'f',
		       actor, action, type, target, outcome, code
		  FROM unnest(ARRAY['anna', 'bob', 'o''hara', 'Ärger "x"', 'b\s', 'an%a']) AS actor,
		       unnest(ARRAY['order.read', 'order.write', 'order', 'orders.read', 'order.read.all', 'o_der.read', 'ord%.read', 'ORDER.read', '*.x', '.*', 'a.*b']) AS action,
		       unnest(ARRAY['order', NULL]) AS type,
		       unnest(ARRAY['1', '', NULL]) AS target,
		       unnest(ARRAY['success', 'failure', 'denied']) AS outcome,
		       unnest(ARRAY['E1', NULL]) AS code
		SQL
	my @cases = (
		[ '{"actor_id": ["anna"]}', q{actor_id = 'anna'} ],
		[ '{"actor_id": "anna"}', q{actor_id = 'anna'} ],
		[ '{"actor_id": ["anna", "bob", "anna", "nobody"]}', q{actor_id = 'anna' OR actor_id = 'bob'} ],
		[ '{"actor_id": ["o\'hara", "Ärger \"x\"", "b\\\\s"]}', q{actor_id LIKE 'o''%' OR actor_id LIKE 'Ä%' OR actor_id LIKE 'b\\\\s'} ],
		[ '{"actor_id": ["an%a"]}', q{actor_id LIKE 'an\%a'} ],
		[ '{"actor_id": [""]}', 'false' ],
		[ '{"action": ["order.read"]}', q{action = 'order.read'} ],
		[ '{"action": ["order.*"]}', q{starts_with(action, 'order.')} ],
		[ '{"action": ["o_der.*", "ord%.*"]}', q{action IN ('o_der.read', 'ord%.read')} ],
		[ '{"action": ["order.read.*", "orders.read"]}', q{action IN ('order.read.all', 'orders.read')} ],
		[ '{"action": ["*.x"]}', q{action = '*.x'} ],
		[ '{"action": ["a.*b"]}', q{action = 'a.*b'} ],
		[ '{"action": ["order"]}', q{action = 'order'} ],
		[ '{"target_type": ["order"]}', q{target_type = 'order'} ],
		[ '{"target_id": [""]}', q{target_id = ''} ],
		[ '{"target_id": ["1", ""]}', 'target_id IS NOT NULL' ],
		[ '{"outcome": ["failure", "denied"]}', q{outcome <> 'success'} ],
		[ '{"error_code": ["E1"]}', q{error_code = 'E1'} ],
		[ '{"actor_id": ["bob"], "action": ["order.*"], "target_type": ["order"], "target_id": ["1"], "outcome": ["denied"], "error_code": ["E1"]}',
			q{actor_id = 'bob' AND starts_with(action, 'order.') AND target_type = 'order' AND target_id = '1' AND outcome = 'denied' AND error_code = 'E1'} ]);

	foreach my $case (@cases)
	{
		my ($filters, $where) = @$case;
		(my $all = $filters) =~ s/\{/{"tenant_id": ["f"], /;
		my $zip = export_zip(filters => $all);
		is( join(',', @{ ids_of($zip) }),
			value_of("SELECT string_agg(id::text, ',' ORDER BY created_at, id) FROM evidence.audit_log WHERE tenant_id = 'f' AND ($where)"),
			"filter $filters");
	}
	is_deeply(
		manifest_of(export_zip(filters => '{"outcome": ["failure", "denied", "failure"], "actor_id": "bob", "tenant_id": ["f"]}'))->{filters},
		{ actor_id => ['bob'], outcome => [ 'denied', 'failure' ], tenant_id => ['f'] },
		'the manifest has the filters in canonical form');
}

# Columns: any of them, in the order of the source.
foreach my $case (
	[ '{actor_id}', 'actor_id' ],
	[ '{outcome,id,action}', 'id', 'action', 'outcome' ],
	[ '{created_at}', 'created_at' ],
	[ '{summary,error_code}', 'error_code', 'summary' ],
	[ '{actor_id,tenant_id,error_code,target_type,target_id,request_id,source_fingerprint,actor_role}',
		qw(tenant_id actor_id actor_role target_type target_id error_code request_id source_fingerprint) ])
{
	my ($wanted, @columns) = @$case;
	my $zip = export_zip(columns => $wanted, filters => '{"tenant_id": ["f"]}');

	is_deeply(manifest_of($zip)->{columns}, \@columns, "columns $wanted: in the order of the source");
	cells_ok($node, $zip, "tenant_id = 'f'", "columns $wanted", @columns);
}
# A record of one NULL would be an empty line, which many readers skip.
is(refusal(start_at => '2026-11-01', end_at => '2026-11-02', columns => '{summary}'),
	'22023', 'C13: a column that may be NULL is not exported alone');
is(refusal(start_at => '2026-11-01', end_at => '2026-11-02', columns => "{$_}"),
	'22023', "column $_ never leaves")
  foreach 'metadata', 'recorded_xid', 'nothing', 'id,id', '""', '"id "';

$node->stop;
done_testing();
