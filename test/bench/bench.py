#!/usr/bin/env python3
"""Measure pg_evidence against what one would use instead.

  bench.py --folder SERVERS [--only "NAME ..."] [--runs N] [--quick]
           [--rows "N ..."] [--events FILE]

Prints one Markdown table on standard output, progress on standard error.
Started by test/bench/run, which makes the servers.  Each measurement is a
function that returns rows of the table; what it compares, and why that is
fair, stands in its own comment.
"""

import argparse
import dataclasses
import pathlib
import shutil
import sys
import tempfile
import time

import archive
import delivering
import reading
import report
import scale
import server
import shipping
import stopping
import store
import taking
import waking
import writing

HERE = pathlib.Path(__file__).resolve().parent

# In the order of running: what writes to the log comes before it is filled,
# what needs the largest log comes last.
MEASUREMENTS = {
    "record": writing.record,
    "request": writing.request,
    "writers": shipping.writers,
    "claim": waking.claim,
    "archive": archive.archive,
    "chain": reading.chain,
    "rules": reading.rules,
    "linear": reading.linear,
    "stop": stopping.stop,
    "fetch": taking.fetch,
    "verify": taking.verify,
    "ship": shipping.ship,
    "upload": delivering.upload,
    "uploads": delivering.uploads,
    "download": delivering.fetch_object,
    "uploader": delivering.uploader,
    "memory": scale.memory,
    "growth": scale.growth,
}

HOURS_OF_WINDOW = 744


@dataclasses.dataclass
class Window:
    """A month of the log that holds so many rows."""

    start_at: str
    end_at: str
    rows: int

    def where(self):
        return (f"created_at >= '{self.start_at}'"
                f" AND created_at < '{self.end_at}'")


class Bench:
    """What all measurements share."""

    def __init__(self, options):
        self.quick = options.quick
        self.events = options.events
        self.only_runs = options.runs
        self.only_rows = options.rows
        self.folder = options.folder
        self.servers = {}
        self.windows = {}
        self.store_running = None
        self.scratch = pathlib.Path(tempfile.mkdtemp())

    def note(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr,
              flush=True)

    def runs(self, usual):
        """How many pairs to run."""
        return self.only_runs or (max(2, usual // 3) if self.quick else usual)

    def sizes(self, *usual):
        """How many rows, for each size of a measurement."""
        if self.only_rows:
            return self.only_rows
        if self.quick:
            return sorted({min(rows, 50_000) for rows in usual})
        return usual

    def server(self, name="bench"):
        """The server with the product, or with another build of it."""
        if name not in self.servers:
            port = 5432 if name == "bench" else 5433
            self.servers[name] = server.Server(self.folder / name, port)
        return self.servers[name]

    def store(self):
        """The object store, started when it is first asked for."""
        if self.store_running is None:
            self.note("starting an object store")
            self.store_running = store.Store(self.scratch)
        return self.store_running

    def close(self):
        if self.store_running is not None:
            self.store_running.stop()
        shutil.rmtree(self.scratch)

    def window(self, kind, rows, name="bench", length=0):
        """A month of rows, filled in when it is first asked for.

        kind is the name of a script here that makes them.
        """
        key = (name, kind, rows, length)
        if key not in self.windows:
            number = sum(other[0] == name for other in self.windows)
            self.windows[key] = self.fill(self.server(name), kind, rows,
                                          length, number)
        return self.windows[key]

    def fill(self, target, kind, rows, length, number):
        self.note(f"filling in {rows} rows")
        times = [target.query(
            "SELECT timestamptz '2026-01-01 00:00:00+00'"
            f" + interval '{HOURS_OF_WINDOW} hours' * {month}")
                 for month in (number, number + 1)]
        target.script(HERE / f"{kind}.sql", rows=rows, start=times[0],
                      length=length, events=self.events or "")
        target.query("VACUUM (FREEZE, ANALYZE) evidence.audit_log")
        target.query("CHECKPOINT")
        return Window(*times, rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rows", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=pathlib.Path)
    options = parser.parse_args()
    options.rows = [int(rows) for rows in options.rows.split()]
    names = options.only.split() or list(MEASUREMENTS)
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        sys.exit(f"bench: no measurement {' '.join(sorted(unknown))};"
                 f" there are {' '.join(MEASUREMENTS)}")
    if not pathlib.Path("/proc/self/schedstat").exists():
        sys.exit("bench: this kernel does not tell the CPU time of a process")

    bench = Bench(options)
    rows = []
    try:
        for name, measure in MEASUREMENTS.items():
            if name in names:
                bench.note(f"measuring {name}")
                rows += measure(bench)
    except server.Failed as failure:
        sys.exit(f"bench: {failure}")
    finally:
        # What has been measured is shown even if the rest failed.
        print(report.table(rows))
        bench.close()


if __name__ == "__main__":
    main()
