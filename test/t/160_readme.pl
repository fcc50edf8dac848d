
# Every example of README.md runs: ini blocks configure the server, sql blocks
# go through one psql session in their order, sh blocks through a shell with
# the program in its path.  Every test that README names exists.

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceNode;
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

my $project = abs_path(dirname(__FILE__) . '/../..');
my $readme = slurp_file("$project/README.md");
my $folder = PostgreSQL::Test::Utils::tempdir();

my @blocks;
while ($readme =~ /^```(ini|sql|sh)\n(.*?)^```$/msg)
{
	push @blocks, { kind => $1, text => $2 };
}
my %count;
$count{ $_->{kind} }++ foreach @blocks;
cmp_ok($count{ini} // 0, '>=', 1, 'README shows how to configure the server');
cmp_ok($count{sql} // 0, '>=', 8, 'README has examples in SQL');
cmp_ok($count{sh} // 0, '>=', 2, 'README has examples for the shell');

foreach my $name ($readme =~ m{`((?:sql|test)/[\w./]+)`}g)
{
	ok(-e "$project/$name", "$name, named by README, exists");
}

# The configuration of README alone makes a working server.
my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', $_->{text})
  foreach grep { $_->{kind} eq 'ini' } @blocks;
$node->start;
bless $node, 'EvidenceNode';

# A reader waits for READY before going on; so does this, between two blocks.
my $settle = <<'SQL';
\o /dev/null
DO $$
BEGIN
    FOR i IN 1 .. 1800 LOOP
        PERFORM FROM evidence.audit_export WHERE state IN ('QUEUED', 'PROCESSING');
        EXIT WHEN NOT FOUND;
        PERFORM pg_sleep(0.1);
        COMMIT;
    END LOOP;
END
$$;
\o
SQL
my $script = join("\n",
	map { $_->{text} . ($_->{text} =~ /SET ROLE anna;(?!.*RESET ROLE)/s ? wait_as_superuser() : '') }
	grep { $_->{kind} eq 'sql' } @blocks);

sub wait_as_superuser
{
	return "RESET ROLE;\n${settle}SET ROLE anna;\n";
}

my ($out, $err) = ('', '');
{
	local %ENV = $node->_get_env(PGDATABASE => 'postgres');
	IPC::Run::run([ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1' ],
		'<', \$script, '>', \$out, '2>', \$err);
}
is($err, '', 'the examples in SQL run without a message');
like($out, qr/^0\|\d+$/m, 'they fetch the archive');
unlike($out, qr/\|f\|/, 'and no check of verify_audit_export fails');
like($out, qr/^records_sha256\|t\|/m, 'which compares the records');
like($out, qr/\bCANCELLED\b/, 'they cancel a request');

# The shell's user is a requester like anna.
$node->safe_psql('postgres', 'RESET ROLE');
foreach my $block (grep { $_->{kind} eq 'sh' } @blocks)
{
	my ($program_out, $program_err) = ('', '');
	local %ENV = $node->_get_env(
		PGDATABASE => 'postgres',
		PGUSER => 'anna',
		PATH => dirname(EvidenceNode::program_path()) . ":$ENV{PATH}");

	IPC::Run::run([ 'bash', '-euo', 'pipefail' ],
		'<', \$block->{text}, '>', \$program_out, '2>', \$program_err,
		init => sub { chdir $folder });
	is($?, 0, 'an example for the shell succeeds')
	  or diag("$block->{text}\n$program_out\n$program_err");
}
ok(-s "$folder/evidence.zip", 'the first one writes evidence.zip');
ok(-s "$folder/second.zip", 'the last one downloads a package');

done_testing();
