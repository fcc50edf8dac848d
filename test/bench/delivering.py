"""From the database to the object store and back: pg_evidence upload and
download against curl, in the same run and through the same gateway of Ceph,
whose storage is on the same disk as the server's.

Archives are made beforehand, by exports that go to an object store while no
uploader runs.  A program's wall time is that from its start to its end,
connections included.
"""

import contextlib
import hashlib
import pathlib
import random
import shlex
import statistics
import subprocess
import time

import report
import server
import store

# Rows of which an archive of 200 MB, or 2 MB, is made.
LARGE_ROWS = 44_000
SMALL_ROWS = 440
WORDS = 93

ARCHIVES = 100
DELIVERIES = 30
IDLE_SECONDS = 60


@contextlib.contextmanager
def delivery(bench):
    """The server with exports that wait for an uploader."""
    target = bench.server()
    bench.store()
    store.make_role(target)
    target.set("pg_evidence.delivery", "object_store")
    try:
        yield target
    finally:
        target.set("pg_evidence.delivery", "database")


def large(bench):
    return bench.window("texts", LARGE_ROWS // (4 if bench.quick else 1),
                        length=WORDS)


def small(bench):
    return bench.window("texts", SMALL_ROWS, length=WORDS)


def clear(bench):
    """A turn begins with an empty store and written buffers."""
    bench.store().empty()
    bench.server().query("CHECKPOINT")


def stage(bench, window, count=1):
    """Make archives that wait for an uploader; return their ids."""
    target = bench.server()
    target.forget_archives()
    ids = [target.request(window) for _ in range(count)]
    target.wait_for("NOT EXISTS (SELECT FROM evidence.audit_export"
                    " WHERE state IN ('QUEUED', 'PROCESSING'))")
    expect(target, ids, "STAGED")
    return ids


def expect(target, ids, state):
    """All of these exports are in that state."""
    listed = ", ".join(f"'{export_id}'" for export_id in ids)
    found = target.query(
        "SELECT state, count(*) FROM evidence.audit_export"
        f" WHERE id IN ({listed}) GROUP BY state")
    if found != f"{state}|{len(ids)}":
        raise server.Failed(f"of {len(ids)} exports that should be {state}:"
                            f" {found}")


def upload_once(bench, window, *arguments, count=1, uploaders=1):
    """Seconds until so many archives are delivered, and their ids."""
    ids = stage(bench, window, count)
    clear(bench)
    start = time.perf_counter()
    running = [store.Uploader(bench, "--once", "--quiet", *arguments)
               for _ in range(uploaders)]
    for process in running:
        process.finish()
    took = time.perf_counter() - start
    expect(bench.server(), ids, "READY")
    return took, ids


class Package:
    """One delivered archive, and its bytes in a file for curl."""

    def __init__(self, bench, window):
        target = bench.server()
        _, (self.id,) = upload_once(bench, window)
        self.file = bench.scratch / "package.zip"
        self.file.unlink(missing_ok=True)
        download(bench, self.id, self.file)
        self.sha256 = hashlib.sha256(self.file.read_bytes()).hexdigest()
        self.bytes = self.file.stat().st_size
        self.address = bench.store().address(target.query(
            "SELECT object_key FROM evidence.upload_attempt"
            f" WHERE export_id = '{self.id}' AND outcome = 'confirmed'"))

    def megabytes(self):
        return f"{self.bytes / 1e6:.0f} MB"


def download(bench, export_id, path):
    bench.server().run("pg_evidence", "download", export_id, "--quiet",
                       "--allow-http", "--output", str(path),
                       stdout=subprocess.DEVNULL,
                       environment=bench.store().environment)


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# The second is what the program does if it is told so.
WAYS = {
    "in parts": (),
    "in one request": ("--multipart-threshold=1GB",),
}


