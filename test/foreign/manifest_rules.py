"""What manifest.json must say about itself and about records.csv.

The canonical form is written from RFC 8785: members sorted by their UTF-16
code units, no blank, numbers and escapes in one form each.
"""
import datetime
import hashlib
import json
import re

from cell_rules import MARK_START, undo_guard

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n",
           "\r": "\\r", "\t": "\\t"}
TIME = re.compile(r"(\d{4})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HEX_64 = re.compile(r"[0-9a-f]{64}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COLUMNS = ["id", "created_at", "tenant_id", "actor_id", "actor_role",
           "action", "target_type", "target_id", "outcome", "error_code",
           "request_id", "source_fingerprint", "summary"]
MEMBERS = {"cells", "columns", "export_id", "files", "filters", "first",
           "format", "generation", "last", "limits", "policy", "producer",
           "purpose", "range", "record_count", "redaction", "request_digest",
           "requested_at", "requested_by", "snapshot", "source"}
DIALECT = {"bom": False, "delimiter": ",", "empty": '""', "encoding": "UTF-8",
           "guard": "'", "header": True, "line_end": "\r\n", "null": "",
           "quote": '"', "time": "YYYY-MM-DDTHH:MM:SS.ffffffZ"}


def canonical(value):
    """The one text that RFC 8785 allows for the value."""
    if value is None or isinstance(value, bool):
        return {None: "null", False: "false", True: "true"}[value]
    if isinstance(value, str):
        value.encode("utf-8")           # refuses lone surrogates
        return '"%s"' % "".join(
            ESCAPES.get(char, "\\u%04x" % ord(char) if char < " " else char)
            for char in value)
    if isinstance(value, int) and abs(value) < 2 ** 53:
        return "%d" % value
    if isinstance(value, list):
        return "[%s]" % ",".join(map(canonical, value))
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{%s}" % ",".join("%s:%s" % (canonical(name),
                                            canonical(value[name]))
                                 for name in names)
    raise ValueError("%r has no place in a manifest" % (value,))


def no_doubles(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member stands there twice")
    return dict(pairs)


def instant(text):
    """The time of a cell as something that can be compared.

    Python's calendar ends at 9999 and begins at 1; the form of other years
    is README's: an astronomical number, with a sign.
    """
    year, rest = re.fullmatch(r"([+-]?\d{4,})(-\d\d-\d\dT.*Z)", text).groups()
    if TIME.fullmatch(text) and year != "0000":
        datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    return int(year), rest


def check_claims(manifest, fault):
    """The claims that stand for themselves."""
    if set(manifest) != MEMBERS:
        fault("manifest.json", "members differ: %s"
              % ", ".join(sorted(set(manifest) ^ MEMBERS)))
    wanted = [name for name in COLUMNS if name in manifest["columns"]]
    if manifest["columns"] != wanted:
        fault("manifest.json", "columns %r" % manifest["columns"])
    if manifest["format"] != "pg_evidence/1" or manifest["generation"] < 1:
        fault("manifest.json", "format or generation")
    for where, text, form in (
            ("export_id", manifest["export_id"], UUID),
            ("request_digest", manifest["request_digest"], HEX_64),
            ("redaction.sha256", manifest["redaction"]["sha256"], HEX_64),
            ("requested_at", manifest["requested_at"], TIME),
            ("snapshot.at", manifest["snapshot"]["at"], TIME)):
        if not form.fullmatch(text):
            fault("manifest.json", "%s is %r" % (where, text))
    if not all(isinstance(text, str) and text for text in manifest["limits"]):
        fault("manifest.json", "does not say what it does not prove")
    check_digest(manifest, fault)


def check_digest(manifest, fault):
    """The digest is over the request as it was given, secrets and all."""
    request = {"columns": manifest["columns"], "end": manifest["range"]["end"],
               "filters": manifest["filters"], "purpose": manifest["purpose"],
               "source": manifest["source"],
               "start": manifest["range"]["start"]}
    text = canonical(request)
    if MARK_START not in text and manifest["request_digest"] != \
            hashlib.sha256(text.encode("utf-8")).hexdigest():
        fault("manifest.json", "request_digest is not that of the request")


def check_file(manifest, raw, records, fault):
    """Size, hash, counts and header of records.csv."""
    entry = manifest["files"][0]
    count = len(records) - 1
    if len(manifest["files"]) != 1 or entry["name"] != "records.csv":
        fault("manifest.json", "does not list records.csv alone")
    if entry["dialect"] != DIALECT:
        fault("manifest.json", "dialect %r" % entry["dialect"])
    if entry["sha256"] != hashlib.sha256(raw).hexdigest():
        fault("manifest.json", "SHA-256 of records.csv differs")
    if entry["bytes"] != len(raw):
        fault("manifest.json", "length of records.csv differs")
    if manifest["record_count"] != count or entry["rows"] != count:
        fault("manifest.json", "record_count is %r and there are %d records"
              % (manifest["record_count"], count))
    header = [cell for cell, _ in records[0]]
    if header != manifest["columns"]:
        fault("records.csv", "header %r differs from columns" % header)
    for number, record in enumerate(records):
        if len(record) != len(header):
            fault("record %d" % number, "%d cells" % len(record))


def check_order(manifest, records, fault):
    """Every record in the range, in the order of (created_at, id), once."""
    header = manifest["columns"]
    edges = [manifest["first"], manifest["last"]]
    if len(records) == 1:
        if edges != [None, None]:
            fault("manifest.json", "first and last without a record")
        return
    if "id" not in header or "created_at" not in header:
        return
    keys = [(record[header.index("created_at")][0],
             int(record[header.index("id")][0])) for record in records[1:]]
    # A number that JSON readers would round is a text.
    if edges != [{"created_at": at,
                  "id": number if abs(number) < 2 ** 53 else str(number)}
                 for at, number in (keys[0], keys[-1])]:
        fault("manifest.json", "first or last is another record")
    start, end = (instant(manifest["range"][name]) for name in ("start", "end"))
    before = None
    for at, number in keys:
        key = (instant(at), number)
        if not start <= key[0] < end:
            fault("id %d" % number, "%s is outside of the range" % at)
        if before is not None and key <= before:
            fault("id %d" % number, "out of order")
        before = key


def check_filters(manifest, records, fault):
    """Every record matches one value of each key."""
    header = manifest["columns"]
    for key, allowed in manifest["filters"].items():
        if key not in header or any(MARK_START in text for text in allowed):
            continue
        at = header.index(key)
        exact = set(allowed)
        prefixes = tuple(text[:-1] for text in allowed
                         if key == "action" and text.endswith(".*")
                         and len(text) > 2)
        for number, record in enumerate(records[1:], 1):
            text = undo_guard(record[at][0])[0]
            if not (text in exact or text.startswith(prefixes)
                    or MARK_START in text):
                fault("record %d, %s" % (number, key),
                      "%r does not match the filter" % text[:80])


def check_manifest(raw, records_raw, records, fault):
    """All of the above; returns the manifest."""
    manifest = json.loads(raw.decode("utf-8"), object_pairs_hook=no_doubles)
    if canonical(manifest).encode("utf-8") != raw:
        fault("manifest.json", "is not in canonical form")
    check_claims(manifest, fault)
    check_file(manifest, records_raw, records, fault)
    check_order(manifest, records, fault)
    check_filters(manifest, records, fault)
    return manifest
