"""What a recipient does: take an archive out of the server, and check it."""

import subprocess
import time

import report
import server

# 50 MB in chunks of 64 kB.
CHUNKS = 763


def make_archive(bench, rows):
    """Return the id of a READY export."""
    return bench.server().export(bench.window("data", rows))


def fetch(bench):
    """fetch_audit_export() against a SELECT of the same chunks by somebody
    who may read the table, both as bytes through the same psql.

    A grant is given beforehand, as it always must be; its own check of all
    bytes is a step of its own and not part of taking them.
    """
    target = bench.server()
    result = []
    for rows in bench.sizes(1_000_000):
        export_id = make_archive(bench, rows)
        session = server.Session(target)
        grant = session.query("SELECT evidence.grant_audit_export_download("
                              f"'{export_id}')")
        chunks = int(session.query(
            f"SELECT least(archive_chunks, {CHUNKS})"
            f" FROM evidence.audit_export WHERE id = '{export_id}'"))
        ours = ("SELECT (f).seq, (f).data FROM (SELECT"
                f" evidence.fetch_audit_export('{grant}', 0, {chunks}) AS f"
                ") AS s")
        rival = ("SELECT c.seq, c.data FROM evidence.audit_export AS e"
                 " JOIN evidence.archive_chunk AS c"
                 " ON c.attempt_token = e.archive_token"
                 f" WHERE e.id = '{export_id}' AND c.seq < {chunks}"
                 " ORDER BY c.seq")
        rivals, products = report.in_turns(
            bench.runs(15),
            lambda: throughput(session, rival, bench.scratch, chunks),
            lambda: throughput(session, ours, bench.scratch, chunks),
            bench.note)
        result.append(report.compared(
            "fetch_audit_export() to the client",
            f"{chunks * 65536 / 1e6:.0f} MB", "SELECT of the chunks",
            products, rivals, lambda value: f"{value:.0f} MB/s", 0.90,
            at_least=True))
        target.forget_archives()
    return result


def throughput(session, select, folder, chunks):
    """MB a second of one statement whose bytes go to the client.

    The client counts them in a pipe, so that no disk is part of it.
    """
    start = time.perf_counter()
    session.query(f"COPY ({select}) TO STDOUT (FORMAT binary)",
                  end=f" \\g |wc -c >{folder}/bytes")
    took = time.perf_counter() - start
    size = int((folder / "bytes").read_text())
    if size < (chunks - 1) * 65536:
        raise server.Failed(f"{size} bytes came instead of {chunks} chunks")
    return size / 1e6 / took


def verify(bench):
    """pg_evidence verify against unzip | sha256sum, which parses nothing."""
    target = bench.server()
    result = []
    for rows in bench.sizes(1_000_000):
        export_id = make_archive(bench, rows)
        package = bench.scratch / "package.zip"
        target.run("pg_evidence", "download", export_id, "--output",
                   str(package), stdout=subprocess.DEVNULL,
                   environment={"PGDATABASE": "postgres"})
        rivals, products = report.in_turns(
            bench.runs(7),
            lambda: timed(bench, "unzip -p package.zip records.csv"
                                 " | sha256sum"),
            lambda: timed(bench, "pg_evidence verify package.zip"),
            bench.note)
        for what, field in (("wall time", 0), ("CPU", 1)):
            result.append(report.compared(
                f"pg_evidence verify: {what}", report.rows_text(rows),
                "unzip -p | sha256sum", [run[field] for run in products],
                [run[field] for run in rivals], report.seconds, 1.50))
        package.unlink()
        target.forget_archives()
    return result


def timed(bench, command):
    """Return (wall, CPU) of one command."""
    cpu, start = server.client_cpu(), time.perf_counter()
    subprocess.run(["bash", "-c", f"set -o pipefail; {command} >/dev/null"],
                   check=True, cwd=bench.scratch)
    return time.perf_counter() - start, server.client_cpu() - cpu
