# "pg_evidence verify" against good packages and forged ones.  The packages
# come from lib/package_maker.py, which shares no code with the project; each
# forged one must fail exactly the checks that it names.

use strict;
use warnings;

use Cwd qw(abs_path);
use EvidenceNode;
use File::Basename qw(dirname);
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $program = EvidenceNode::program_path();
my $maker = abs_path(dirname(__FILE__)) . '/lib/package_maker.py';
my $folder = PostgreSQL::Test::Utils::tempdir();

sub run_program
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ $program, @arguments ],
		'<', \undef, '>', \$out, '2>', \$err);
	return ($?, $out, $err);
}

my ($list, $errors) = ('', '');

IPC::Run::run([ 'python3', $maker, '--list' ], '>', \$list)
  or die "could not list the packages";
IPC::Run::run([ 'python3', $maker, $folder ], '2>', \$errors)
  or die "could not make the packages: $errors";

foreach my $line (split /\n/, $list)
{
	my ($name, @expected) = split / /, $line;
	my ($status, $out, $err) =
	  run_program('verify', '--json', "$folder/$name.zip");
	my $verify = eval { JSON::PP->new->utf8->decode($out)->{verify} };
	my $checks = $verify->{checks};
	my @failed = grep { $checks->{$_} eq 'failed' } sort keys %$checks;
	my %named = map { $_->{check} => 1 } @{ $verify->{faults} };

	is($status, (@expected ? 9 : 0) << 8, "$name: exit code");
	is("@failed", "@expected", "$name: failed checks")
	  or diag(join "\n", map { "$_->{check}: $_->{text}" }
		  @{ $verify->{faults} });
	is(join(' ', sort keys %named), "@expected", "$name: each is named");
	is($err, '', "$name: nothing on standard error");
}

# What people read.
my ($status, $out, $err) = run_program('verify', "$folder/good.zip");
like($out, qr/good\.zip: intact$/m, 'the verdict');
unlike($out, qr/authentic/i, 'no word of authenticity');
like($out, qr/^records          11$/m, 'number of records');
like($out, qr/not who made them/, 'the limits are told');
like($out, qr/^file sha256      [0-9a-f]{64}$/m, 'SHA-256 of the file');
($status, $out, $err) = run_program('verify', "$folder/many_faults.zip");
like($out, qr/many_faults\.zip: NOT intact, 5 faults$/m, 'every fault counts');
like($out, qr/^  $_ /m, "the fault of \"$_\" is named")
  foreach qw(bytes sha256 records cells digest);
($status, $out, $err) = run_program('verify', '-q', "$folder/lf_only.zip");
is("$status:$out$err", (9 << 8) . ':', '--quiet: the exit code alone');

# A fault tells the place and not the content.
($status, $out, $err) = run_program('verify', "$folder/formula_at.zip");
like($out, qr/formula +a cell opens as a formula: 1 time, first in record 2, column 6/,
	'a fault tells the place');
unlike($out, qr/SUM/, 'a fault does not tell the content');

# A file name cannot play with the terminal, also if it is no text.
my $odd = "$folder/a\033[2Jb\xff.zip";

rename "$folder/good.zip", $odd or die;
($status, $out, $err) = run_program('verify', $odd);
is($status, 0, 'odd file name: exit code');
like($out, qr/a<U\+001B>\[2Jb\xef\xbf\xbd\.zip: intact/,
	'odd file name: made visible');
($status, $out, $err) = run_program('verify', $odd, '--json');
is($status, 0, 'odd file name, --json: exit code');
like(JSON::PP->new->utf8->decode($out)->{file},
	qr/a\033\[2Jb\x{fffd}\.zip$/, 'odd file name, --json: valid text');

# Memory does not grow with the file: 300 MB of records in 64 MB of memory.
SKIP:
{
	my $limit = 'ulimit -v 65536; exec "$@"';

	skip 'no ulimit here', 1
	  if system('sh', '-c', 'ulimit -v 65536') != 0;
	IPC::Run::run([ 'python3', '-c', <<'PYTHON', $maker, $folder ]) or die;
import sys
sys.path.insert(0, sys.argv[1].rsplit('/', 1)[0])
import package_maker as m
package = m.Package([m.row(n, f"2026-11-02T00:00:{n // 10000:02d}.{n % 10000:06d}Z")
                     for n in range(200000)])
package.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}
open(sys.argv[2] + "/big.zip", "wb").write(package.file())
PYTHON
	IPC::Run::run([ 'sh', '-c', $limit, 'sh', $program, 'verify',
			"$folder/big.zip" ], '>', \$out, '2>', \$err);
	is($?, 0, 'a large package in little memory');
	diag($out . $err) if $? != 0;
}

done_testing();
