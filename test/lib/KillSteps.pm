
=pod

=head1 NAME

KillSteps - the steps of an export, in the order in which they are taken

=head1 DESCRIPTION

The table says, phase by phase, which steps a process takes, in their order; a
case of the matrix is the death of that process before one of them, by SIGTERM
or by kill -9.  So between every two neighbouring steps there is a death.  The
order is not just claimed: KillMatrix compares it with the trace of a run that
nobody disturbs, and the names with the pause points of the C code, in both
directions.

A step is one of three:

=over

=item a pause point of the C code, such as C<claimed>

Setting debug_pause holds a process there.

=item the writing of a row, such as C<UPDATE audit_export>

A trigger that only these tests make holds it there, so that a process can
also die within a statement that writes several rows.

=item a moment of the server or of the client, in parentheses

C<(returned)>: the function has returned, the transaction is open.
C<(commit record)>: the commit is on disk, and neither visible nor answered;
the wait for a synchronous standby that does not exist holds it there.
C<(answered)>: the client knows.

=back

=cut

package KillSteps;

use strict;
use warnings;

# The steps of claiming, reading and storing are the same in an exporter and
# in a session that runs run_once().
my @claim = (
	'claim', 'UPDATE audit_export',
	'UPDATE background_job', 'INSERT export_event',
	'INSERT attempt', 'claiming',
	'(commit record)', 'claimed');
my @read = (
	'prepared', 'reading', 'counted', 'half-read',
	'read', 'assembled');
my @store = (
	'INSERT archive_chunk 0', 'INSERT archive_chunk 1',
	'stored', 'UPDATE audit_export', 'UPDATE background_job',
	'UPDATE attempt', 'INSERT export_event', 'completed',
	'(commit record)', 'ready');
my @end = ('(returned)', '(commit record)', '(answered)');
my @deliver = ('UPDATE outbox_event', 'delivering');
my @recover = (
	'UPDATE attempt', 'UPDATE audit_export', 'UPDATE background_job',
	'INSERT export_event', 'recovering', 'recovered');

# "from" is the pause point before a phase whose rows are written by an earlier
# phase as well.
#
# What a request does to make the job is all there is: the launcher creates
# nothing, so nothing lies between a job and DELIVERED.
my @phases = (
	{
		name => 'request',
		process => 'backend',
		steps => [
			'UPDATE guard', 'INSERT audit_export',
			'INSERT background_job', 'INSERT outbox_event',
			'INSERT export_event', 'INSERT audit_log',
			'(returned)', '(commit record)',
			'waking', '(answered)'
		]
	},
	{
		name => 'deliver',
		process => 'launcher',
		steps => [
			'launcher-round', @deliver,
			'launcher-delivered', 'starting',
			'started'
		]
	},
	{ name => 'hand over', process => 'launcher', steps => ['handed-over'] },
	{ name => 'claim', process => 'exporter', steps => [ 'attached', @claim ] },
	{ name => 'read', process => 'exporter', steps => \@read },
	{
		name => 'store',
		process => 'exporter',
		from => 'assembled',
		steps => \@store
	},
	{
		name => 'fail',
		process => 'exporter',
		from => 'reading',
		steps => [
			'UPDATE audit_export', 'UPDATE background_job',
			'UPDATE attempt', 'INSERT export_event',
			'failing', 'failed'
		]
	},
	{
		name => 'renew',
		process => 'launcher',
		steps => [ 'UPDATE attempt', 'renewing', 'renewed' ]
	},
	{ name => 'recover', process => 'launcher', steps => \@recover },
	{
		name => 'cancel, queued',
		process => 'backend',
		steps => [
			'UPDATE audit_export', 'UPDATE background_job',
			'UPDATE outbox_event', 'INSERT export_event',
			'INSERT audit_log', '(returned)',
			'(commit record)', 'telling',
			'waking', '(answered)'
		]
	},
	{
		name => 'cancel, running',
		process => 'backend',
		steps => [
			'UPDATE audit_export', 'UPDATE background_job',
			'INSERT export_event', 'INSERT audit_log',
			'(returned)', '(commit record)',
			'telling', 'waking',
			'(answered)'
		]
	},
	{
		name => 'stop',
		process => 'exporter',
		steps => [
			'UPDATE attempt', 'UPDATE audit_export',
			'INSERT export_event', 'stopping',
			'stopped'
		]
	},
	{
		name => 'recover, cancelled',
		process => 'launcher',
		steps => [
			'UPDATE attempt', 'UPDATE audit_export',
			'INSERT export_event', 'recovering',
			'recovered'
		]
	},
	{ name => 'run_once, deliver', process => 'backend', steps => \@deliver },
	{ name => 'run_once, claim', process => 'backend', steps => \@claim },
	{ name => 'run_once, read', process => 'backend', steps => \@read },
	{
		name => 'run_once, store',
		process => 'backend',
		from => 'assembled',
		steps => \@store
	},
	{ name => 'run_once, recover', process => 'backend', steps => \@recover },
	{
		name => 'grant',
		process => 'backend',
		steps => [
			'INSERT download_grant', 'INSERT export_event',
			'INSERT audit_log', '(returned)',
			'(commit record)', '(answered)'
		]
	},
	{
		name => 'fetch',
		process => 'backend',
		steps => [ 'fetching', 'half-fetched' ]
	},
	{
		name => 'expire',
		process => 'launcher',
		steps => [
			'UPDATE audit_export', 'INSERT export_event',
			'DELETE archive_chunk 0', 'DELETE archive_chunk 1',
			'expiring'
		]
	},
	# What an uploader asks the server for; between these it is on its own.
	{
		name => 'delivery, claim',
		process => 'backend',
		steps => [
			'INSERT upload_attempt', 'UPDATE outbox_event', @end
		]
	},
	{
		name => 'delivery, send',
		process => 'backend',
		steps => [ 'UPDATE upload_attempt', 'sending', @end ]
	},
	{
		name => 'delivery, confirm',
		process => 'backend',
		steps => [
			'UPDATE audit_export', 'UPDATE outbox_event',
			'UPDATE upload_attempt', 'DELETE archive_chunk 0',
			'DELETE archive_chunk 1', 'INSERT export_event',
			'confirming', @end
		]
	},
	{
		name => 'delivery, fail',
		process => 'backend',
		steps => [ 'UPDATE outbox_event', 'UPDATE upload_attempt', @end ]
	},
	{
		name => 'delivery, remove',
		process => 'backend',
		steps => [
			'UPDATE outbox_event', 'UPDATE upload_attempt',
			'INSERT export_event', 'removing', @end
		]
	},
	# test/t/130_shipping.pl kills the shipper at each of these.
	{
		name => 'ship',
		process => 'shipper',
		steps => [ 'begun', 'shipping', 'shipped', 'sending', 'sent' ]
	},
	{ name => 'server', process => 'all', steps => [ 'half-read', 'completed' ] }
);

=pod

=head1 FUNCTIONS

=over

=item KillSteps::phases()

All phases, in the order of the table of results.

=back

=cut

sub phases
{
	return @phases;
}

1;
