"""Sessions that use the interface at random, as their capabilities allow.

Whatever the server answers is compared with what it said before; whatever it
acknowledges is noted for the end of the run.
"""

import datetime
import hashlib
import json
import os
import subprocess
import threading
import time

from world import Connection, Lost, PURPOSE_SECRET, Refused, Request
from world import SOURCE_SECRET

# Anybody may get these at any time: do it again.
TRY_AGAIN = ("40001", "55P03")

REQUEST = ("SELECT evidence.request_audit_export(%s, %s, %s,"
           " idempotency_key => %s, filters => %s, columns => %s)")
RECORD = ("SELECT evidence.record_audit_event(%s, 'chaos', summary => %s,"
          " source => %s)")
FETCH = ("SELECT (f).seq, (f).data FROM"
         " (SELECT evidence.fetch_audit_export(%s, %s, %s) AS f) AS chunk")

FILTERS = (
    {}, {}, {},
    {"outcome": ["failure", "denied"]},
    {"action": ["record.*"]},
    {"action": ["session.login", "record.*"], "tenant_id": ["tenant-1"]},
    {"actor_id": ["user-3", "user-5"]},
    {"target_id": ["17", "4711"]},
    {"tenant_id": ["nobody"]})
COLUMNS = (
    None, None, None,
    ["id", "created_at", "actor_id", "action"],
    ["id", "summary"])

MOST_FILES = 80


class Session(threading.Thread):
    """One thread, one role, one connection after the other."""

    actions = ()                # (weight, name of a method)
    longest_pause = 0.6

    def __init__(self, world, name, role):
        super().__init__(name=name, daemon=True)
        self.world = world
        self.role = role
        self.random = world.generator(name)
        self.number = 0
        self.connection = None

    def run(self):
        try:
            self.live()
        except Exception as error:
            self.world.fault(f"{self.name} ended: {error!r}")
            raise

    def live(self):
        while not self.world.is_over():
            try:
                self.connection = Connection(self.role)
                self.work()
            except Lost:
                if self.connection is not None:
                    self.world.count("connections lost")
                self.connection = None
                self.world.wait(0.2)

    def work(self):
        names = [name for _, name in self.actions]
        weights = [weight for weight, _ in self.actions]
        while not self.world.is_over():
            name = self.random.choices(names, weights)[0]
            try:
                getattr(self, name)()
            except Refused as error:
                self.world.count("refused")
                self.world.refusals[error.code] += 1
                if error.code not in TRY_AGAIN:
                    self.world.fault(f"{self.name}, {name}: {error}")
            self.world.wait(self.random.uniform(0, self.longest_pause))

    def attempt(self, expected, sql, *parameters):
        """The rows, or None after one of the errors that are all right."""
        try:
            return self.connection.rows(sql, *parameters)
        except Refused as error:
            if error.code not in expected and error.code not in TRY_AGAIN:
                raise
            self.world.refusals[error.code] += 1
            return None

    def must_refuse(self, code, sql, *parameters):
        try:
            self.connection.rows(sql, *parameters)
        except Refused as error:
            if error.code == code:
                return
            raise
        self.world.fault(f"{self.name}: {sql} {parameters} was not refused")

    def pick(self, mine=True):
        """One of the latest exports, of this role or of another one."""
        with self.world.lock:
            found = [r for r in self.world.recent
                     if (r.role == self.role) == mine]
        return self.random.choice(found) if found else None

    def disconnect(self):
        self.connection.drop()
        raise Lost("left")

    def look(self):
        rows = self.connection.rows(
            "SELECT requested_by, state, progress, purpose"
            "  FROM evidence.audit_export_status"
            " ORDER BY requested_at DESC LIMIT 50")
        self.world.count("looks at the status")
        for requested_by, _, _, purpose in rows:
            if self.role.startswith("requester") and requested_by != self.role:
                self.world.fault(f"{self.role} sees exports of {requested_by}")
            if PURPOSE_SECRET in purpose:
                self.world.fault("the status shows a secret")

    def verify(self):
        request = self.pick()
        if request is None:
            return
        rows = self.attempt(
            ("PE005",), "SELECT * FROM evidence.verify_audit_export(%s)",
            request.id)
        self.world.count("verifications")
        for name, ok, detail in rows or ():
            if not ok:
                self.world.fault(f"export {request.id}: {name}: {detail}")


