/*-------------------------------------------------------------------------
 *
 * help.c
 *	  The texts of --help: one for the program, one for each command.
 *
 * The list of exit codes here is the documented one; failure.h holds the
 * numbers.  A test compares every option of options.c with these texts.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "options.h"

static const char general_help[] =
"pg_evidence makes evidence packages from an audit log and checks them.\n"
"\n"
"Usage:\n"
"  pg_evidence [OPTION]... COMMAND [ARGUMENT]\n"
"\n"
"Commands:\n"
"  request          ask for an export; print its id\n"
"  wait ID          wait until an export is ready\n"
"  list             list exports, newest first\n"
"  show ID          show everything about one export\n"
"  cancel ID        cancel an export that is not ready yet\n"
"  download ID      fetch the package of a ready export and verify it\n"
"  verify FILE      check a package without server or network\n"
"  upload           move finished archives to the object store, and remove\n"
"                   those whose time is over\n"
"  reconcile        compare ledger and object store\n"
"  doctor           try everything that delivery to an object store needs\n"
"\n"
"\"pg_evidence COMMAND --help\" tells the options of a command.\n"
"\n";

static const char common_help[] =
"Connection options:\n"
"  -d, --dbname=DBNAME      database, connection string or URI\n"
"  -h, --host=HOSTNAME      server host or socket directory\n"
"  -p, --port=PORT          server port\n"
"  -U, --username=USERNAME  user name\n"
"  -w, --no-password        never ask for a password\n"
"  -W, --password           ask for the password before connecting\n"
"The PG* environment variables, the service file and the password file of\n"
"libpq are used.  A password on the command line is refused.\n"
"\n"
"Output options:\n"
"      --json               print exactly one JSON document\n"
"  -q, --quiet              print no notes and no progress\n"
"  -V, --version            print the version and exit\n"
"  -?, --help               print this help and exit\n";

/* For the commands that may meet an object store. */
static const char store_help[] =
"Object store options:\n"
"      --endpoint=URL       address of the store (default: Amazon's)\n"
"      --region=NAME        region to sign for (default: us-east-1)\n"
"      --path-style         the bucket stands in the path of addresses; so it\n"
"                           is anyway when an endpoint is given\n"
"      --virtual-host       the bucket stands in the host name\n"
"      --ca-file=FILE       certificates to trust instead of the system's\n"
"      --allow-http         allow http without TLS, to this machine only\n"
"      --credentials-file=FILE\n"
"                           keys to the store; mode 0600\n"
"      --profile=NAME       section of that file\n"
"      --limit-rate=BYTES   at most so many bytes a second, e.g. 10MB\n"
"      --config=FILE        lines NAME = VALUE with the names of the long\n"
"                           options; the command line counts more\n"
"Keys come from a credentials file, the variables AWS_ACCESS_KEY_ID and\n"
"AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials.  AWS_ENDPOINT_URL_S3 and\n"
"AWS_REGION are used where nothing else is given.  No option takes a key.\n"
"\n";

static const char exit_help[] =
"\n"
"Exit codes:\n"
"   0  done; with verify: the package is intact\n"
"   1  the command line is wrong\n"
"   2  no connection to the server, or it was lost\n"
"   3  no right, or no such export (42501)\n"
"   4  the server refuses an argument (22023)\n"
"   5  a limit or quota, or too many rows (53400, PE002)\n"
"   6  wrong state, or not ready yet (55000, PE005)\n"
"   7  gone: expired or revoked (PE003)\n"
"   8  the idempotency key belongs to another request (PE001)\n"
"   9  the evidence is not intact (PE006, or faults found by verify)\n"
"  10  the export failed\n"
"  11  the export was cancelled\n"
"  12  the time given by --timeout has passed\n"
"  13  a local file could not be read or written\n"
"  14  the server refused every retry (40001)\n"
"  15  the extension is missing or of another version\n"
"  16  paused by an operator (PE007)\n"
"  17  the object store cannot be used\n"
"  18  upload --once: something was not done; reconcile: something is open;\n"
"      doctor: a check has failed\n"
"  70  anything else\n";

