# "make install" of the program brings the unit of systemd and the example of
# its environment, wherever it is told, and "make uninstall" takes them away.

use strict;
use warnings;

use Cwd ();
use File::Find ();
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = Cwd::abs_path(PostgreSQL::Test::Utils::tempdir());

# Every file below a folder, without that folder's name.
sub files_in
{
	my ($root) = @_;
	my @files;

	File::Find::find(
		sub { push @files, substr($File::Find::name, length $root) if -f },
		$root);
	return sort @files;
}

# make in the folder of the program; what it says is shown when it fails.
sub install
{
	my ($target, @variables) = @_;
	my $said = '';
	my $done = IPC::Run::run(
		[ 'make', '-s', '-C', 'uploader', $target, @variables ],
		'<', \undef, '>&', \$said);

	ok($done, "make $target @variables") || diag($said);
	return;
}

# As a package is built: below a folder that is not part of any name.
{
	my $root = "$folder/root";

	install('install', "DESTDIR=$root", 'bindir=/opt/evidence/bin');
	is(join(' ', files_in($root)),
		'/opt/evidence/bin/pg_evidence'
		  . ' /opt/evidence/lib/systemd/system/pg_evidence-upload.service'
		  . ' /opt/evidence/share/doc/pg_evidence/pg_evidence-upload.env',
		'DESTDIR: what is installed');
	my $unit = slurp_file("$root/opt/evidence/lib/systemd/system/pg_evidence-upload.service");
	like($unit, qr{^ExecStart=/opt/evidence/bin/pg_evidence upload }m, 'the unit starts this program');
	unlike($unit, qr/\Q$root\E/, 'and knows nothing of DESTDIR');
	install('uninstall', "DESTDIR=$root", 'bindir=/opt/evidence/bin');
	is(join(' ', files_in($root)), '', 'DESTDIR: nothing is left');
	ok(!-e "$root/opt/evidence/share/doc/pg_evidence", 'not even the folder of the example');
}

# Without telling: below /usr/local.
{
	my $root = "$folder/usual";

	install('install', "DESTDIR=$root");
	is(join(' ', files_in($root)),
		'/usr/local/bin/pg_evidence'
		  . ' /usr/local/lib/systemd/system/pg_evidence-upload.service'
		  . ' /usr/local/share/doc/pg_evidence/pg_evidence-upload.env',
		'the usual places');
	install('uninstall', "DESTDIR=$root");
	is(join(' ', files_in($root)), '', 'the usual places: nothing is left');
}

# What systemd itself says of the unit: the program must be where it looks.
SKIP:
{
	my $said = '';

	IPC::Run::run([ 'sh', '-c', 'command -v systemd-analyze' ], '>', \my $path);
	skip 'systemd is not here', 3 if $path eq '';
	install('install', "bindir=$folder/here/bin");
	ok(IPC::Run::run([ 'systemd-analyze', 'verify', '--man=no',
				"$folder/here/lib/systemd/system/pg_evidence-upload.service" ],
			'<', \undef, '>&', \$said),
		'systemd takes the unit') || diag($said);
	unlike($said, qr/pg_evidence-upload/, 'and has nothing to say about it');
}

done_testing();
