"""What must be true when everything has come to its end.

The numbers are those of the list of what must never bend; each query returns
one text per fault.
"""

import csv
import io
import re
import subprocess
import time
import zipfile

from world import Connection, Lost, MAX_RECORDS, PURPOSE_SECRET, ROW_SECRET
from world import SOURCE_SECRET

SETTLE_SECONDS = 240

UNSETTLED = """
SELECT format('%s %s, job %s after %s attempts, event %s, stopped %s, %s attempts live',
              e.id, e.state, j.state, j.attempts, o.state, e.stopped_at, live.n)
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.background_job AS j ON j.export_id = e.id
  LEFT JOIN evidence.outbox_event AS o ON o.export_id = e.id
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.attempt AS a
                      WHERE a.export_id = e.id AND a.ended_at IS NULL) AS live
 WHERE e.state IN ('QUEUED', 'PROCESSING') OR live.n > 0
    OR (e.state = 'CANCELLED' AND e.stopped_at IS NULL)
"""

# (number of the invariant, name, query).  An attempt ends with PE004 when its
# process died and with 57014 when the killer sent it a SIGINT.
LEDGER = (
    ("1", "each export has one job and one event, in a legal combination", """
SELECT format('%s: %s, %s, %s', e.id, e.state, j.state, o.state)
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.background_job AS j ON j.export_id = e.id
  LEFT JOIN evidence.outbox_event AS o ON o.export_id = e.id
 WHERE NOT EXISTS (SELECT FROM evidence.state_combination AS c
                    WHERE (c.export, c.job, c.event) = (e.state, j.state, o.state))
    OR (SELECT count(*) FROM evidence.background_job AS b WHERE b.export_id = e.id) <> 1
    OR (SELECT count(*) FROM evidence.outbox_event AS v WHERE v.export_id = e.id) <> 1"""),
    ("1", "a failed export says why", """
SELECT format('%s: %s %s', e.id, e.error_code, e.error_message)
  FROM evidence.audit_export AS e
 WHERE e.state = 'FAILED' AND NOT (
       (e.error_code = 'PE002' AND e.record_count > {max_records})
    OR (e.error_code IN ('PE004', '57014') AND e.error_message <> ''))"""),
    ("1", "nobody gives up before the last attempt", """
SELECT format('%s: %s after %s attempts', e.id, e.error_code, j.attempts)
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
 WHERE (e.error_code <> 'PE002' AND e.state = 'FAILED'
        AND j.attempts <> current_setting('pg_evidence.max_attempts')::integer)
    OR j.attempts > current_setting('pg_evidence.max_attempts')::integer"""),
    ("1", "the history is one legal path that ends in the state", """
SELECT format('%s: event %s moves from %s to %s', v.export_id, v.event, v.from_state, v.to_state)
  FROM (SELECT *, lag(to_state) OVER path AS before, lag(version) OVER path AS version_before
          FROM evidence.export_event WHERE to_state IS NOT NULL
        WINDOW path AS (PARTITION BY export_id ORDER BY version)) AS v
 WHERE v.from_state IS DISTINCT FROM v.before
    OR v.version <> coalesce(v.version_before, 0) + 1
    OR (v.from_state IS NULL AND (v.event, v.to_state) <> ('requested', 'QUEUED'))
    OR (v.from_state IS NOT NULL AND NOT EXISTS (
            SELECT FROM evidence.state_move AS m
             WHERE (m.fact, m.from_state, m.to_state) = ('export', v.from_state, v.to_state)))
UNION ALL
SELECT format('%s: state %s, last event %s', e.id, e.state, last.to_state)
  FROM evidence.audit_export AS e
  LEFT JOIN LATERAL (SELECT to_state, version FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND to_state IS NOT NULL
                      ORDER BY version DESC LIMIT 1) AS last ON true
 WHERE (last.to_state, last.version) IS DISTINCT FROM (e.state, e.version)"""),
    ("2", "READY came once, from one attempt, which is the selected one", """
SELECT format('%s: %s events, %s attempts succeeded', e.id, events.n, attempts.n)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND v.event = 'ready') AS events
 CROSS JOIN LATERAL (SELECT count(*) AS n, min(token::text) AS token
                       FROM evidence.attempt AS a
                      WHERE a.export_id = e.id AND a.outcome = 'succeeded') AS attempts
 WHERE (events.n, attempts.n, attempts.token) IS DISTINCT FROM
       CASE WHEN e.archive_token IS NULL THEN (0::bigint, 0::bigint, NULL::text)
            ELSE (1::bigint, 1::bigint, e.archive_token::text) END"""),
    ("2", "attempts of one job do not overlap", """
SELECT format('%s: %s began before %s ended', a.export_id, b.token, a.token)
  FROM evidence.attempt AS a JOIN evidence.attempt AS b
    ON b.job_id = a.job_id AND b.token <> a.token AND b.started_at >= a.started_at
 WHERE b.started_at < a.ended_at"""),
    ("2", "no chunk is of an attempt that was not selected", """
SELECT format('%s: attempt %s', c.export_id, c.attempt_token)
  FROM evidence.archive_chunk AS c JOIN evidence.audit_export AS e ON e.id = c.export_id
 WHERE c.attempt_token IS DISTINCT FROM e.archive_token"""),
    ("2", "the chunks are all there and hash to the ledger's digest", """
SELECT format('%s: %s chunks, %s bytes', e.id, count(c.seq), sum(length(c.data)))
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.archive_chunk AS c ON c.attempt_token = e.archive_token
 WHERE e.archive_token IS NOT NULL
 GROUP BY e.id
HAVING (count(c.seq), sum(length(c.data)),
        encode(sha256(string_agg(c.data, '' ORDER BY c.seq)), 'hex'))
       IS DISTINCT FROM (e.archive_chunks::bigint, e.archive_bytes, e.archive_sha256)
    OR NOT bool_and(sha256(c.data) = c.sha256)"""),
    ("3", "each grant has its audit row and its event", """
SELECT format('%s: %s grants, %s rows, %s events', e.id, grants.n, rows.n, events.n)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.download_grant AS g
                      WHERE g.export_id = e.id) AS grants
  LEFT JOIN (SELECT target_id, count(*) AS n FROM evidence.audit_log
              WHERE action = 'audit_export.download' GROUP BY target_id) AS rows ON rows.target_id = e.id::text
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM evidence.export_event AS v
                      WHERE v.export_id = e.id AND v.event = 'download_granted') AS events
 WHERE grants.n <> coalesce(rows.n, 0) OR grants.n <> events.n"""),
    ("3", "each request, cancel and revocation has its audit row", """
SELECT format('%s: %s', e.id, coalesce(string_agg(l.action, ' '), 'none'))
  FROM evidence.audit_export AS e
  LEFT JOIN evidence.audit_log AS l
    ON l.target_id = e.id::text
   AND l.action IN ('audit_export.request', 'audit_export.cancel', 'audit_export.revoke')
 GROUP BY e.id
HAVING (count(*) FILTER (WHERE l.action = 'audit_export.request'),
        count(*) FILTER (WHERE l.action = 'audit_export.cancel'),
        count(*) FILTER (WHERE l.action = 'audit_export.revoke')) <>
       (1, (e.state = 'CANCELLED')::integer, (e.state = 'REVOKED')::integer)"""),
    ("4, 6", "a package has as many rows as the pinned snapshot could see", """
SELECT format('%s: %s rows, %s visible', e.id, e.record_count, visible.n)
  FROM evidence.audit_export AS e
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM evidence.audit_log AS l
        WHERE {belongs}) AS visible
 WHERE (e.archive_token IS NOT NULL OR e.error_code = 'PE002')
   AND visible.n <> e.record_count"""),
    ("12", "the records made anew from the log are those of the package", """
SELECT format('%s: %s: %s', e.id, v.check_name, v.detail)
  FROM evidence.audit_export AS e, evidence.verify_audit_export(e.id) AS v
 WHERE e.archive_token IS NOT NULL AND NOT v.ok"""),
)

