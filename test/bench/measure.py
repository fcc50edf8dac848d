#!/usr/bin/env python3
"""Time one export against COPY | sha256sum | zip -6, pair by pair.

Wall time of the rival is that of its pipeline, connection included; of the
product it is the time from the claim of the job until another session sees
READY, so that the archive is staged and committed.

CPU is what client processes and server used together.  The server's share is
the growth of user and system time of all its processes, those that ended
during the run included (the postmaster has inherited theirs).  The one
session that requests and watches is left out: it is the stopwatch.  The
kernel counts in ticks of 10 ms, so figures below 0.1 s are coarse.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")

COLUMNS = ("id, created_at, tenant_id, actor_id, actor_role, action, "
           "target_type, target_id, outcome, error_code, request_id, "
           "source_fingerprint, summary")

PIPELINE = """
set -eu
mkfifo hash
sha256sum <hash >sum &
psql -X -q -d postgres -c "$COPY" | tee hash | zip -q -6 rival.zip -
wait
"""

POLL_MS = 5


class Session:
    """A psql that stays connected, for statements one after the other."""

    END = "--end--"

    def __init__(self):
        self.psql = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
             "-d", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.query("SELECT pg_backend_pid()"))

    def query(self, sql):
        """Return the output of one statement."""
        self.psql.stdin.write(f"{sql};\n\\echo {self.END}\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line.rstrip("\n") == self.END:
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        raise SystemExit("bench: a statement failed")


class ServerClock:
    """The CPU seconds that all processes of a server have used."""

    def __init__(self, postmaster, without):
        self.postmaster = postmaster
        self.without = without

    def children(self):
        path = f"/proc/{self.postmaster}/task/{self.postmaster}/children"
        return {int(pid) for pid in pathlib.Path(path).read_text().split()}

    @staticmethod
    def ticks(pid, fields):
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return 0
        # The program's name may hold blanks; the rest follows the last ).
        values = text.rpartition(")")[2].split()
        return sum(int(values[field - 3]) for field in fields)

    def read(self):
        total = self.ticks(self.postmaster, (14, 15, 16, 17))
        for pid in self.children() - {self.without}:
            total += self.ticks(pid, (14, 15))
        return total / TICK

    def settle(self, before):
        """Wait until the processes of a run have ended and are counted."""
        deadline = time.monotonic() + 2
        while self.children() - before and time.monotonic() < deadline:
            time.sleep(0.01)


def client_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_rival(window_sql, folder):
    """Run the pipeline; return wall seconds and the archive's bytes."""
    copy = (f"COPY (SELECT {COLUMNS} FROM evidence.audit_log"
            f" WHERE {window_sql} ORDER BY created_at, id)"
            " TO STDOUT (FORMAT csv, HEADER)")
    for name in ("hash", "sum", "rival.zip"):
        (folder / name).unlink(missing_ok=True)
    start = time.perf_counter()
    subprocess.run(["bash", "-c", PIPELINE], check=True, cwd=folder,
                   env={**os.environ, "COPY": copy})
    return time.perf_counter() - start, (folder / "rival.zip").stat().st_size


def run_product(session, start_at, end_at, rows):
    """Make one export; return wall seconds and the archive's bytes."""
    export_id = session.query(
        "SELECT evidence.request_audit_export("
        f"'{start_at}', '{end_at}', 'benchmark')")
    session.query(f"""DO $$
        BEGIN
            LOOP
                PERFORM FROM evidence.audit_export
                  WHERE id = '{export_id}'
                    AND state IN ('READY', 'FAILED', 'CANCELLED');
                EXIT WHEN FOUND;
                PERFORM pg_sleep({POLL_MS / 1000});
            END LOOP;
        END
        $$""")
    wall, size, count = session.query(
        "SELECT extract(epoch FROM clock_timestamp() - j.started_at),"
        "       e.archive_bytes, e.record_count"
        "  FROM evidence.audit_export AS e"
        "  JOIN evidence.background_job AS j ON j.export_id = e.id"
        f" WHERE e.id = '{export_id}' AND e.state = 'READY'").split("|")
    if int(count) != rows:
        raise SystemExit(f"bench: exported {count} rows instead of {rows}")
    return float(wall), int(size)


def measured(run, clock):
    """Return (wall, client CPU, server CPU, bytes) of one run."""
    before = clock.children()
    server, client = clock.read(), client_cpu()
    wall, size = run()
    clock.settle(before)
    return wall, client_cpu() - client, clock.read() - server, size


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def print_table(rows, rivals, products):
    def ratio(value):
        return statistics.median(value(product) / value(rival)
                                 for product, rival in zip(products, rivals))

    def wall(run):
        return run[0]

    def cpu(run):
        return run[1] + run[2]

    print(f"\n{rows} rows, medians of {len(rivals)} runs in turns;"
          " wall x and cpu x are medians of the pairs' ratios\n")
    print("| what | wall s | client cpu s | server cpu s | MB | wall x | cpu x |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for what, runs, wall_x, cpu_x in (
            ("COPY \\| sha256sum \\| zip -6", rivals, 1, 1),
            ("pg_evidence, claim to READY", products, ratio(wall),
             ratio(cpu))):
        print(f"| {what} | {median(runs, 0):.3f} | {median(runs, 1):.2f}"
              f" | {median(runs, 2):.2f} | {median(runs, 3) / 1e6:.1f}"
              f" | {wall_x:.2f} | {cpu_x:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    for name in ("rows", "pairs", "window", "postmaster"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()

    session = Session()
    clock = ServerClock(options.postmaster, session.pid)
    month = ("timestamptz '2026-01-01 00:00:00+00'"
             " + interval '744 hours' * ")
    start_at, end_at = session.query(
        f"SELECT {month} {options.window}, {month} {options.window + 1}"
    ).split("|")
    window_sql = (f"created_at >= '{start_at}' AND created_at < '{end_at}'")
    rivals, products = [], []
    with tempfile.TemporaryDirectory() as folder:
        contenders = [
            (rivals, lambda: run_rival(window_sql, pathlib.Path(folder))),
            (products, lambda: run_product(session, start_at, end_at,
                                           options.rows)),
        ]
        # One round warms the caches and is not counted.
        for _, run in contenders:
            run()
        for turn in range(options.pairs):
            order = contenders if turn % 2 == 0 else contenders[::-1]
            for runs, run in order:
                runs.append(measured(run, clock))
    print_table(options.rows, rivals, products)


if __name__ == "__main__":
    main()
