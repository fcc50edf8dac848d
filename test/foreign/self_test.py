#!/usr/bin/env python3
"""Show that the reference reader finds what it claims to look for.

A small package is made here, from README and with Python's zipfile; the
reader must find nothing wrong with it.  Then one thing after the other is
broken, with every hash and count mended behind it, and the reader must say
so.  Prints TAP.
"""
import contextlib
import hashlib
import io
import json
import sys
import tempfile
import zipfile

import reference_reader
from manifest_rules import COLUMNS, DIALECT, canonical

SECRET = "Jk8Lo2Mn5P"
# What stands in the log and what the package has for it, column by column.
ROWS = [
    ("first", "first", "=1+1", "'=1+1"),
    ("two\r\nlines", "two  lines", "'tis fine", "'tis fine"),
    ("a, \"b\"", '"a, ""b"""', "'-7", "''-7"),
    ("", '""', "password=" + SECRET, "password=[redacted:password]"),
    (None, "", "a\u202eb", "a<U+202E>b"),
    ("last", "last", "\t@x", "' @x"),
]


def time_of(number):
    return "2026-03-01T00:00:0%d.000000Z" % number


def table():
    rows = []
    for number, (code, _, summary, _) in enumerate(ROWS):
        row = dict.fromkeys(COLUMNS, "x")
        row.update(id=str(100 + number), created_at=time_of(number),
                   outcome="success", error_code=code, summary=summary)
        rows.append(row)
    return rows


def records():
    lines = [",".join(COLUMNS)]
    for number, (_, code, _, summary) in enumerate(ROWS):
        cells = dict.fromkeys(COLUMNS, "x")
        cells.update(id=str(100 + number), created_at=time_of(number),
                     outcome="success", error_code=code, summary=summary)
        lines.append(",".join(cells[name] for name in COLUMNS))
    return "".join(line + "\r\n" for line in lines)


def manifest(text, count=len(ROWS)):
    raw = text.encode("utf-8")
    found = {
        "cells": {"formula_prefixed": 3, "redacted": 1, "cleaned": 3},
        "columns": COLUMNS, "generation": 1, "format": "pg_evidence/1",
        "export_id": "00000000-0000-0000-0000-000000000000",
        "files": [{"name": "records.csv", "bytes": len(raw), "rows": count,
                   "sha256": hashlib.sha256(raw).hexdigest(),
                   "dialect": DIALECT}],
        "filters": {"outcome": ["success"]}, "source": "audit_log",
        "first": {"created_at": time_of(0), "id": 100},
        "last": {"created_at": time_of(5), "id": 105},
        "limits": ["It proves little."], "policy": {"version": 1},
        "producer": {"codec": "zlib", "name": "self test", "version": "0"},
        "purpose": "test", "record_count": count, "requested_by": "me",
        "range": {"start": time_of(0), "end": time_of(6)},
        "redaction": {"enabled": True, "ruleset": "x", "version": 1,
                      "sha256": "0" * 64},
        "requested_at": time_of(6),
        "snapshot": {"at": time_of(6), "consistency": "as-of-request"},
    }
    asked = {name: found[name] for name in ("columns", "filters", "purpose",
                                            "source")}
    found["request_digest"] = hashlib.sha256(canonical(
        dict(asked, **found["range"])).encode("utf-8")).hexdigest()
    return found


def archive(members, **fields):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            for field, value in fields.items():
                setattr(info, field, value)
            package.writestr(info, text)
    return out.getvalue()


def package(text=None, claims=None, raw=None, **fields):
    """The good package, but for what is given."""
    text = records() if text is None else text
    claims = manifest(text, text.count("\r\n") - 1) if claims is None \
        else claims
    raw = canonical(claims) if raw is None else raw
    return archive([("records.csv", text), ("manifest.json", raw)], **fields)


def claiming(**claims):
    return package(claims=dict(manifest(records()), **claims))


def with_cell(good, bad):
    text = records()
    assert text.count(good) == 1, good
    return package(text.replace(good, bad))