def upload(bench):
    """One large archive: pg_evidence upload --once, from its start to its
    end, against one curl that sends a file.

    The program claims the archive, reads it out of the database, sends it,
    looks it up, and has it confirmed, which takes it out of the database.
    Sent in parts, it is read twice, since the SHA-256 of a part comes before
    its bytes.  curl sends a file that is in memory, with one request.
    """
    result = []
    with delivery(bench):
        package = Package(bench, large(bench))

        def send():
            clear(bench)
            return seconds_of(lambda: subprocess.run(
                (*bench.store().curl(package.sha256), "-T", package.file,
                 bench.store().address("curl")), check=True))

        for way, arguments in WAYS.items():
            bench.note(way)
            rivals, ours = report.in_turns(
                bench.runs(5), send,
                lambda: upload_once(bench, large(bench), *arguments)[0],
                bench.note)
            result.append(report.compared(
                "pg_evidence upload --once: wall time",
                f"1 archive of {package.megabytes()}, {way}", "curl -T",
                ours, rivals, report.seconds, 1.10))
    return result


# A PUT and a HEAD for each archive, as somebody by hand would do it.
LOOP = """
set -eu
for n in $(seq "$COUNT")
do
    curl -K "$CONFIG" -H "x-amz-content-sha256: $SHA256" -T "$FILE" "$TO-$n"
    curl -K "$CONFIG" -H "x-amz-content-sha256: $EMPTY" --head "$TO-$n"
done >/dev/null
"""


def uploads(bench):
    """Many small archives: one uploader against a loop of curl, and two
    uploaders at once against one.
    """
    count = ARCHIVES // (10 if bench.quick else 1)
    with delivery(bench) as target:
        package = Package(bench, small(bench))

        def loop():
            clear(bench)
            environment = {
                "COUNT": str(count), "FILE": str(package.file),
                "CONFIG": str(bench.store().curl_config),
                "SHA256": package.sha256, "EMPTY": store.EMPTY_SHA256,
                "TO": bench.store().address("curl")}
            return seconds_of(lambda: target.run(
                "bash", "-c", LOOP, environment=environment))

        def ours(uploaders):
            return upload_once(bench, small(bench), count=count,
                               uploaders=uploaders)[0]

        size = f"{count} archives of {package.megabytes()}"
        rivals, products = report.in_turns(
            bench.runs(5), loop, lambda: ours(1), bench.note)
        result = [report.compared(
            "pg_evidence upload --once: wall time", size,
            "a loop of curl -T and curl --head", products, rivals,
            report.seconds, 1.20)]
        bench.note("two uploaders")
        one, two = report.in_turns(
            bench.runs(3), lambda: count / ours(1), lambda: count / ours(2),
            bench.note)
    result.append(report.compared(
        "two uploaders at once", size, "one uploader", two, one,
        lambda value: f"{value:.1f}/s", 1.60, at_least=True))
    return result


# What curl is followed by, and the goal.
CHECKS = {
    "curl -o": ("", 0.95),
    "curl -o, sha256sum, unzip -p | sha256sum": (
        "sha256sum copy.zip; unzip -p copy.zip records.csv | sha256sum",
        None),
}


def fetch_object(bench):
    """pg_evidence download of a large archive against curl, which looks at
    nothing, and against curl and what one would do to look at the same; the
    program also parses each line.
    """
    result = []
    with delivery(bench) as target:
        package = Package(bench, large(bench))
        copy = bench.scratch / "copy.zip"

        def throughput(run):
            copy.unlink(missing_ok=True)
            took = seconds_of(run)
            if copy.stat().st_size != package.bytes:
                raise server.Failed("the download has another size")
            return package.bytes / 1e6 / took

        curl = shlex.join((*bench.store().curl(), "-o", str(copy),
                           package.address))
        for rival, (check, goal) in CHECKS.items():
            bench.note(rival)
            rivals, ours = report.in_turns(
                bench.runs(5),
                lambda: throughput(lambda: target.run(
                    "bash", "-c", f"set -euo pipefail\n{curl}\n{check}",
                    cwd=bench.scratch, stdout=subprocess.DEVNULL)),
                lambda: throughput(lambda: download(bench, package.id, copy)),
                bench.note)
            result.append(report.compared(
                "pg_evidence download from the object store",
                f"1 archive of {package.megabytes()}", rival, ours, rivals,
                lambda value: f"{value:.0f} MB/s", goal, at_least=True))
        copy.unlink()
    return result