class Requester(Session):
    actions = ((24, "request"), (8, "request_among_rows"), (3, "roll_back"),
               (4, "repeat"), (2, "reuse_key"), (6, "cancel"),
               (26, "download"), (3, "revoke"), (4, "look"), (3, "verify"),
               (3, "meddle"), (2, "disconnect"))

    def make_request(self):
        """A request with random arguments, not sent yet."""
        self.number += 1
        marker = f"{self.name}-{self.number}"
        end = datetime.datetime.now(datetime.timezone.utc)
        end -= datetime.timedelta(days=self.random.uniform(-0.1, 15))
        start = end - datetime.timedelta(
            days=self.random.choice((0.2, 1, 3, 7, 14, 30)))
        filters = self.random.choice(FILTERS)
        columns = self.random.choice(COLUMNS)
        key = marker if self.random.random() < 0.7 else None
        return Request(self.role, marker, key, [
            start.isoformat(), end.isoformat(),
            f"chaos {marker} password={PURPOSE_SECRET}", key,
            json.dumps(filters), columns])

    def acknowledge(self, request, export_id):
        request.id = str(export_id)
        with self.world.lock:
            self.world.requests.append(request)
            self.world.recent.append(request)
            self.world.counts["requests"] += 1

    def forget(self, request):
        with self.world.lock:
            self.world.unknown.append(request)
            self.world.counts["requests without an answer"] += 1

    def request(self):
        request = self.make_request()
        try:
            rows = self.attempt(("53400",), REQUEST, *request.arguments)
        except Lost:
            self.forget(request)
            # A client that lost the answer asks again with the same key.
            if request.key is None or self.random.random() < 0.3:
                raise
            self.connection = self.reconnect()
            try:
                rows = self.attempt(("53400",), REQUEST, *request.arguments)
            except Lost:
                raise
        if rows is None:
            return
        self.acknowledge(request, rows[0][0])

    def reconnect(self):
        while not self.world.is_over():
            try:
                return Connection(self.role)
            except Lost:
                self.world.wait(0.2)
        raise Lost("the run is over")

    def record(self, action):
        return self.connection.value(
            RECORD, action, f"{self.name} {self.number}", SOURCE_SECRET)

    def request_among_rows(self):
        """Rows before, within and after the request's transaction."""
        request = self.make_request()
        now = datetime.datetime.now(datetime.timezone.utc)
        request.arguments[0] = (now - datetime.timedelta(hours=1)).isoformat()
        request.arguments[1] = (now + datetime.timedelta(hours=1)).isoformat()
        request.arguments[4] = "{}"
        request.arguments[5] = None
        request.inside = [self.record("chaos.before")]
        with self.world.lock:
            self.world.committed_rows += request.inside
        try:
            self.connection.rows("BEGIN")
            request.outside.append(self.record("chaos.own"))
            rows = self.attempt(("53400",), REQUEST, *request.arguments)
            if rows is None:
                self.connection.rows("ROLLBACK")
                return
            request.outside.append(self.record("chaos.own"))
            self.connection.rows("COMMIT")
        except Lost:
            self.forget(request)
            raise
        except Refused:
            self.connection.rows("ROLLBACK")
            raise
        with self.world.lock:
            self.world.committed_rows += request.outside
        self.acknowledge(request, rows[0][0])
        request.outside.append(self.record("chaos.after"))

    def roll_back(self):
        request = self.make_request()
        self.connection.rows("BEGIN")
        with self.world.lock:
            self.world.rolled_back.append(request.marker)
        self.attempt(("53400",), REQUEST, *request.arguments)
        self.connection.rows("ROLLBACK")
        self.world.count("requests rolled back")

    def repeat(self):
        request = self.pick()
        if request is None or request.key is None:
            return
        rows = self.attempt((), REQUEST, *request.arguments)
        if rows is not None and str(rows[0][0]) != request.id:
            self.world.fault(f"the key of {request.id} gave {rows[0][0]}")
        self.world.count("requests repeated")

    def reuse_key(self):
        request = self.pick()
        if request is None or request.key is None:
            return
        arguments = list(request.arguments)
        arguments[2] = "another purpose"
        if self.attempt(("PE001",), REQUEST, *arguments) is not None:
            self.world.fault(f"the key of {request.id} served another request")

    def cancel(self):
        request = self.pick()
        if request is None:
            return
        rows = self.attempt(
            ("55000",), "SELECT evidence.cancel_audit_export(%s, 'chaos')",
            request.id)
        if rows is not None:
            with self.world.lock:
                self.world.cancelled.add(request.id)
                self.world.counts["cancels"] += 1

    def revoke(self):
        request = self.pick()
        if request is None:
            return
        rows = self.attempt(
            ("55000", "PE003"),
            "SELECT evidence.revoke_audit_export(%s, 'chaos')", request.id)
        if rows is not None:
            with self.world.lock:
                self.world.revoked.setdefault(request.id, time.monotonic())
                self.world.counts["revocations"] += 1

    def meddle(self):
        """With an export of somebody else."""
        request = self.pick(mine=False)
        if request is None:
            return
        self.must_refuse(
            "42501", "SELECT evidence.cancel_audit_export(%s, 'chaos')",
            request.id)
        self.must_refuse(
            "42501", "SELECT evidence.grant_audit_export_download(%s)",
            request.id)

    def download(self):
        request = self.pick()
        if request is None:
            return
        started = time.monotonic()
        rows = self.attempt(
            ("PE003", "PE005", "55000"),
            "SELECT evidence.grant_audit_export_download(%s, 'chaos')",
            request.id)
        if rows is None:
            return
        grant = rows[0][0]
        with self.world.lock:
            self.world.counts["grants"] += 1
            self.world.grants.append(
                (hashlib.sha256(grant.encode()).digest(), request.id,
                 self.role))
        self.refuse_late(request, started, "granted")
        if self.random.random() < 0.9:
            self.fetch(request, grant)

    def refuse_late(self, request, started, what):
        with self.world.lock:
            revoked = self.world.revoked.get(request.id)
            cancelled = request.id in self.world.cancelled
        if revoked is not None and revoked < started:
            self.world.fault(f"export {request.id}: {what} after revocation")
        if cancelled:
            self.world.fault(f"export {request.id}: {what} and cancelled")

    def fetch(self, request, grant):
        whole = self.random.random() < 0.7
        slow = self.random.random() < 0.2
        content = b""
        seq = 0
        while True:
            started = time.monotonic()
            at = datetime.datetime.now(datetime.timezone.utc)
            rows = self.attempt(("PE003",), FETCH, grant, seq,
                                None if whole else 1)
            if rows is None:
                return
            for number, data in rows:
                with self.world.lock:
                    self.world.chunks.append(
                        (request.id, number, hashlib.sha256(data).digest(),
                         at))
                if number != seq:
                    self.world.fault(f"export {request.id}: chunk {number}"
                                     f" where {seq} should come")
                seq += 1
                content += data
            if rows:
                self.refuse_late(request, started, "fetched")
            if whole or not rows:
                break
            if slow:
                self.world.wait(self.random.uniform(0, 2))
        self.keep(request, content)

    def keep(self, request, content):
        """A whole package: all digests, and some of the files."""
        digest = hashlib.sha256(content).hexdigest()
        with self.world.lock:
            self.world.counts["packages fetched"] += 1
            self.world.archives.append((request.id, digest))
            most = 2 * MOST_FILES if request.inside else MOST_FILES
            if len(self.world.files) >= most:
                return
            path = self.world.work / f"{len(self.world.files)}.zip"
            self.world.files.append((request.id, path))
        path.write_bytes(content)


