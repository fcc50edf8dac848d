"""What runs beside the sessions: pgbench as writer of the log, and an
observer of limits and memory."""

import pathlib
import subprocess
import threading

from world import Connection, Lost, MAX_EXPORTERS, QUOTA, Refused

RECORD = r"""
\set n random(1, 1000)
SELECT evidence.record_audit_event('record.update', 'user-' || :n % 7,
       target_type => 'record', target_id => :n::text,
       outcome => (ARRAY['success', 'failure', 'denied'])[1 + :n % 3],
       summary => 'changed by pgbench', tenant_id => 'tenant-' || :n % 3,
       source => '192.0.2.' || :n % 200);
"""

# An import of older events: plain INSERTs by the owner, several in one
# transaction that stays open for a moment.
IMPORT = r"""
\set n random(1, 1000)
BEGIN;
INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action,
       target_type, target_id, outcome, summary)
SELECT now() - random() * interval '30 days', 'tenant-' || :n % 3,
       'user-' || :n % 7, 'session.login', 'record', :n::text,
       (ARRAY['success', 'failure', 'denied'])[1 + :n % 3],
       '=imported by pgbench'
  FROM generate_series(1, 4);
\sleep 20 ms
END;
"""


class Pgbench(threading.Thread):
    def __init__(self, world, name, role, script):
        super().__init__(name=f"pgbench-{name}", daemon=True)
        self.world = world
        self.role = role
        self.path = world.work / f"{name}.sql"
        self.path.write_text(script)
        self.bench = None

    def run(self):
        """Its clients end with their connections, so it is started again."""
        start = 0
        while not self.world.is_over():
            start += 1
            self.bench = subprocess.Popen(
                [self.world.bin / "pgbench", "-n", "-M", "prepared", "-c", "2",
                 "-R", "20", "-T", str(self.world.options.seconds), "-U",
                 self.role, "--random-seed",
                 str(self.world.options.seed + start), "-f", self.path,
                 "postgres"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True)
            while self.bench.poll() is None and not self.world.is_over():
                self.world.wait(0.2)
            self.bench.terminate()
            self.bench.communicate()
            self.world.count("starts of pgbench")
            self.world.wait(0.5)


def anonymous_kb(pid):
    """What a process has for itself."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().split("\n"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Observer(threading.Thread):
    """Every state that it sees is committed, and must keep the limits."""

    def __init__(self, world, server):
        super().__init__(name="observer", daemon=True)
        self.world = world
        self.server = server
        self.idle_kb = 0
        self.largest = {"exporter": 0, "launcher": 0}

    def run(self):
        while not self.world.is_over():
            try:
                connection = Connection("postgres")
                if self.idle_kb == 0:
                    self.idle_kb = anonymous_kb(
                        connection.value("SELECT pg_backend_pid()"))
                while not self.world.is_over():
                    self.look_at_limits(connection)
                    self.look_at_memory()
                    self.world.wait(0.1)
            except (Lost, Refused):
                self.world.wait(0.2)

    def look_at_limits(self, connection):
        self.world.count("looks at the limits")
        running = connection.value(
            "SELECT count(*) FROM evidence.background_job"
            " WHERE state = 'RUNNING'")
        if running > MAX_EXPORTERS:
            self.world.fault(f"{running} exports run at the same time")
        for role, number in connection.rows(
                "SELECT requested_by, count(*) FROM evidence.audit_export"
                " WHERE state IN ('QUEUED', 'PROCESSING')"
                " GROUP BY requested_by HAVING count(*) > %s", QUOTA):
            self.world.fault(f"{role} has {number} unfinished exports")

    def look_at_memory(self):
        for process in self.server.processes():
            if process.kind in self.largest:
                self.largest[process.kind] = max(
                    self.largest[process.kind], anonymous_kb(process.pid))