def uploader(bench):
    """What a waiting uploader takes: memory, time to react, and CPU."""
    with delivery(bench) as target:
        result = [memory(bench, target, window(bench))
                  for window in (small, large)]
        result += reaction(bench, target)
        result += idle(bench, target)
    return result


def memory(bench, target, window):
    """Peak of a process that has delivered nothing else."""
    waiting = store.Uploader(bench)
    export_id = target.request(window)
    waiting.wait_for("uploaded")
    peak = waiting.peak_mb()
    waiting.end()
    size = int(target.query("SELECT archive_bytes FROM evidence.audit_export"
                            f" WHERE id = '{export_id}'"))
    return report.measured(
        "peak memory of the uploader, libraries included",
        f"1 archive of {size / 1e6:.0f} MB", peak,
        lambda value: f"{value:.1f} MB", 16.0)


# What the program says as it comes to the end of each part.
PARTS = {
    "claim, and record that bytes are sent": 'comes to "put"',
    "read and PUT": 'comes to "sent"',
    "HEAD": 'comes to "confirm"',
    "confirm": "uploaded",
}


def reaction(bench, target):
    """From STAGED, the time in the ledger and so before its commit, until an
    idle uploader has the server's answer that the archive is READY.
    """
    moments = random.Random(1)
    waiting = store.Uploader(bench, trace=True)
    waiting.wait_for("keys from")
    parts = {name: [] for name in PARTS}
    total = []
    count = 10 if bench.quick else DELIVERIES
    bench.note(f"{count} deliveries")
    for number in range(count + 1):
        # It has gone to sleep again.
        time.sleep(0.1 + 0.1 * moments.random())
        export_id = target.request(small(bench))
        stamps = list(waiting.read_until("uploaded"))
        at = staged = float(target.query(
            "SELECT extract(epoch FROM at) FROM evidence.export_event"
            f" WHERE export_id = '{export_id}' AND event = 'staged'"))
        # The first one finds cold caches everywhere.
        if number == 0:
            continue
        for name, text in PARTS.items():
            then = next(stamp for stamp, line in stamps if text in line)
            parts[name].append(1000 * (then - at))
            at = then
        total.append(1000 * (at - staged))
    waiting.end()
    size = f"{count} archives of 2 MB, one at a time"
    return [report.measured(what, size, statistics.median(times),
                            report.milliseconds)
            for what, times in (
                ("STAGED to confirmed by an idle uploader, median", total),
                *((f"of that: {name}", parts[name]) for name in PARTS))]


def idle(bench, target):
    """CPU and statements of an uploader that has nothing to do."""
    seconds = 10 if bench.quick else IDLE_SECONDS
    target.query(f"ALTER ROLE {store.ROLE} SET log_statement = 'all'")
    waiting = store.Uploader(bench)
    target.request(small(bench))
    waiting.wait_for("uploaded")
    # It has asked whether there is more, and has gone to sleep.
    while target.query(
            "SELECT count(*) FROM pg_stat_activity"
            f" WHERE usename = '{store.ROLE}' AND state = 'idle' AND"
            " clock_timestamp() - state_change > '1 second'") != "1":
        time.sleep(0.05)
    backend = target.query("SELECT pid FROM pg_stat_activity"
                           f" WHERE usename = '{store.ROLE}'")
    bench.note(f"idle for {seconds} s")
    cpu, asked = server.cpu_of(waiting.pid), statements(bench, backend)
    time.sleep(seconds)
    cpu = server.cpu_of(waiting.pid) - cpu
    asked = statements(bench, backend) - asked
    waiting.end()
    target.query(f"ALTER ROLE {store.ROLE} RESET log_statement")
    return [report.measured("idle uploader: CPU", f"{seconds} s", 1000 * cpu,
                            report.milliseconds),
            report.measured("idle uploader: statements", f"{seconds} s",
                            asked, str)]


def statements(bench, backend):
    """How many statements the server's log has of a backend."""
    log = pathlib.Path(bench.folder) / "bench" / "server.log"
    with open(log, encoding="utf-8", errors="replace") as file:
        return sum(f"[{backend}]" in line and ("statement:" in line
                                               or "execute " in line)
                   for line in file)