# Written without a look at the product's own condition.
BELONGS = """
l.created_at >= e.start_at AND l.created_at < e.end_at
          AND l.recorded_xid <> e.request_xid
          AND pg_visible_in_snapshot(l.recorded_xid, e.snapshot)
          AND coalesce(e.filters -> 'outcome' ? l.outcome, true)
          AND coalesce(e.filters -> 'tenant_id' ? l.tenant_id, true)
          AND coalesce(e.filters -> 'actor_id' ? l.actor_id, true)
          AND (NOT e.filters ? 'target_id'
               OR coalesce(e.filters -> 'target_id' ? l.target_id, false))
          AND (NOT e.filters ? 'action' OR EXISTS (
               SELECT FROM jsonb_array_elements_text(e.filters -> 'action') AS w
                WHERE l.action = w OR (right(w, 2) = '.*' AND starts_with(l.action, left(w, -1)))))
"""

SHOWN_FAULTS = 5

# Lines of the log that no kill explains.
BAD_LINES = (
    re.compile(r"was terminated by signal (?!9\b|3\b)\d+"),
    re.compile(r"TRAP:|PANIC: |deadlock detected|double free|corrupt"))
LOG_LINE = re.compile(r"^\S+ \S+ \S+ \[\d+\] (\w{5}) .*?"
                      r"(WARNING|ERROR|FATAL|PANIC):  (.*)$")
