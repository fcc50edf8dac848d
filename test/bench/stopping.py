"""How soon an exporter stops: by cancel_audit_export(), from cancelled_at to
stopped_at, and by SIGTERM, from the signal to the end of the process.

At random moments of the whole export, from the claim to READY, and of one
with a filter that matches next to nothing.  Moments at which it had already
finished do not count.
"""

import os
import random
import signal
import statistics
import time

import archive
import report
import server

MOMENTS = 25
LIMIT_MS = 100
NEEDLE = '{"target_id": ["no such target"]}'


def stop(bench):
    target = bench.server()
    result = []
    for rows in bench.sizes(1_000_000):
        window = bench.window("data", rows)
        for filters, what in (("{}", ""), (NEEDLE, ", matching none")):
            length = statistics.median(
                archive.wall_to_ready(target, target.export(window, filters))
                for _ in range(3))
            for name, stop_one in (("cancel", by_cancel),
                                   ("SIGTERM", by_signal)):
                bench.note(f"{name}{what}, within {length:.2f} s")
                times = moments(bench, target, window, filters, length,
                                stop_one)
                size = (f"{report.rows_text(rows)}{what},"
                        f" {len(times)} moments")
                result.append(report.measured(
                    f"{name} to the exporter's stop, worst", size,
                    max(times), report.milliseconds, LIMIT_MS))
                result.append(report.measured(
                    f"{name} to the exporter's stop, median", size,
                    statistics.median(times), report.milliseconds))
            target.forget_archives()
    return result


def moments(bench, target, window, filters, length, stop_one):
    """Stop an export at each of some moments; return the milliseconds."""
    choice = random.Random(1)
    wanted = 6 if bench.quick else MOMENTS
    times = []
    for _ in range(3 * wanted):
        export_id = target.request(window, filters)
        target.wait_for("EXISTS (SELECT FROM evidence.attempt"
                        f" WHERE export_id = '{export_id}')", step_ms=1)
        time.sleep(choice.uniform(0, length))
        stopped = stop_one(target, export_id)
        if stopped is not None:
            times.append(stopped)
        if len(times) == wanted:
            break
    if len(times) < wanted / 2:
        raise server.Failed(f"only {len(times)} exports were stopped before"
                            " they had finished")
    return times


def cancel(target, export_id):
    """False if the export had finished."""
    return target.query(f"""DO $$
        BEGIN
            PERFORM evidence.cancel_audit_export('{export_id}', 'benchmark');
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            NULL;
        END
        $$; SELECT state = 'CANCELLED' FROM evidence.audit_export
             WHERE id = '{export_id}'""") == "t"


def wait_stopped(target, export_id):
    target.wait_for("EXISTS (SELECT FROM evidence.audit_export"
                    f" WHERE id = '{export_id}' AND stopped_at IS NOT NULL)")


def by_cancel(target, export_id):
    if not cancel(target, export_id):
        return None
    wait_stopped(target, export_id)
    return float(target.query(
        "SELECT 1000 * extract(epoch FROM stopped_at - cancelled_at)"
        f" FROM evidence.audit_export WHERE id = '{export_id}'"))


def by_signal(target, export_id):
    """The export is cancelled afterwards, or it would be made again."""
    pid = target.query(
        "SELECT pid FROM evidence.attempt"
        f" WHERE export_id = '{export_id}' AND ended_at IS NULL")
    took = None
    if pid:
        sent = time.monotonic()
        os.kill(int(pid), signal.SIGTERM)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.0005)
        took = 1000 * (time.monotonic() - sent)
    if cancel(target, export_id):
        wait_stopped(target, export_id)
        return took
    return None
