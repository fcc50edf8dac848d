"""What a session waits for: record_audit_event() and request_audit_export()
against INSERTs by hand into tables of the same shape.

hand.sql makes these tables: the same columns, defaults, checks and indexes,
without triggers.  pgbench is the client of both.  Servers are durable, so
every transaction waits for its own commit to reach the disk; the figures
without that wait show what the processor alone does.
"""

import pathlib
import re
import statistics

import report
import server

HERE = pathlib.Path(__file__).resolve().parent

RECORD_SECONDS = 3

EVENT_NAMES = ("action, actor_id, actor_role, target_type, target_id,"
               " outcome, error_code, request_id, summary")
EVENT_VALUES = ("'record.update', 'user-17', 'clerk', 'record', :n,"
                " 'success', NULL, 'request-1', 'changed by hand'")
EVENT_NUMBER = "\\set n random(1, 1000000)\n"

# Only transactions after these count: the first ones of a session fill its
# caches.
WARM_UP = 20
REQUESTS = 100


def make_writer(bench):
    """A role that records events, once; returns pgbench's script for it."""
    target = bench.server()
    if target.query("SELECT to_regrole('bench_writer') IS NULL") == "t":
        target.query("CREATE ROLE bench_writer LOGIN")
        target.query("SELECT evidence.grant_capability("
                     "'bench_writer', 'writer')")
    script = bench.scratch / "record.sql"
    script.write_text(EVENT_NUMBER + "SELECT evidence.record_audit_event("
                      f"{EVENT_VALUES});\n")
    return script


def record(bench):
    target = bench.server()
    make_hand_tables(bench)
    ours = make_writer(bench)
    target.query("GRANT USAGE ON SCHEMA hand TO bench_writer")
    target.query("GRANT INSERT ON hand.audit_log TO bench_writer")
    rival = bench.scratch / "insert.sql"
    rival.write_text(EVENT_NUMBER + "INSERT INTO hand.audit_log"
                     f" ({EVENT_NAMES}) VALUES ({EVENT_VALUES});\n")

    result = []
    for clients, commit in ((1, "on"), (2, "on"), (4, "on"), (1, "off")):
        target.query("CHECKPOINT")
        rivals, products = report.in_turns(
            bench.runs(5),
            lambda: tps(bench, rival, clients, commit),
            lambda: tps(bench, ours, clients, commit), bench.note)
        size = f"{clients} client{'s' if clients > 1 else ''}"
        result.append(report.compared(
            "record_audit_event()", size + (
                "" if commit == "on" else ", not waiting for the disk"),
            "INSERT", products, rivals, lambda value: f"{value:.0f} tps",
            0.75 if commit == "on" else None, at_least=True))
    return result


def make_hand_tables(bench):
    """Once for all measurements."""
    target = bench.server()
    if target.query("SELECT to_regnamespace('hand') IS NULL") == "t":
        target.script(HERE / "hand.sql")


def tps(bench, script, clients, commit):
    """Transactions per second of one pgbench run."""
    output = bench.server().run(
        "pgbench", "-n", "-M", "prepared", "-U", "bench_writer",
        "-c", str(clients), "-j", str(min(clients, 2)),
        "-T", str(1 if bench.quick else RECORD_SECONDS), "-f", str(script),
        "postgres", capture_output=True, text=True,
        environment={"PGOPTIONS": f"-c synchronous_commit={commit}"}).stdout
    return float(re.search(r"tps = ([0-9.]+)", output)[1])


def request(bench):
    """Two rivals: the five INSERTs sent one by one between BEGIN and COMMIT,
    as a client by hand does it, and the same five in one PL/pgSQL function,
    which saves the ways between client and server.

    Exporters are off, so that none works beside the measurement.  A run has
    a requester of its own, since a quota counts that one's open exports.
    """
    target = bench.server()
    make_hand_tables(bench)
    target.set("pg_evidence.max_exporters", 0)
    ours = bench.scratch / "request.sql"
    ours.write_text(
        "BEGIN;\nSELECT evidence.request_audit_export("
        "'2025-01-01 00:00+00', '2025-01-31 00:00+00', 'benchmark');\n"
        "COMMIT;\n")
    function = bench.scratch / "function.sql"
    function.write_text("BEGIN;\nSELECT hand.request();\nCOMMIT;\n")

    result = []
    for name, script in (("5 INSERTs + COMMIT", HERE / "hand_request.sql"),
                         ("5 INSERTs in one function + COMMIT", function)):
        rivals, products = report.in_turns(
            bench.runs(15),
            lambda: latency(bench, script, "postgres"),
            lambda: latency(bench, ours, new_requester(target)),
            bench.note)
        result.append(report.compared(
            "request_audit_export() + COMMIT", "1 client", name, products,
            rivals, report.milliseconds, 1.50))
    clear_requests(target)
    target.set("pg_evidence.max_exporters", 1)
    return result


def new_requester(target):
    name = target.query("SELECT 'bench_requester_' || count(*) FROM pg_roles"
                        " WHERE rolname ~ '^bench_requester_'")
    target.query(f"CREATE ROLE {name} LOGIN")
    target.query(f"SELECT evidence.grant_capability('{name}', 'requester')")
    return name


def latency(bench, script, role):
    """The median milliseconds of the transactions of one pgbench run."""
    prefix = bench.scratch / "latency"
    bench.server().run(
        "pgbench", "-n", "-M", "prepared", "-U", role, "-c", "1",
        "-t", str(WARM_UP + REQUESTS), "-f", str(script), "--log",
        f"--log-prefix={prefix}", "postgres", capture_output=True)
    times = []
    for log in bench.scratch.glob("latency.*"):
        times = [int(line.split()[2]) for line in
                 log.read_text().splitlines()]
        log.unlink()
    if len(times) != WARM_UP + REQUESTS:
        raise server.Failed(f"pgbench logged {len(times)} transactions")
    return statistics.median(times[WARM_UP:]) / 1000


def clear_requests(target):
    """Nothing of this waits when exporters are on again."""
    target.query("SELECT count(evidence.cancel_audit_export(id, 'benchmark'))"
                 " FROM evidence.audit_export WHERE state = 'QUEUED'")