class Operator(Requester):
    """May do to any export what its requester may."""

    actions = ((5, "look"), (4, "verify"), (4, "cancel"), (2, "revoke"),
               (4, "download"), (6, "run_once"), (4, "history"),
               (1, "change_rules"), (1, "disconnect"))

    def pick(self, mine=True):
        with self.world.lock:
            found = list(self.world.recent)
        return self.random.choice(found) if found else None

    def run_once(self):
        self.attempt((), "CALL evidence.run_once()")
        self.world.count("calls of run_once()")

    def history(self):
        request = self.pick()
        if request is None:
            return
        rows = self.connection.rows(
            "SELECT event FROM evidence.export_event"
            " WHERE export_id = %s ORDER BY id", request.id)
        if not rows or rows[0][0] != "requested":
            self.world.fault(f"the history of {request.id} begins with"
                             f" {rows[:1]}")

    def change_rules(self):
        """Later requests get another ruleset, earlier ones keep theirs."""
        name = f"chaos{self.random.randrange(3)}"
        self.connection.rows(
            "SELECT evidence.add_redaction_rule(%s, %s, 'chaos',"
            " anchors => '{badge-}')", name, "badge-([0-9]{1,6})")
        self.world.count("redaction rules changed")


class ByHand(Operator):
    """A scheduler of somebody who does it all with run_once()."""

    actions = ((1, "run_once"),)
    longest_pause = 2