static const char request_help[] =
"Ask for an export and print its id.  The export goes on in the server when\n"
"this program ends.\n"
"\n"
"Usage:\n"
"  pg_evidence request --start=TIME --end=TIME --purpose=TEXT [OPTION]...\n"
"\n"
"Options:\n"
"      --start=TIME         first moment of the range\n"
"      --end=TIME           first moment behind the range\n"
"      --purpose=TEXT       why the evidence is needed; part of the package\n"
"      --key=KEY            idempotency key: the same request under the same\n"
"                           key gives the same export (default: a new one)\n"
"      --source=NAME        audit source (default: audit_log)\n"
"      --filter=KEY=VALUE   only rows with this value; may be repeated, the\n"
"                           values of one key are alternatives\n"
"      --filters=JSON       the same as one JSON object\n"
"      --columns=A,B,...    only these columns\n"
"      --wait               wait until the export is ready\n"
"  -o, --output=FILE        wait, then download to FILE and verify it\n"
"      --force              replace FILE if it exists\n"
"      --timeout=SECONDS    give up waiting; the export goes on\n"
"A time without an offset is taken in the zone of PGTZ or of the server.\n"
"\n";

static const char wait_help[] =
"Wait until an export is ready, showing its progress on a terminal.  The\n"
"server may restart meanwhile.\n"
"\n"
"Usage:\n"
"  pg_evidence wait ID [OPTION]...\n"
"\n"
"Options:\n"
"      --timeout=SECONDS    give up waiting; the export goes on\n"
"\n";

static const char list_help[] =
"List the exports that you may see, newest first.\n"
"\n"
"Usage:\n"
"  pg_evidence list [OPTION]...\n"
"\n"
"Options:\n"
"      --state=STATE        only QUEUED, PROCESSING, MERGING, STAGED, READY,\n"
"                           EXPIRED, REVOKED, FAILED or CANCELLED ones\n"
"      --limit=N            at most N (default: 20)\n"
"\n";

static const char show_help[] =
"Show everything about one export.\n"
"\n"
"Usage:\n"
"  pg_evidence show ID [OPTION]...\n"
"\n";

static const char cancel_help[] =
"Cancel an export that is not ready yet.\n"
"\n"
"Usage:\n"
"  pg_evidence cancel ID --reason=TEXT [OPTION]...\n"
"\n"
"Options:\n"
"      --reason=TEXT        why; kept in the history of the export\n"
"\n";

static const char download_help[] =
"Fetch the package of a ready export.  The server records the download\n"
"before it gives out the first byte.  The file gets its name only after its\n"
"size, its SHA-256 and its content have been verified; until then the bytes\n"
"lie in a hidden file beside it that only you can read.\n"
"\n"
"Usage:\n"
"  pg_evidence download ID [OPTION]...\n"
"\n"
"Options:\n"
"  -o, --output=FILE        file or directory (default: evidence-ID.zip)\n"
"      --force              replace the file if it exists\n"
"      --reason=TEXT        why; kept in the history of the export\n"
"An archive that lies in an object store is fetched from there, with keys of\n"
"your own.\n"
"\n";

static const char verify_help[] =
"Check a package offline and name every fault.  The file is trusted in\n"
"nothing: a ZIP made to harm is only another fault.\n"
"\"intact\" means that the parts of the package agree with each other.  It does\n"
"not mean \"authentic\": whoever can replace the file can replace its hashes.\n"
"Compare the SHA-256 of the file with the one in the ledger.\n"
"\n"
"Usage:\n"
"  pg_evidence verify FILE [OPTION]...\n"
"\n"
"Options:\n"
"      --json               print exactly one JSON document\n"
"  -q, --quiet              print nothing; the exit code tells\n";

