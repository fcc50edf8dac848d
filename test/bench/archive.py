"""One archive against COPY | sha256sum | zip -6, which is what one would do
by hand to get a compressed file and its hash, in one pass over the rows.

Wall time of the rival is that of its pipeline, connection included; of the
product it is the time from the claim of the job until another session sees
READY, so that the archive is staged and committed.  The rival neither guards
nor redacts, and it has both cores.

CPU is what client programs and server used together.
"""

import time

import report
import server

PIPELINE = """
set -eu
mkfifo hash
sha256sum <hash >sum &
psql -X -q -d postgres -c "$COPY" | tee hash | zip -q -6 rival.zip -
wait
"""


def copy_statement(window):
    """The rows of an export, as CSV without guard and redaction."""
    return (f"COPY (SELECT {server.COLUMNS} FROM evidence.audit_log"
            f" WHERE {window.where()} ORDER BY created_at, id)"
            " TO STDOUT (FORMAT csv, HEADER)")


def wall_to_ready(target, export_id):
    """Seconds from the claim until now, when READY has just been seen."""
    return float(target.query(
        "SELECT extract(epoch FROM clock_timestamp() - started_at)"
        f" FROM evidence.background_job WHERE export_id = '{export_id}'"))


def run_rival(bench, target, window):
    """Run the pipeline; return its wall seconds."""
    for name in ("hash", "sum", "rival.zip"):
        (bench.scratch / name).unlink(missing_ok=True)
    start = time.perf_counter()
    target.run("bash", "-c", PIPELINE, cwd=bench.scratch,
               environment={"COPY": copy_statement(window)})
    return time.perf_counter() - start


def run_product(target, window):
    return wall_to_ready(target, target.export(window))


def with_cpu(target, run):
    """Return (wall, CPU of server and clients) of one run."""
    target.forget_archives()
    before = target.children()
    server_cpu, client_cpu = target.cpu(), server.client_cpu()
    wall = run()
    target.settle(before)
    return wall, (target.cpu() - server_cpu
                  + server.client_cpu() - client_cpu)


def archive(bench):
    target = bench.server()
    result = []
    for rows in bench.sizes(50_000, 1_000_000):
        window = bench.window("data", rows)
        rivals, ours = report.in_turns(
            bench.runs(9 if rows < 500_000 else 5),
            lambda: with_cpu(target,
                             lambda: run_rival(bench, target, window)),
            lambda: with_cpu(target, lambda: run_product(target, window)),
            bench.note)
        # The goals of the size that is nearer.
        goals = (0.40, 0.28) if rows > 200_000 else (0.50, 0.35)
        for what, field, goal in (("wall time", 0, goals[0]),
                                  ("CPU", 1, goals[1])):
            result.append(report.compared(
                f"archive, claim to READY: {what}", report.rows_text(rows),
                "COPY | sha256sum | zip -6", [run[field] for run in ours],
                [run[field] for run in rivals], report.seconds, goal))
    return result
