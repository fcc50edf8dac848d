"""What the parts of a run share: the clock, the connection, what was said.

The parts are
    chaos.py      runs them one after the other and prints the table
    sessions.py   those who request, cancel, grant, fetch, revoke and verify
    killer.py     ends processes of the server
    beside.py     pgbench, and an observer who looks at limits and memory
    invariants.py what must be true when all has come to its end

Each part has a generator of random numbers of its own, made from the run's
seed and its name, so the same seed gives each part the same decisions.  How
they fall in time is up to the machine.

A session notes what the server has told it, and only that: an answer that was
lost with a connection means that nobody knows.
"""

import collections
import pathlib
import random
import threading
import time

import psycopg

# Planted; must be found nowhere outside of the tables.
ROW_SECRET = "Nk7Zt3Vq91"
PURPOSE_SECRET = "Nk7Zt3Vq92"
SOURCE_SECRET = "203.0.113.91"

QUOTA = 3
MAX_EXPORTERS = 3
MAX_RECORDS = 20000


class Lost(Exception):
    """The connection broke: what was asked for may or may not have happened."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class Connection:
    """A session of the server, one statement at a time."""

    def __init__(self, role):
        try:
            # Parameters are sent apart from the text, as programs do it.
            self.psycopg = psycopg.connect(
                user=role, dbname="postgres", autocommit=True,
                connect_timeout=10, prepare_threshold=None,
                application_name="chaos")
        except psycopg.Error as error:
            raise Lost(str(error)) from error

    def rows(self, sql, *parameters):
        try:
            cursor = self.psycopg.execute(sql, parameters or None, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            code = error.sqlstate or ""
            if self.psycopg.closed or code[:2] in ("", "08") or \
                    code in ("57P01", "57P02", "57P03"):
                raise Lost(str(error)) from error
            raise Refused(code, str(error)) from error

    def value(self, sql, *parameters):
        return self.rows(sql, *parameters)[0][0]

    def drop(self):
        """Leave without a word, as a client that crashes."""
        self.psycopg.pgconn.finish()


class Request:
    """A request that was acknowledged, or might have been committed."""

    def __init__(self, role, marker, key, arguments):
        self.role = role
        self.marker = marker        # stands in its purpose
        self.key = key
        self.arguments = arguments
        self.id = None
        self.inside = []            # ids of rows that must be in the package
        self.outside = []           # and of some that must not


class World:
    def __init__(self, options):
        self.options = options
        self.bin = pathlib.Path(options.bin)
        self.data = pathlib.Path(options.data)
        self.work = pathlib.Path(options.work)
        self.lock = threading.Lock()
        self.begun = time.monotonic()
        self.counts = collections.Counter()
        self.refusals = collections.Counter()
        self.faults = []
        self.requests = []          # acknowledged
        self.unknown = []           # the answer was lost
        self.rolled_back = []       # markers
        self.recent = collections.deque(maxlen=60)
        self.cancelled = set()      # ids, acknowledged
        self.revoked = {}           # id: when it was acknowledged
        self.grants = []            # (digest of the grant, id, role)
        self.chunks = []            # (id, seq, SHA-256, start of the fetch)
        self.archives = []          # (id, SHA-256 of all bytes)
        self.files = []             # (id, path)
        self.committed_rows = []    # ids in the log, acknowledged

    def generator(self, name):
        return random.Random(f"{self.options.seed}/{name}")

    def is_over(self):
        return time.monotonic() - self.begun > self.options.seconds

    def wait(self, seconds):
        """Sleep, but not beyond the end of the run."""
        left = self.options.seconds - (time.monotonic() - self.begun)
        time.sleep(max(0, min(seconds, left)))

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        print(f"FAULT: {text}", flush=True)