# By class or code: connection, limits, rights, state, wrong argument,
# serialization, lock, shutdown, cancel, ours.
KNOWN_CODES = re.compile(r"^(08...|53400|42501|55000|55P03|40001|57P0[123]"
                         r"|57014|57000|PE\d\d\d|01000|00000)$")


class Invariants:
    def __init__(self, world):
        self.world = world
        self.connection = None

    def settle(self):
        """Wait until nothing is under way any more; False if nobody answers."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                if self.connection is None:
                    self.connection = Connection("postgres")
                left = self.connection.rows(UNSETTLED)
            except Lost as error:   # the last kill is not over yet
                self.connection = None
                left = [(f"the server does not answer: {error}",)]
            if not left:
                return True
            if time.monotonic() > deadline:
                self.report("1", "everything comes to its end",
                            [text for text, in left])
                return self.connection is not None
            time.sleep(0.5)

    def report(self, number, name, faults):
        print(f"{'ok    ' if not faults else 'BROKEN'} {number}: {name}",
              flush=True)
        for text in faults[:SHOWN_FAULTS]:
            self.world.fault(text)
        if len(faults) > SHOWN_FAULTS:
            self.world.fault(f"and {len(faults) - SHOWN_FAULTS} more")

    def check(self):
        for number, name, sql in LEDGER:
            sql = sql.replace("{belongs}", BELONGS)
            sql = sql.replace("{max_records}", str(MAX_RECORDS))
            self.report(number, name,
                        [text for text, in self.connection.rows(sql)])
        self.check_answers()
        self.check_downloads()
        self.check_files()
        self.check_log()
        self.check_leftovers()

    def check_answers(self):
        """What the server acknowledged is true, and nothing else is."""
        world = self.world
        states = {str(i): state for i, state in self.connection.rows(
            "SELECT id, state FROM evidence.audit_export")}
        self.report("1", "every acknowledged request is there",
                    [f"{r.id} is not" for r in world.requests
                     if r.id not in states])
        self.report("1", "what was cancelled is CANCELLED, revoked REVOKED",
                    [f"{i} is {states[i]}" for i in world.cancelled
                     if states[i] != "CANCELLED"] +
                    [f"{i} is {states[i]}" for i in world.revoked
                     if states[i] != "REVOKED"])

        markers = {}
        for purpose, in self.connection.rows(
                "SELECT purpose FROM evidence.audit_export"):
            marker = purpose.split()[1]
            markers[marker] = markers.get(marker, 0) + 1
        self.report("1", "no request was committed twice",
                    [f"{m}: {n} exports" for m, n in markers.items() if n > 1])
        self.report("1", "no request that was rolled back is there",
                    [m for m in world.rolled_back if m in markers])
        asked = {r.marker for r in world.requests + world.unknown}
        self.report("1", "no export that nobody asked for", [
            m for m in markers if m not in asked and
            not m.startswith("program-")])
        self.world.count(
            "of them committed",
            sum(r.marker in markers for r in world.unknown))

        missing = self.connection.rows(
            "SELECT i FROM unnest(%s::bigint[]) AS i WHERE NOT EXISTS ("
            "SELECT FROM evidence.audit_log AS l WHERE l.id = i)",
            world.committed_rows)
        self.report("1", "every acknowledged row of the log is there",
                    [f"row {i} is not" for i, in missing])

    def check_downloads(self):
        """Bytes that left: on record, those of the ledger, and in time."""
        known = {(bytes(digest), str(export), subject)
                 for digest, export, subject in self.connection.rows(
                     "SELECT secret_sha256, export_id, subject"
                     "  FROM evidence.download_grant")}
        self.report("3", "every grant that was given is committed",
                    [f"{export} for {role}"
                     for digest, export, role in self.world.grants
                     if (digest, export, role) not in known])

        stored = {(str(i), seq): (bytes(digest), expires_at)
                  for i, seq, digest, expires_at in self.connection.rows(
                      "SELECT c.export_id, c.seq, c.sha256, e.expires_at"
                      "  FROM evidence.archive_chunk AS c"
                      "  JOIN evidence.audit_export AS e ON e.id = c.export_id")}
        granted = {export for _, export, _ in self.world.grants}
        wrong, unrecorded, late = [], [], []
        for export, seq, digest, at in self.world.chunks:
            expected, expires_at = stored.get((export, seq), (None, None))
            if digest != expected:
                wrong.append(f"{export}, chunk {seq}")
            elif at > expires_at:
                late.append(f"{export}, chunk {seq} at {at}")
            if export not in granted:
                unrecorded.append(export)
        self.report("2", "every chunk that was fetched is the ledger's", wrong)
        self.report("3", "no chunk left without a grant", unrecorded)
        self.report("9", "no chunk left after the window", late)

        digests = dict(self.connection.rows(
            "SELECT id::text, archive_sha256 FROM evidence.audit_export"))
        self.report("2", "every package has the ledger's digest",
                    [export for export, digest in self.world.archives
                     if digests[export] != digest])

    def check_files(self):
        """Packages as a stranger reads them."""
        requests = {r.id: r for r in self.world.requests}
        broken, rows, secrets = [], [], []
        for export, path in self.world.files:
            verdict = subprocess.run(
                [self.world.bin / "pg_evidence", "verify", path],
                capture_output=True, text=True)
            if verdict.returncode != 0:
                broken.append(f"{export}: {verdict.stdout}")
                continue
            with zipfile.ZipFile(path) as package:
                text = package.read("records.csv").decode()
                manifest = package.read("manifest.json").decode()
            if any(secret in part for part in (text, manifest)
                   for secret in (ROW_SECRET, PURPOSE_SECRET, SOURCE_SECRET)):
                secrets.append(export)
            found = [int(row["id"]) for row in
                     csv.DictReader(io.StringIO(text, newline=""))]
            expected = [i for i, in self.connection.rows(
                "SELECT l.id FROM evidence.audit_export AS e,"
                f" evidence.audit_log AS l WHERE e.id = %s AND {BELONGS}"
                " ORDER BY l.created_at, l.id", export)]
            if found != expected:
                rows.append(f"{export}: {len(found)} rows, {len(expected)}"
                            " expected, or another order")
            request = requests.get(export)
            if request is not None and request.inside:
                if not set(request.inside) <= set(found):
                    rows.append(f"{export}: a row is missing that was"
                                " committed before the request")
                if set(request.outside) & set(found):
                    rows.append(f"{export}: has a row of its own transaction"
                                " or a later one")
                self.world.count("packages among witness rows")
        self.world.count("packages read by a stranger", len(self.world.files))
        self.report("2", "pg_evidence verify finds the packages intact",
                    broken)
        self.report("4", "each package has the rows of its snapshot, in order",
                    rows)
        self.report("7", "no package holds a secret", secrets)

    def check_log(self):
        path = self.world.data / "server.log"
        bad, unknown, secrets = [], [], []
        with path.open(encoding="utf-8", errors="replace") as log:
            for line in log:
                line = line.rstrip("\n")
                if any(pattern.search(line) for pattern in BAD_LINES):
                    bad.append(line)
                if any(secret in line for secret in
                       (ROW_SECRET, PURPOSE_SECRET, SOURCE_SECRET)):
                    secrets.append(line)
                found = LOG_LINE.match(line)
                if found and not KNOWN_CODES.match(found.group(1)):
                    unknown.append(line)
        self.report("13", "no crash, assertion or deadlock in the log", bad)
        self.report("13", "no error in the log but those of the kills and"
                    " refusals", unknown)
        self.report("7", "no secret in the log", secrets)

    def check_leftovers(self):
        folder = self.world.data / "base" / "pgsql_tmp"
        left = [p.name for p in folder.iterdir()] if folder.exists() else []
        self.report("11", "no temporary file is left", left)
