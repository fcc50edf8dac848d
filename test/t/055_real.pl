# Real events, when they are at hand: 60,000 of a Windows Security log, with
# tabs, line breaks and many equal times, and cloud API calls, which carry
# session tokens.  Every cell of every package is compared with the table.

use strict;
use warnings;

use EvidenceNode;
use EvidencePackage;
use PostgreSQL::Test::Utils;
use Test::More;

my $windows = EvidenceNode::shared_path('data/windows-security-events.jsonl.gz');
my $cloud = EvidenceNode::shared_path('data/cloudtrail-events.jsonl');

plan skip_all => 'no optional data' unless defined $windows && defined $cloud;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $node = EvidenceNode->new('main');
$node->start;
$node->create_extension;

# A line of JSON is one CSV value between two characters that none contains.
$node->safe_psql('postgres', <<"SQL");
	CREATE TABLE windows (n bigint GENERATED ALWAYS AS IDENTITY, event jsonb);
	COPY windows (event) FROM PROGRAM 'zcat $windows' (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02');
	CREATE TABLE cloud (n bigint GENERATED ALWAYS AS IDENTITY, event jsonb);
	COPY cloud (event) FROM '$cloud' (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02');

	CREATE TABLE shift AS
	SELECT date_trunc('hour', now()) - max((event->>'event_time')::timestamptz) AS by FROM windows;

	INSERT INTO evidence.audit_log
	       (created_at, tenant_id, actor_id, action, target_type, target_id, outcome,
	        error_code, request_id, metadata, summary)
	SELECT (event->>'event_time')::timestamptz + shift.by, event->>'host',
	       coalesce(event->>'actor', 'unknown'), 'security.' || (event->>'event_id'),
	       event->>'object_type', event->>'object_name', event->>'outcome',
	       event->>'status', event->>'logon_id', event, event->>'message'
	  FROM windows, shift ORDER BY n;

	INSERT INTO evidence.audit_log
	       (created_at, tenant_id, actor_id, action, target_type, target_id, request_id, summary)
	SELECT date_trunc('hour', now()) + ((event->>'\@timestamp')::timestamptz - max((event->>'\@timestamp')::timestamptz) OVER ()),
	       'cloud', coalesce(event->'userIdentity'->>'userName', event->'userIdentity'->>'type', 'unknown'),
	       'api.' || (event->>'eventName'),
	       event->>'eventSource', event->>'userAgent', event->>'requestID', event::text
	  FROM cloud;
	ANALYZE evidence.audit_log;
SQL

is($node->safe_psql('postgres', 'SELECT count(*) FROM windows'),
	60000, 'the events are there');

# A year of events in neighbouring ranges of 31 days, newest last.
my @ranges = split /\n/, $node->safe_psql('postgres', <<~'SQL');
	SELECT f || '|' || f + interval '744 hours'
	  FROM (SELECT min(created_at) AS first FROM evidence.audit_log) AS t,
	       generate_series(first, now(), interval '744 hours') AS f
	 WHERE EXISTS (SELECT FROM evidence.audit_log
	                WHERE created_at >= f AND created_at < f + interval '744 hours')
	SQL
my $records = 0;

foreach my $range (@ranges)
{
	my ($from, $to) = split /\|/, $range;
	my $id = $node->export(
		start_at => $from,
		end_at => $to,
		purpose => 'real events',
		columns => '{id,created_at,tenant_id,actor_id,actor_role,action,'
		  . 'target_type,target_id,outcome,error_code,request_id,summary}',
		filters => $node->safe_psql('postgres',
			q{SELECT json_build_object('tenant_id', json_agg(DISTINCT event->>'host')) FROM windows}));
	my $zip = "$folder/$id.zip";

	$node->export_to_file($id, $zip);
	my $manifest = manifest_of($zip);
	my $count = $manifest->{record_count};
	my $name = "$count real events";
	$records += $count;
	package_ok($node, $zip, $name);
	cells_ok($node, $zip,
		"created_at >= '$from' AND created_at < '$to' AND action LIKE 'security.%'",
		$name);
	note("cells: $_ $manifest->{cells}{$_}")
	  foreach sort keys %{ $manifest->{cells} };
}
is($records, 60000, 'C20: neighbouring ranges give every event once');

# The API calls.  Everything that the calls themselves name as a credential
# must be gone; what is no secret stays.
{
	my $id = $node->export(
		purpose => 'cloud calls',
		filters => '{"tenant_id": ["cloud"]}');
	my $zip = "$folder/cloud.zip";

	$node->export_to_file($id, $zip);
	package_ok($node, $zip, 'cloud calls');
	cells_ok($node, $zip, "tenant_id = 'cloud'", 'cloud calls');

	my $package = member_of($zip, 'records.csv') . member_of($zip, 'manifest.json');
	my @secrets = split /\n/, $node->safe_psql('postgres', <<~'SQL');
		SELECT DISTINCT s #>> '{}'
		  FROM cloud, unnest(ARRAY['accessKeyId', 'sessionToken', 'secretAccessKey']) AS key,
		       jsonb_path_query(event, ('$.**.' || key)::jsonpath) AS s
		SQL
	cmp_ok(scalar @secrets, '>=', 10, 'the calls hold credentials');
	is_deeply([ grep { index($package, $_) >= 0 } @secrets ],
		[], 'C23: none of them is in the package');

	my @ids = split /\n/, $node->safe_psql('postgres',
		q{SELECT event->>'eventID' FROM cloud UNION SELECT event->>'requestID' FROM cloud});
	is_deeply([ grep { index($package, $_) < 0 } @ids ],
		[], 'C31: every id of an event and a call is in the package');
}

$node->stop;
done_testing();
