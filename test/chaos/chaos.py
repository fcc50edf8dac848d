#!/usr/bin/env python3
"""Run sessions, pgbench and a killer against a server, then judge it.

Called by "run", which made the server; see world.py for the parts.
"""

import argparse
import sys
import time

from beside import IMPORT, Observer, Pgbench, RECORD
from invariants import Invariants
from killer import Killer, Server
from sessions import make_sessions
from world import Connection, ROW_SECRET, World

ROLES = 5
ROWS = 20000

# The secret of the rows is a parameter, so that no statement shows it.
FILL = """
INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, actor_role,
       action, target_type, target_id, outcome, summary)
SELECT now() - n * interval '30 days' / %s, 'tenant-' || n %% 3,
       'user-' || n %% 17, 'clerk',
       (ARRAY['session.login', 'record.read', 'record.update'])[1 + n %% 3],
       'record', n::text, (ARRAY['success', 'failure', 'denied'])[1 + n %% 3],
       CASE n %% 20 WHEN 0 THEN 'sent password=' || %s WHEN 1 THEN '=1+1'
       ELSE 'event number ' || n END
  FROM generate_series(1, %s) AS n
"""

# An exporter may need so much more than an idle session.
EXPORTER_KB = 5 * 1024

TABLE = (
    ("seed", None), ("seconds", None), ("sessions", None),
    ("requests", "requests"),
    ("requests whose answer was lost", "requests without an answer"),
    ("… of them committed", "of them committed"),
    ("requests rolled back", "requests rolled back"),
    ("cancels", "cancels"), ("revocations", "revocations"),
    ("grants", "grants"), ("packages fetched", "packages fetched"),
    ("verifications", "verifications"),
    ("calls of run_once()", "calls of run_once()"),
    ("connections lost", "connections lost"))


def prepare(connection):
    connection.rows("CREATE EXTENSION pg_evidence")
    roles = [(f"requester_{n}", "requester") for n in range(ROLES)]
    roles += [("operator", "operator"), ("auditor", "auditor"),
              ("application", "writer")]
    for role, capability in roles:
        connection.rows(f"CREATE ROLE {role} LOGIN")
        connection.rows("SELECT evidence.grant_capability(%s, %s)",
                        role, capability)
        if capability == "requester":
            connection.rows("SELECT evidence.grant_capability(%s, 'writer')",
                            role)
    connection.rows(FILL, ROWS, ROW_SECRET, ROWS)


def print_table(world, observer, states):
    lines = ["| what | number |", "| --- | --- |"]
    for name, counter in TABLE:
        number = world.counts[counter] if counter else \
            getattr(world.options, name)
        lines.append(f"| {name} | {number} |")
    for name in sorted(world.counts):
        if ", " in name:
            lines.append(f"| kills: {name} | {world.counts[name]} |")
    for state, code, number in states:
        lines.append(f"| exports {state}{' ' + code if code else ''} |"
                     f" {number} |")
    lines.append("| packages compared with the log row by row |"
                 f" {world.counts['packages read by a stranger']} |")
    for kind, kb in observer.largest.items():
        lines.append(f"| largest {kind} over an idle session |"
                     f" {(kb - observer.idle_kb) / 1024:.1f} MB |")
    lines.append(f"| faults | {len(world.faults)} |")
    text = "\n".join(lines) + "\n"
    (world.work / "table").write_text(text)
    print("\n" + text, flush=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("seed", "seconds", "sessions"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("bin", "data", "work", "server-user"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()

    world = World(options)
    prepare(Connection("postgres"))
    server = Server(world)
    observer = Observer(world, server)
    parts = [*make_sessions(world), observer,
             Pgbench(world, "record", "application", RECORD),
             Pgbench(world, "import", "postgres", IMPORT),
             Killer(world, server)]

    print(f"{options.sessions} sessions work for {options.seconds} s",
          flush=True)
    world.begun = time.monotonic()
    for part in parts:
        part.start()
    for part in parts:
        part.join(options.seconds + 150)
        if part.is_alive():
            world.fault(f"{part.name} hangs")

    print("the run is over; what is left comes to its end", flush=True)
    invariants = Invariants(world)
    if not invariants.settle():
        sys.exit(1)
    invariants.check()
    invariants.report(
        "11", "an exporter needs at most 5 MB more than an idle session",
        [f"{observer.largest['exporter'] - observer.idle_kb} kB"]
        if observer.largest["exporter"] - observer.idle_kb > EXPORTER_KB
        else [])
    states = invariants.connection.rows(
        "SELECT state, error_code, count(*) FROM evidence.audit_export"
        " GROUP BY 1, 2 ORDER BY 1, 2")
    print_table(world, observer, states)
    print("refusals: " + ", ".join(
        f"{code} {n}" for code, n in sorted(world.refusals.items())))
    sys.exit(1 if world.faults else 0)


if __name__ == "__main__":
    main()
