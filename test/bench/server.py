"""The servers under measurement: statements, exports, and the CPU they use.

CPU is read from /proc.  A living process is read to the nanosecond; one that
has ended has been added to its parent's account, in ticks of 10 ms.
"""

import os
import pathlib
import resource
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")

# psql's own environment: nothing of a user's start-up file or pager.
PSQL = ("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
        "-d", "postgres")

# The columns of an export, in their order.
COLUMNS = ("id, created_at, tenant_id, actor_id, actor_role, action, "
           "target_type, target_id, outcome, error_code, request_id, "
           "source_fingerprint, summary")


class Failed(Exception):
    """A statement failed; psql has said why on standard error."""


class Session:
    """A psql that stays connected, for statements one after the other."""

    END = "--end--"

    def __init__(self, server):
        self.psql = subprocess.Popen(
            PSQL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=server.environment)
        self.pid = int(self.query("SELECT pg_backend_pid()"))

    def query(self, sql, end=";"):
        """Return the output of one statement; end may be a \\g command."""
        self.psql.stdin.write(f"{sql}{end}\n\\echo {self.END}\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line.rstrip("\n") == self.END:
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        raise Failed(sql)

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()

    def cpu(self):
        """CPU seconds of the backend behind this session."""
        return cpu_of(self.pid)


def cpu_of(pid):
    """CPU seconds of a process, 0 if there is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/schedstat").read_text()
    except OSError:
        return 0
    return int(text.split()[0]) / 1e9


def is_exporter(pid):
    """Is this the process of an exporter?"""
    try:
        title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"pg_evidence exporter" in title


def client_cpu():
    """CPU seconds of all programs that were run and waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Server:
    """A running server, with one session that requests and watches.

    That session is the stopwatch, so its CPU counts nowhere.
    """

    def __init__(self, folder, port):
        text = (pathlib.Path(folder) / "postmaster.pid").read_text()
        self.postmaster = int(text.split()[0])
        self.environment = {**os.environ, "PGPORT": str(port)}
        self.session = Session(self)

    def query(self, sql):
        return self.session.query(sql)

    def run(self, *arguments, **options):
        """Run a program to its end against this server."""
        return subprocess.run(
            arguments, check=True,
            env={**self.environment, **options.pop("environment", {})},
            **options)

    def script(self, path, **variables):
        """Run a file through psql."""
        settings = [part for name, value in variables.items()
                    for part in ("-v", f"{name}={value}")]
        self.run(*PSQL, *settings, "-f", str(path))

    def children(self):
        path = f"/proc/{self.postmaster}/task/{self.postmaster}/children"
        return {int(pid) for pid in pathlib.Path(path).read_text().split()}

    def cpu(self):
        """CPU seconds of all processes, ended ones included."""
        text = pathlib.Path(f"/proc/{self.postmaster}/stat").read_text()
        # The program's name may hold blanks; the rest follows the last ).
        ended = text.rpartition(")")[2].split()[13:15]
        return (cpu_of(self.postmaster) + sum(map(int, ended)) / TICK
                + sum(cpu_of(pid)
                      for pid in self.children() - {self.session.pid}))

    def settle(self, before):
        """Wait until the processes of a run have ended and are counted.

        Exporters stay for a while, to make the next package.
        """
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and not all(
                is_exporter(pid) for pid in self.children() - before):
            time.sleep(0.01)

    def launcher(self):
        """The process id of the launcher."""
        return int(self.query(
            "SELECT pid FROM pg_stat_activity"
            " WHERE backend_type = 'pg_evidence launcher'"))

    def end_exporters(self):
        """The next export is made by a process of its own.

        A reload ends each exporter that waits for a job.
        """
        self.query("SELECT pg_reload_conf()")
        while any(is_exporter(pid) for pid in self.children()):
            time.sleep(0.01)

    def set(self, name, value):
        """Change a setting and wait until it is in force."""
        self.query(f"ALTER SYSTEM SET {name} = '{value}'")
        self.query("SELECT pg_reload_conf()")
        while self.query(f"SELECT current_setting('{name}') <> '{value}'"
                         ) == "t":
            time.sleep(0.01)

    # Exports

    def request(self, window, filters="{}", purpose="benchmark"):
        return self.query(
            "SELECT evidence.request_audit_export("
            f"'{window.start_at}', '{window.end_at}', '{purpose}',"
            f" filters => '{filters}')")

    def wait_for(self, condition, step_ms=5):
        """Wait in the server until a condition holds."""
        self.query(f"""DO $$
            BEGIN
                WHILE NOT ({condition}) LOOP
                    PERFORM pg_sleep({step_ms / 1000});
                END LOOP;
            END
            $$""")

    def wait_ended(self, export_id):
        self.wait_for("EXISTS (SELECT FROM evidence.audit_export"
                      f" WHERE id = '{export_id}'"
                      " AND state IN ('READY', 'FAILED', 'CANCELLED'))")

    def export(self, window, filters="{}"):
        """Make one export; return its id."""
        export_id = self.request(window, filters)
        self.wait_ended(export_id)
        state, count = self.query(
            "SELECT state, record_count FROM evidence.audit_export"
            f" WHERE id = '{export_id}'").split("|")
        if state != "READY" or (filters == "{}"
                                and int(count) != window.rows):
            raise Failed(f"export of {window.rows} rows is {state}"
                         f" with {count}")
        return export_id

    def forget_archives(self):
        """Drop the bytes of all archives, which the next runs do not need."""
        self.query("TRUNCATE evidence.archive_chunk")