static const char upload_help[] =
"Move finished archives from the database to an object store, confirm them\n"
"there, and remove those whose time is over.  Goes on until SIGTERM or SIGINT;\n"
"SIGHUP reads configuration and keys again.  Any number may run, on any host.\n"
"\n"
"Usage:\n"
"  pg_evidence upload --bucket=NAME [OPTION]...\n"
"\n"
"Options:\n"
"      --bucket=NAME        where archives go\n"
"      --prefix=PREFIX      what all keys begin with (default: pg-evidence)\n"
"      --once               do what is due, then end\n"
"      --multipart-threshold=BYTES\n"
"                           send from this size on in parts (default: 16MB)\n"
"      --part-size=BYTES    size of a part (default: 8MB)\n"
"      --lock-mode=MODE     GOVERNANCE or COMPLIANCE: have the store protect\n"
"                           each archive, for\n"
"      --lock-days=N        so many days\n"
"      --legal-hold         protect each archive until the hold is taken off\n"
"      --log-format=FORMAT  text or json (default: text)\n"
"\n";

static const char reconcile_help[] =
"Compare what the ledger knows with what the object store has: objects that\n"
"are missing, differ, belong to nobody or should be gone, and uploads that\n"
"were never finished.  Each finding is recorded in the ledger.\n"
"\n"
"Usage:\n"
"  pg_evidence reconcile --bucket=NAME [OPTION]...\n"
"\n"
"Options:\n"
"      --bucket=NAME        bucket to look into\n"
"      --prefix=PREFIX      only keys below it (default: pg-evidence)\n"
"      --fix                remove what belongs to nobody or should be gone, if\n"
"                           its key has the form of ours; nothing else is\n"
"                           changed\n"
"      --grace=TIME         but nothing younger than that (default: 24h)\n"
"      --log-format=FORMAT  text or json (default: text)\n"
"\n";

static const char doctor_help[] =
"Try everything that delivery to an object store needs, and say what to do\n"
"about whatever is not as it should be.\n"
"\n"
"Usage:\n"
"  pg_evidence doctor --bucket=NAME [OPTION]...\n"
"\n"
"Options:\n"
"      --bucket=NAME        bucket to try\n"
"      --prefix=PREFIX      what all keys begin with (default: pg-evidence)\n"
"      --apply-lifecycle    have the store remove what is older than 2 days, as\n"
"                           a safety net; rules of others stay as they are\n"
"      --lock-mode=MODE     GOVERNANCE or COMPLIANCE, as uploads will have it\n"
"      --lock-days=N        the same\n"
"      --legal-hold         the same\n"
"      --log-format=FORMAT  text or json (default: text)\n"
"\n";

void
ev_options_help(EvCommand command)
{
	static const char *const help[] = {
		[EV_COMMAND_NONE] = general_help,
		[EV_COMMAND_REQUEST] = request_help,
		[EV_COMMAND_WAIT] = wait_help,
		[EV_COMMAND_LIST] = list_help,
		[EV_COMMAND_SHOW] = show_help,
		[EV_COMMAND_CANCEL] = cancel_help,
		[EV_COMMAND_DOWNLOAD] = download_help,
		[EV_COMMAND_VERIFY] = verify_help,
		[EV_COMMAND_UPLOAD] = upload_help,
		[EV_COMMAND_RECONCILE] = reconcile_help,
		[EV_COMMAND_DOCTOR] = doctor_help
	};

	fputs(help[command], stdout);
	if (command == EV_COMMAND_REQUEST || command == EV_COMMAND_DOWNLOAD ||
		command == EV_COMMAND_UPLOAD || command == EV_COMMAND_RECONCILE ||
		command == EV_COMMAND_DOCTOR)
		fputs(store_help, stdout);
	if (command != EV_COMMAND_VERIFY)
		fputs(common_help, stdout);
	fputs(exit_help, stdout);
}
