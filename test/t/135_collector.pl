# A real collector follows the file of shipped records, as README tells it to:
# nothing is missing at its end, whatever is renamed and restarted.

use strict;
use warnings;

use EvidenceNode;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no rsyslogd here' if !-x '/usr/sbin/rsyslogd';

my $node = EvidenceNode->new('main', ship => 'on', ship_interval => '50ms');

$node->start;
$node->create_extension;

my $file = $node->data_dir . '/log/pg_evidence_audit.jsonl';
my $folder = PostgreSQL::Test::Utils::tempdir;
my $collected = "$folder/out/audit.jsonl";
my $collector;

# README's example, with folders of this test.
sub example
{
	my $readme = slurp_file("$ENV{PWD}/README.md");
	my ($text) = $readme =~ /^```\n(global\(workDirectory.*?)^```\n/ms
	  or die 'README has no example for rsyslog';
	my $changed = 0;

	$changed += $text =~ s{"/var/spool/rsyslog"}{"$folder/work"};
	$changed += $text =~ s{"/var/log/evidence/audit.jsonl"}{"$collected"};
	$changed += $text =~ s{"/var/lib/postgresql/[^"]+/pg_evidence_audit.jsonl"}{"$file"};
	die 'the example has other folders' if $changed != 3;
	return $text;
}

sub start_collector
{
	$collector = IPC::Run::start(
		[ '/usr/sbin/rsyslogd', '-n', '-f', "$folder/collector.conf", '-i', "$folder/pid" ],
		'<', \undef, '>', "$folder/collector.log", '2>&1');
	return;
}

# Its place in the file is on disk once it has ended.
sub stop_collector
{
	$collector->signal('TERM');
	$collector->finish;
	return;
}

END
{
	my $status = $?;

	$collector->kill_kill if $collector && $collector->pumpable;
	$? = $status;
}

sub record
{
	my ($name, $count, $text) = @_;

	$node->safe_psql('postgres',
		"SELECT count(evidence.record_audit_event('$name', 'test', summary => $text || n))"
		  . " FROM generate_series(1, $count) AS n");
	$node->poll("SELECT NOT EXISTS (SELECT FROM evidence.audit_delivery WHERE state = 'pending')");
	return;
}

# What has come so far, by id; each line must be a whole record.
sub records
{
	my %records;

	return \%records if !-e $collected;
	foreach my $line (split /(?<=\n)/, slurp_file($collected))
	{
		last if $line !~ /\n\z/;
		my $record = decode_json($line);

		$records{ $record->{id} } = $record;
	}
	return \%records;
}

sub all_came
{
	my ($name) = @_;
	my $want = $node->safe_psql('postgres', 'SELECT count(*) FROM evidence.audit_log');
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	select undef, undef, undef, 0.1
	  while scalar(keys %{ records() }) < $want && time < $end;
	return is(scalar(keys %{ records() }), $want, $name);
}

mkdir "$folder/$_" foreach qw(work out);
append_to_file("$folder/collector.conf", example());

record('collector.before', 100, "'before '");
start_collector();
all_came('what was shipped before the collector started');

record('collector.beside', 1000, "'beside '");
record('collector.long', 3, "repeat('long ', 40000)");
record('collector.odd', 3, q{E'tab\t quote" backslash\\\\ line\nbreak \u00e4\u20ac '});
all_came('what is shipped beside it, long and odd records too');
my ($long) = grep { $_->{event} eq 'collector.long' } values %{ records() };
is(length $long->{fields}{summary}, 200_001, 'nothing of a long record is cut');

rename $file, "$file.1" or die "could not rename: $!";
record('collector.renamed', 500, "'renamed '");
all_came('what is shipped after a rename');

stop_collector();
record('collector.away', 500, "'away '");
start_collector();
all_came('what was shipped while it was away');
stop_collector();

done_testing();
