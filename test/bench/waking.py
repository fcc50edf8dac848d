"""From the COMMIT of a request to the exporter's claim, on an idle server,
and what an idle launcher writes.
"""

import random
import time

import report
import server

REQUESTS = 60

# What somebody without a wake-up has: a program that looks every 5 seconds
# and so finds a request after 2.5 on average.
POLL_MS = 2500

# The launcher's rounds when nothing happens are 5 seconds apart.
IDLE_SECONDS = 17


def claim(bench):
    """Of an exporter that waits for its next job, as one does for a while,
    and of one whose process has to be started first.
    """
    target = bench.server()
    target.query("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    result = []
    for start, what in ((False, "an exporter waits"),
                        (True, "none is there")):
        bench.note(what)
        times = sorted(waits(target, 12 if bench.quick else REQUESTS, start))
        size = f"{len(times)} requests, {what}"
        result.append(report.measured(
            "COMMIT of a request to the exporter's claim, median", size,
            times[len(times) // 2], report.milliseconds, 20,
            "polling every 5 s, on average", POLL_MS))
        result.append(report.measured(
            "the same, 95 of 100", size, times[len(times) * 95 // 100],
            report.milliseconds))
    result.append(idle(bench, target))
    return result


def waits(target, count, start):
    """Milliseconds from sending COMMIT to the time of the claim."""
    # The same moments in every run.
    moments = random.Random(1)
    session = server.Session(target)
    for number in range(count + 1):
        if start:
            target.end_exporters()
        # The launcher has gone to sleep again.
        time.sleep(0.1 + 0.1 * moments.random())
        session.query("BEGIN")
        export_id = session.query(
            "SELECT evidence.request_audit_export('2024-01-01 00:00+00',"
            " '2024-01-31 00:00+00', 'benchmark')")
        sent = time.time()
        session.query("COMMIT")
        target.wait_ended(export_id)
        started = float(target.query(
            "SELECT extract(epoch FROM started_at)"
            f" FROM evidence.background_job WHERE export_id = '{export_id}'"))
        # The first one finds cold caches everywhere.
        if number > 0:
            yield 1000 * (started - sent)
    session.close()


def idle(bench, target):
    """WAL of some idle rounds, records of the server's own tasks left out:
    checkpoints, and the running transactions that follow them.
    """
    launcher = target.launcher()
    target.end_exporters()
    bench.note(f"idle for {IDLE_SECONDS} s")
    rounds = wake_ups(launcher)
    start = target.query("SELECT pg_current_wal_insert_lsn()")
    time.sleep(IDLE_SECONDS)
    end = target.query("SELECT pg_current_wal_insert_lsn()")
    rounds = wake_ups(launcher) - rounds
    written = 0 if start == end else int(target.query(
        "SELECT coalesce(sum(record_length), 0)"
        f" FROM pg_get_wal_records_info('{start}', '{end}')"
        " WHERE resource_manager NOT IN ('XLOG', 'Standby')"))
    if rounds < 3:
        raise server.Failed(f"the launcher woke up {rounds} times in"
                            f" {IDLE_SECONDS} s")
    return report.measured("idle launcher: WAL", f"{IDLE_SECONDS} s", written,
                           lambda value: f"{value} bytes", 0)


def wake_ups(pid):
    """How often a process has been given a processor."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[2])
