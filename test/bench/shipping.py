"""How fast audit records leave for a log collector, and what that costs.

The rival is the least that any queue in a table has to do: pgbench claims 256
rows with SKIP LOCKED and marks them as sent, in a table of the same shape.  It
reads no record, writes no line and waits for no file.

The worker sleeps for an hour here, and passes are made by CALL ship_pass(),
which does the same in a session.
"""

import pathlib
import re
import time

import report
import server
import writing

BATCH = 256

# Records of a measurement that is about speed and not about size.
USUAL = 100_000

# A backlog, and rows that were sent before and lie beside it.
MANY = 1_000_000

CLAIM = f"""\
WITH claimed AS (
    SELECT ctid FROM hand.audit_delivery WHERE state = 'pending'
     ORDER BY audit_created_at, audit_id LIMIT {BATCH}
       FOR UPDATE SKIP LOCKED)
UPDATE hand.audit_delivery AS d SET state = 'sent', sent_at = now()
  FROM claimed WHERE d.ctid = claimed.ctid;
"""


class Lane:
    """Fills and empties the two tables."""

    def __init__(self, bench):
        self.bench = bench
        self.target = bench.server()
        self.rows = min(bench.sizes(USUAL)[0], USUAL)
        self.many = 10 * self.rows
        self.window = bench.window("data", self.many)
        self.file = pathlib.Path(bench.folder) / "shipped.jsonl"
        self.script = bench.scratch / "claim.sql"
        self.script.write_text(CLAIM)
        writing.make_hand_tables(bench)
        self.switch_on()
        self.session = server.Session(self.target)

    def switch_on(self):
        """The worker's first pass finds nothing; the next comes in an hour."""
        self.empty("evidence")
        self.write_to(self.file)
        self.target.set("pg_evidence.ship_interval", "1h")
        self.target.set("pg_evidence.ship", "on")

    def close(self):
        """Nothing waits for the measurements that follow."""
        self.session.close()
        self.target.set("pg_evidence.ship", "off")
        self.empty("evidence")
        self.file.unlink(missing_ok=True)

    def write_to(self, path):
        self.target.set("pg_evidence.ship_file", path)

    def empty(self, schema):
        self.guarded(f"TRUNCATE {schema}.audit_delivery")

    def guarded(self, statement):
        """What the triggers of the ledger would refuse to everybody."""
        table = "evidence.audit_delivery"
        self.target.query(
            f"BEGIN; ALTER TABLE {table} DISABLE TRIGGER USER;"
            f" {statement}; ALTER TABLE {table} ENABLE ALWAYS TRIGGER guard;"
            f" ALTER TABLE {table} ENABLE ALWAYS TRIGGER guard_truncate;"
            " COMMIT")

    def fill(self, schema, pending, sent):
        """Rows that were sent long ago, then those that are to be sent."""
        table = f"{schema}.audit_delivery"
        self.empty(schema)
        self.guarded(
            f"INSERT INTO {table} (audit_created_at, audit_id, state, sent_at)"
            " SELECT timestamptz '2020-01-01' + n * interval '1 second', -n,"
            f"       'sent', now() FROM generate_series(1, {sent}) AS n")
        self.guarded(
            f"INSERT INTO {table} (audit_created_at, audit_id)"
            " SELECT created_at, id FROM evidence.audit_log"
            f" WHERE {self.window.where()}"
            f" ORDER BY created_at, id LIMIT {pending}")
        self.target.query(f"VACUUM (ANALYZE) {table}")
        self.target.query("CHECKPOINT")

    def ship(self, pending, sent=0):
        """Records a second of one pass."""
        self.fill("evidence", pending, sent)
        self.file.unlink(missing_ok=True)
        started = time.monotonic()
        self.session.query("CALL evidence.ship_pass()")
        took = time.monotonic() - started
        left = self.target.query("SELECT count(*) FROM evidence.audit_delivery"
                                 " WHERE state = 'pending'")
        if left != "0":
            raise server.Failed(f"{left} records were not shipped")
        return pending / took

    def claim(self, pending, sent=0):
        """Rows a second of the rival."""
        self.fill("hand", pending, sent)
        output = self.target.run(
            "pgbench", "-n", "-M", "prepared", "-c", "1",
            "-t", str(-(-pending // BATCH)), "-f", str(self.script),
            "postgres", capture_output=True, text=True).stdout
        if self.target.query("SELECT count(*) FROM hand.audit_delivery"
                             " WHERE state = 'pending'") != "0":
            raise server.Failed("the rival left rows")
        return BATCH * float(re.search(r"tps = ([0-9.]+)", output)[1])


def rate(value):
    return f"{value:,.0f} rows/s"


def ship(bench):
    lane = Lane(bench)
    try:
        return (beside_sent(bench, lane) + [in_memory(bench, lane)]
                + under_snapshot(bench, lane) + [growth(bench, lane)])
    finally:
        lane.close()


def beside_sent(bench, lane):
    """Against the claim, and against itself with nothing beside it."""
    result = []
    alone = None
    for sent in (0, lane.rows, lane.many):
        rivals, ours = report.in_turns(
            bench.runs(5), lambda: lane.claim(lane.rows, sent),
            lambda: lane.ship(lane.rows, sent), bench.note)
        size = f"{lane.rows:,} records, {sent:,} sent before"
        result.append(report.compared(
            "shipping to a file", size, f"bare claim of {BATCH}", ours,
            rivals, rate, 0.50, at_least=True))
        if alone is None:
            alone = ours
        else:
            result.append(report.compared(
                "the same against itself", size, "none sent before", ours,
                alone, rate, 0.85, at_least=True))
    return result


def in_memory(bench, lane):
    """What is left when the sink's disk costs nothing: the difference to the
    file on disk is the fsync of each batch."""
    memory = pathlib.Path("/dev/shm/pg-evidence-bench.jsonl")

    def shipped(path):
        lane.write_to(path)
        path.unlink(missing_ok=True)
        return lane.ship(lane.rows)

    try:
        disk, ours = report.in_turns(
            bench.runs(5), lambda: shipped(lane.file),
            lambda: shipped(memory), bench.note)
    finally:
        lane.write_to(lane.file)
        memory.unlink(missing_ok=True)
    return report.compared(
        "shipping to a file in memory", f"{lane.rows:,} records",
        "to a file on disk", ours, disk, rate, None)


def under_snapshot(bench, lane):
    """While a snapshot as old as an export's is open, no index entry of a row
    that was sent can be cleaned away."""
    holder = server.Session(lane.target)

    def held(run):
        def under():
            # The snapshot is older than the rows' end and not their beginning.
            lane_fill, lane.fill = lane.fill, fill_and_hold
            try:
                return run(lane.rows)
            finally:
                lane.fill = lane_fill
                holder.query("COMMIT")

        def fill_and_hold(*arguments):
            Lane.fill(lane, *arguments)
            holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.query("SELECT count(*) FROM pg_class")
        return under

    try:
        free, ours = report.in_turns(
            bench.runs(5), lambda: lane.ship(lane.rows), held(lane.ship),
            bench.note)
        bare, bare_held = report.in_turns(
            bench.runs(3), lambda: lane.claim(lane.rows), held(lane.claim),
            bench.note)
    finally:
        holder.close()
    size = f"{lane.rows:,} records, a snapshot is open"
    return [
        report.compared("shipping to a file", size, "itself without", ours,
                        free, rate, 0.80, at_least=True),
        report.compared(f"for comparison: the bare claim of {BATCH}", size,
                        "itself without", bare_held, bare, rate, None)]


def growth(bench, lane):
    """Ten times the backlog in ten times the time."""
    short, long = report.in_turns(
        bench.runs(3), lambda: 10 * lane.rows / lane.ship(lane.rows),
        lambda: lane.many / lane.ship(lane.many), bench.note)
    return report.compared(
        "emptying a backlog", f"{lane.many:,} records",
        f"10 times that of {lane.rows:,}", long, short, report.seconds, 1.10)


def writers(bench):
    """What shipping costs those who write: each record's promise, and the
    shipper at work beside them."""
    target = bench.server()
    script = writing.make_writer(bench)

    def shipping(state):
        target.set("pg_evidence.ship", state)
        return writing.tps(bench, script, clients, "on")

    result = []
    try:
        target.set("pg_evidence.ship_interval", "5s")
        for clients in (1, 2, 4):
            off, on = report.in_turns(
                bench.runs(5), lambda: shipping("off"),
                lambda: shipping("on"), bench.note)
            result.append(report.compared(
                "record_audit_event() with ship = on",
                f"{clients} client{'s' if clients > 1 else ''}", "ship = off",
                on, off, lambda value: f"{value:.0f} tps", 0.70,
                at_least=True))
    finally:
        target.set("pg_evidence.ship", "off")
    return result
