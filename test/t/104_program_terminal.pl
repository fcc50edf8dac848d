# The client program on a terminal: it asks for a password and draws a bar.

use strict;
use warnings;

use EvidenceNode;
use MockLedger;
use PostgreSQL::Test::Utils;
use Test::More;

my $program = EvidenceNode::program_path();
my $folder = PostgreSQL::Test::Utils::tempdir();
my $mock = MockLedger->new;
my $node = $mock->node;

# Passwords: from the environment, a file, the terminal; never without -w.
{
	$mock->sql(q{CREATE ROLE auditor LOGIN PASSWORD 'correct horse';}
		  . 'GRANT USAGE ON SCHEMA evidence TO auditor;'
		  . 'GRANT SELECT ON ALL TABLES IN SCHEMA evidence TO auditor');
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $old = slurp_file($hba);

	unlink $hba;
	append_to_file($hba, "local all auditor scram-sha-256\n$old");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_hba_file_rules"
		  . " WHERE user_name = '{auditor}'");

	my ($code, $out, $err) = $mock->program('list', '-U', 'auditor', '-w');
	is($code, 2, 'password missing: exit code');
	like($err, qr/no password supplied/, 'password missing: text');
	{
		local $ENV{PGPASSWORD} = 'correct horse';
		is(($mock->program('list', '-U', 'auditor'))[0], 0, 'PGPASSWORD');
		local $ENV{PGPASSWORD} = 'wrong';
		($code, $out, $err) = $mock->program('list', '-U', 'auditor');
		is($code, 2, 'wrong password: exit code');
		unlike($err, qr/wrong/, 'the password is not repeated');
	}
	append_to_file("$folder/pgpass", "*:*:*:auditor:correct horse\n");
	chmod 0600, "$folder/pgpass";
	local $ENV{PGPASSFILE} = "$folder/pgpass";
	is(($mock->program('list', '-U', 'auditor'))[0], 0, 'password file');
	$ENV{PGPASSFILE} = '/nonexistent';

	my ($ask, $shown) =
	  $mock->start_on_terminal($program, 'list', '-U', 'auditor');
	$ask->finish;
	is($? >> 8, 0, 'password asked for on the terminal');
	unlike($$shown, qr/horse/, 'the password is not echoed');
	($ask, $shown) = $mock->start_on_terminal($program, 'list', '-W');
	$ask->finish;
	is($? >> 8, 0, '-W with a server that wants no password: exit code');
	like($$shown, qr/^Password: /, '-W asks all the same');

	unlink $hba;
	append_to_file($hba, $old);
	$node->reload;
}

# Waits on a terminal until what it shows matches; then the export becomes ready.
# Returns all that was shown.
sub show_wait
{
	my ($id, $until, @command) = @_;
	my ($wait, $out) =
	  $mock->start_on_terminal(@command, $program, 'wait', $id);

	$wait->pump until $$out =~ $until;
	$mock->sql("UPDATE evidence.mock_export"
		  . " SET state = 'READY', ready_after = NULL WHERE id = '$id'");
	$wait->finish;
	is($? >> 8, 0, 'wait on a terminal: exit code');
	return $$out;
}

# The progress bar.
{
	my $bar =
	  qr{\r\[[#-]{16}\] +[\d.]+ %  PROCESSING  420/1000 rows  71k/s  3-5 s left\033};
	my $out = show_wait(
		$mock->new_export(ready_after => '1 hour', record_count => 1000),
		$bar);
	like($out, $bar,
		'the bar tells percent, state, rows, rate and the time left');
	like($out, qr/\r\n.*ready: 1000 records/, 'the bar ends with its line');

	# A bar that wraps cannot be written over.
	$out = show_wait($mock->new_export(ready_after => '1 hour'),
		qr/\033\[K/, 'sh', '-c', 'stty columns 40; exec "$@"', 'sh');
	my @lines = $out =~ /\r([^\r\n]*)\033\[K/g;
	ok(@lines > 0 && !(grep { length > 39 } @lines),
		'the bar fits a narrow terminal');
}

# What a server says is shown as it is, also if it is odd.
foreach my $case (
	[ 'no progress yet', { ready_after => undef },
		qr{\[-{16}\]         PROCESSING} ],
	[ 'more than all', { progress => 1.5 }, qr{\[#{16}\] 100\.0 %} ],
	[ 'a slow export', { rows_per_second => 417 }, qr{  417/s  } ],
	[
		'a short range', { eta_low => '1 minute', eta_high => '1 minute' },
		qr{k/s  60 s left}
	],
	[
		'hours', { eta_low => '1 hour', eta_high => '5 hours' },
		qr{  1-5 h left}
	])
{
	my ($name, $columns, $bar) = @$case;
	my %all = (state => 'PROCESSING', ready_after => '1 hour', %$columns);

	delete $all{ready_after} unless defined $all{ready_after};
	like(show_wait($mock->new_export(%all), $bar), $bar, "the bar: $name");
}

# The bar of a download.
{
	my $id = $mock->new_export(state => 'PROCESSING');
	my $file = "$folder/x.zip";

	$mock->sql("SELECT evidence.mock_store('$id', '\\x00ff', 1)");
	my ($download, $out) =
	  $mock->start_on_terminal($program, 'download', $id, '-o', $file);
	$download->finish;
	is($? >> 8, 9, 'what is no package is refused');
	like($$out, qr/\r\[#{16}\] 100\.0 %  0\.0 of 0\.0 MB\033/,
		'the bar tells how much has come');
	ok(!-e $file, 'no file is left');
}

$node->stop;
done_testing();
