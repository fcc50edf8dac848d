"""An object store beside the server, curl as another client of it, and the
uploaders between the two.
"""

import hashlib
import pathlib
import subprocess
import time

import server

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "lib"

BUCKET = "archive"

# Starts the store that the tests use, empties the bucket for each line, and
# ends the store when its input ends, so it cannot outlive this process.
KEEPER = r"""
$| = 1;
my ($bucket) = @ARGV;
my $store = ObjectStore->new;
print "$_\n" foreach $store->endpoint, $store->access_key, $store->secret_key;
while (readline STDIN)
{
    while (my @keys = $store->keys_in($bucket))
    {
        $store->request('DELETE', $bucket, $_) foreach @keys;
    }
    print "empty\n";
}
"""

ROLE = "bench_courier"

EMPTY_SHA256 = hashlib.sha256().hexdigest()


class Store:
    """A gateway of Ceph with its storage on this host's disk."""

    def __init__(self, folder):
        # A Ctrl-C is for us, who then end it in order.
        self.keeper = subprocess.Popen(
            ("perl", "-I", LIBRARY, "-MObjectStore", "-e", KEEPER,
             BUCKET),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True)
        self.endpoint, access_key, secret_key = (
            self.keeper.stdout.readline().rstrip("\n") for _ in range(3))
        if not secret_key:
            raise server.Failed("the object store does not start")
        self.environment = {
            "AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key, "PGDATABASE": "postgres"}
        # What each curl is told, so that its key is on no command line.
        self.uploaders = []
        self.curl_config = folder / "curl.conf"
        self.curl_config.write_text(
            "silent\nshow-error\nfail\nnoproxy = \"*\"\n"
            "aws-sigv4 = \"aws:amz:us-east-1:s3\"\n"
            f"user = \"{access_key}:{secret_key}\"\n")

    def empty(self):
        """Remove all objects; the storage itself does it a little later."""
        self.keeper.stdin.write("empty\n")
        self.keeper.stdin.flush()
        if self.keeper.stdout.readline() != "empty\n":
            raise server.Failed("the object store does not answer")

    def stop(self):
        """End it, and uploaders that a failure has left behind."""
        for process in self.uploaders:
            process.kill()
        self.keeper.stdin.close()
        self.keeper.wait()

    def curl(self, sha256=EMPTY_SHA256):
        """The beginning of a command of curl; sha256 is that of the body.

        It is given, as the program has it from the ledger: the store checks
        the body against it in both cases.
        """
        return ("curl", "-K", str(self.curl_config),
                "-H", f"x-amz-content-sha256: {sha256}")

    def address(self, key):
        return f"{self.endpoint}/{BUCKET}/{key}"


def make_role(target):
    """Once for all measurements: who may deliver, and nothing else."""
    if target.query(f"SELECT to_regrole('{ROLE}') IS NULL") == "t":
        target.query(f"CREATE ROLE {ROLE} LOGIN")
        target.query("SELECT evidence.grant_capability("
                     f"'{ROLE}', 'uploader')")


class Uploader:
    """A running pg_evidence upload."""

    def __init__(self, bench, *arguments, trace=False):
        target = bench.server()
        self.process = subprocess.Popen(
            ("pg_evidence", "upload", f"--bucket={BUCKET}", "--allow-http",
             *arguments),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**target.environment, **bench.store().environment,
                 "PGUSER": ROLE,
                 **({"PG_EVIDENCE_PAUSE": "trace"} if trace else {})})
        bench.store().uploaders.append(self.process)
        self.pid = self.process.pid
        self.said = []

    def read_until(self, text):
        """Lines until the first with that text, each with its time."""
        for line in self.process.stderr:
            self.said.append(line)
            yield time.time(), line
            if text in line:
                return
        raise server.Failed("the uploader ended: " + "".join(self.said[-9:]))

    def wait_for(self, text):
        """The time at which it said that."""
        return list(self.read_until(text))[-1][0]

    def finish(self):
        """Wait until it ends by itself, with everything done."""
        self.said += self.process.stderr.readlines()
        if self.process.wait() != 0:
            raise server.Failed("the uploader: " + "".join(self.said[-9:]))

    def peak_mb(self):
        """The most memory it has had, libraries included."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise server.Failed("the kernel does not tell VmHWM")

    def end(self):
        self.process.terminate()
        self.finish()