class Auditor(Operator):
    """Reads everything, takes nothing."""

    actions = ((5, "look"), (3, "verify"), (5, "history"), (2, "be_refused"),
               (1, "disconnect"))

    def be_refused(self):
        request = self.pick()
        if request is None:
            return
        for sql in ("SELECT evidence.cancel_audit_export(%s, 'chaos')",
                    "SELECT evidence.grant_audit_export_download(%s)",
                    "SELECT evidence.revoke_audit_export(%s, 'chaos')"):
            self.must_refuse("42501", sql, request.id)


class Program(Requester):
    """The client program, which has to survive the same."""

    # What a request with its download may come to: done, connection lost,
    # a limit, wrong state, gone, failed, cancelled, too late, tried in vain.
    outcomes = (0, 2, 5, 6, 7, 10, 11, 12, 14)

    def live(self):
        while not self.world.is_over():
            self.ask()
            self.world.wait(self.random.uniform(0, 1))

    def ask(self):
        request = self.make_request()
        path = self.world.work / f"{request.marker}.zip"
        start, end, purpose = request.arguments[:3]
        outcome = self.call(
            "request", f"--start={start}", f"--end={end}",
            f"--purpose={purpose}", f"--key={request.marker}",
            f"--output={path}", "--timeout=60")
        self.world.count("runs of the program")
        if outcome.returncode not in self.outcomes:
            self.world.fault(f"the program ended with {outcome.returncode}:"
                             f" {outcome.stderr}")
        if PURPOSE_SECRET in outcome.stdout + outcome.stderr:
            self.world.fault("the program shows a secret")
        if outcome.returncode != 0:
            if path.exists():
                self.world.fault("the program failed and left a file")
            return
        listed = self.call("verify", str(path), "--json")
        if listed.returncode != 0:
            self.world.fault(f"the program's file is not intact:"
                             f" {listed.stdout}")
            return
        export_id = json.loads(listed.stdout)["verify"]["export_id"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        request.key = None
        self.acknowledge(request, export_id)
        with self.world.lock:
            self.world.counts["packages fetched"] += 1
            self.world.archives.append((export_id, digest))
        path.unlink()

    def call(self, *arguments):
        return subprocess.run(
            [self.world.bin / "pg_evidence", *arguments],
            env={**os.environ, "PGUSER": self.role, "PGDATABASE": "postgres"},
            capture_output=True, text=True, stdin=subprocess.DEVNULL)


def make_sessions(world):
    """The first four are special, all others request."""
    special = (("operator", Operator, "operator"),
               ("auditor", Auditor, "auditor"),
               ("program", Program, "requester_0"),
               ("by_hand", ByHand, "operator"))
    found = []
    for number in range(world.options.sessions):
        if number < len(special):
            name, kind, role = special[number]
        else:
            name, kind = f"session-{number}", Requester
            role = f"requester_{number % 5}"
        found.append(kind(world, name, role))
    return found