def broken_packages():
    """What is wrong, the package, and words that must be said of it."""
    good = package()
    text, claims = records(), manifest(records())
    lines = text.splitlines(True)
    entry = claims["files"][0]
    yield "bytes behind the end", good + b"\0", "behind the directory"
    yield "a comment", good[:-2] + b"\1\0x", "behind the directory"
    yield "a time", package(date_time=(2026, 3, 1, 0, 0, 0)), "time of its own"
    yield "an extra field", package(extra=b"\xff\xff\0\0"), "extra field"
    yield "stored", package(compress_type=zipfile.ZIP_STORED), "method"
    yield "no mode", package(external_attr=0), "attributes"
    yield "made on DOS", package(create_system=0), "attributes"
    yield "a third member", archive([
        ("records.csv", text), ("manifest.json", canonical(claims)),
        ("x", "")]), "directory"
    yield "other order", archive([("manifest.json", canonical(claims)),
                                  ("records.csv", text)]), "belongs"
    yield "local CRC", good[:14] + b"\0\0\0\0" + good[18:], "CRC"
    at = good.index(b"PK\1\2")
    yield ("directory CRC", good[:at + 16] + b"\0\0\0\0" + good[at + 20:],
           "differ")
    yield "blanks in JSON", package(raw=json.dumps(claims)), "canonical"
    yield ("order in JSON", package(raw=json.dumps(
        claims, separators=(",", ":"))), "canonical")
    yield "a missing member", package(claims={
        name: claims[name] for name in claims if name != "policy"}), "members"
    yield "a new member", claiming(extra=1), "members"
    yield "count", claiming(record_count=7), "record_count"
    yield "hash", claiming(files=[dict(entry, sha256="0" * 64)]), "SHA-256"
    yield "size", claiming(files=[dict(entry, bytes=1)]), "length"
    yield "first", claiming(first=dict(claims["first"], id=1)), "first"
    yield "digest", claiming(request_digest="0" * 64), "request_digest"
    yield "purpose", claiming(purpose="another"), "request_digest"
    yield ("filter", claiming(filters={"outcome": ["denied"]}),
           "does not match")
    yield "range", claiming(range={"start": time_of(0), "end": time_of(5)}), \
        "outside"
    yield ("counts of cells", claiming(cells=dict(
        claims["cells"], formula_prefixed=2)), "cells.formula_prefixed")
    yield "a row less", package("".join(lines[:3] + lines[4:])), "5 records"
    yield ("rows exchanged", package("".join(
        lines[:2] + [lines[3], lines[2]] + lines[4:])), "out of order")
    yield "no guard", with_cell("'=1+1", "=1+1"), "guard is wrong"
    yield "a guard too many", with_cell("'=1+1", "''=1+1"), "came out as"
    yield "a needless guard", with_cell("'tis", "''tis"), "came out as"
    yield "no cleaning", with_cell("<U+202E>", "\u202e"), "came out as"
    yield "a letter", with_cell("first", "fIrst"), "came out as"
    yield "a secret", with_cell("[redacted:password]", SECRET), "secret"
    yield ("a mark too many", with_cell("two  lines", "two [redacted:x]"),
           "no secret")
    yield "NULL for empty", with_cell(',"",', ",,"), "quotes"
    yield "needless quotes", with_cell("two  lines", '"two  lines"'), "quotes"


def faults_of(data):
    """All that the reader says about a package."""
    reference_reader.faults.clear()
    with tempfile.NamedTemporaryFile() as file, \
            contextlib.redirect_stdout(io.StringIO()):
        file.write(data)
        file.flush()
        try:
            reference_reader.judge(file.name, table(), [SECRET])
        except Exception as error:
            reference_reader.faults.append(("reader", str(error)))
    return "\n".join("%s: %s" % fault for fault in reference_reader.faults)


def main():
    results = [("a good package is good", faults_of(package()) == "",
                faults_of(package()))]
    for what, data, words in broken_packages():
        said = faults_of(data)
        results.append(("broken: " + what, words in said, said))
    for number, (what, good, said) in enumerate(results, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, what))
        if not good:
            print("".join("# %s\n" % line for line in said.splitlines()))
    print("1..%d" % len(results))
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
