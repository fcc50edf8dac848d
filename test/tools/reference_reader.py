#!/usr/bin/env python3
"""Read an evidence package independently of the code that wrote it.

    reference_reader.py PACKAGE.zip [--table ROWS.json]

Checks the layout of the archive, the canonical form of the manifest, its
hash and counts.  With --table it also compares records.csv cell by cell with
the table.  ROWS.json is an array of objects, one for each row, ordered by
(created_at, id): text as it stands in the table, null for NULL, created_at
in the form it must have in the package.

A cell must equal the table's text after the documented cleaning, once the
documented guard is undone; a mark [redacted:rule] in the cell stands for any
text that is not empty.  Exit status 1 if anything differs, each difference
named.

It uses Python's own csv, zipfile, hashlib, json and unicodedata, and rules
written from the documentation (extension/package/csv.h), no code of the
project.
"""
import argparse
import csv
import hashlib
import io
import json
import re
import struct
import sys
import unicodedata
import zipfile

MEMBERS = ["records.csv", "manifest.json"]
HIDDEN = {"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Mc", "Me", "Cn", "Cs"}
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
TRIGGERS = set("=+-@\u207a\u207c\u208a\u208c\u2a75\u2a76\ufb29"
               "\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20")
MARK = re.compile(r"\[redacted:[a-z0-9_-]{1,40}\]")
MARK_START = "[redacted:"

faults = []


def fault(where, what):
    faults.append((where, what))
    if len(faults) <= 50:
        print("FAULT %s: %s" % (where, what))


# Cells ---------------------------------------------------------------------

def hidden(char):
    return char in BLANK_LETTERS or unicodedata.category(char) in HIDDEN


def behind_hidden(text, start=0):
    """Position of the first visible character from start on."""
    while start < len(text) and hidden(text[start]):
        start += 1
    return start


def dangerous(text, start=0):
    at = behind_hidden(text, start)
    return at < len(text) and text[at] in TRIGGERS


def looks_guarded(text):
    behind = len(text) - len(text.lstrip("'"))
    if behind == 0:
        return False
    return (dangerous(text, behind)
            or text.startswith(MARK_START, behind_hidden(text, behind)))


def undo_guard(cell):
    """Return the text behind the guard and whether there was one."""
    if looks_guarded(cell):
        return cell[1:], True
    return cell, False


def shown(char):
    code = ord(char)
    return (code in (0x61C, 0x200E, 0x200F)
            or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x206F
            or 0xE0000 <= code <= 0xE007F)


def clean(text):
    """Controls to blanks, bidi controls and tags written out."""
    first = behind_hidden(text)
    out = []
    for at, char in enumerate(text):
        if unicodedata.category(char) == "Cc" or char in "\u2028\u2029":
            out.append(" ")
        elif shown(char):
            out.append("<U+%04X>" % ord(char) if at > first else " ")
        else:
            out.append(char)
    return "".join(out)


def same_but_for_marks(text, wanted):
    """Is text what wanted becomes when marks replace parts of it?"""
    parts = MARK.split(text)
    if len(parts) == 1:
        return text == wanted
    if not wanted.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        at = wanted.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return (wanted.endswith(parts[-1])
            and len(wanted) - len(parts[-1]) > at)


# CSV -----------------------------------------------------------------------

def parse(text):
    """RFC 4180 records of (text, quoted) cells; CR LF ends each record.

    The csv module cannot tell an empty cell from a quoted empty one, hence
    this parser; the two are compared with each other below.
    """
    records, record, at = [], [], 0
    while at < len(text):
        if text[at] == '"':
            cell, at = [], at + 1
            while True:
                end = text.index('"', at)
                cell.append(text[at:end])
                at = end + 1
                if text[at:at + 1] != '"':
                    break
                cell.append('"')
                at += 1
            record.append(("".join(cell), True))
        else:
            match = re.compile(r'[^,"\r\n]*').match(text, at)
            record.append((match.group(), False))
            at = match.end()
        if text[at:at + 1] == ",":
            at += 1
        elif text[at:at + 2] == "\r\n":
            records.append(record)
            record, at = [], at + 2
        else:
            raise ValueError("stray character at %d" % at)
    if record:
        raise ValueError("the last record has no CR LF")
    return records


def check_csv_module(text, records):
    """A stock reader must see the same cells."""
    csv.field_size_limit(2 ** 30)
    stock = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if stock != [[cell for cell, _ in record] for record in records]:
        fault("records.csv", "the csv module reads other cells")


# Archive and manifest ------------------------------------------------------

def check_layout(data):
    """Local headers as a reader of a stream sees them: plain and gapless."""
    at = 0
    for name in MEMBERS:
        (magic, version, flags, method, _, date, crc, packed, size,
         name_length, extra) = struct.unpack_from("<4s5H3I2H", data, at)
        if magic != b"PK\3\4":
            fault("archive", "no local header at %d" % at)
            return
        found = data[at + 30:at + 30 + name_length]
        if found != name.encode():
            fault("archive", "%r where %s belongs" % (found, name))
        if (version, method, extra) != (20, 8, 0) or flags & ~6:
            fault("archive", "%s is not plain deflate" % name)
        if date != 0x21:
            fault("archive", "%s has a time of its own" % name)
        if not packed or not crc and size:
            fault("archive", "%s has no size in its local header" % name)
        at += 30 + name_length + extra + packed
    if data[at:at + 4] != b"PK\1\2":
        fault("archive", "bytes between the members and the directory")
    if data[-22:-18] != b"PK\5\6":
        fault("archive", "the end record is not the end")


def read_archive(path):
    with open(path, "rb") as file:
        data = file.read()
    check_layout(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if names != MEMBERS:
            fault("archive", "members are %r" % names)
        for info in archive.infolist():
            if info.external_attr >> 16 != 0o100644:
                fault("archive", "%s has another mode" % info.filename)
        return [archive.read(name) for name in MEMBERS]


def check_manifest(raw, records_raw, records):
    manifest = json.loads(raw)
    canonical = json.dumps(manifest, sort_keys=True, ensure_ascii=False,
                           separators=(",", ":"))
    if canonical.encode() != raw:
        fault("manifest.json", "is not in canonical form")
    entry = manifest["files"][0]
    if len(manifest["files"]) != 1 or entry["name"] != "records.csv":
        fault("manifest.json", "does not list records.csv alone")
    if entry["sha256"] != hashlib.sha256(records_raw).hexdigest():
        fault("manifest.json", "SHA-256 of records.csv differs")
    if entry["bytes"] != len(records_raw):
        fault("manifest.json", "length of records.csv differs")
    count = len(records) - 1
    if manifest["record_count"] != count or entry["rows"] != count:
        fault("manifest.json", "record_count is %r and there are %d records"
              % (manifest["record_count"], count))
    header = [cell for cell, _ in records[0]]
    if header != manifest["columns"]:
        fault("records.csv", "header %r differs from columns" % header)
    for number, record in enumerate(records):
        if len(record) != len(header):
            fault("record %d" % number, "%d cells" % len(record))
    edges = [None, None]
    if count and "id" in header and "created_at" in header:
        edges = [{"created_at": record[header.index("created_at")][0],
                  "id": int(record[header.index("id")][0])}
                 for record in (records[1], records[-1])]
        if [manifest["first"], manifest["last"]] != edges:
            fault("manifest.json", "first or last is another record")
    return manifest


# Table ---------------------------------------------------------------------

def check_cell(where, cell, quoted, value, counts):
    if value is None:
        if (cell, quoted) != ("", False):
            fault(where, "NULL came out as %r" % cell)
        return
    if not isinstance(value, str):
        if cell != str(value):
            fault(where, "%r came out as %r" % (value, cell))
        return
    if value == "" and not quoted:
        fault(where, "the empty text is not quoted")
    text, guarded = undo_guard(cell)
    wanted = clean(value)
    if not same_but_for_marks(text, wanted):
        fault(where, "%r came out as %r" % (value[:80], cell[:80]))
    if guarded != (dangerous(value) or dangerous(text)
                   or looks_guarded(text)):
        fault(where, "guard is wrong: %r came out as %r"
              % (value[:80], cell[:80]))
    redacted = text != wanted
    counts["formula_prefixed"] += guarded
    counts["redacted"] += redacted
    counts["cleaned"] += wanted != value and not redacted
    counts["maybe_cleaned"] += wanted != value


def check_table(rows, records, manifest):
    header = [cell for cell, _ in records[0]]
    if len(rows) != len(records) - 1:
        fault("records.csv", "%d records for %d rows"
              % (len(records) - 1, len(rows)))
    counts = dict(formula_prefixed=0, redacted=0, cleaned=0, maybe_cleaned=0)
    for number, (row, record) in enumerate(zip(rows, records[1:]), 1):
        for name, (cell, quoted) in zip(header, record):
            check_cell("record %d, %s" % (number, name), cell, quoted,
                       row[name], counts)
    cells = manifest["cells"]
    for name in ("formula_prefixed", "redacted"):
        if cells[name] != counts[name]:
            fault("manifest.json", "cells.%s is %d and there are %d"
                  % (name, cells[name], counts[name]))
    if not counts["cleaned"] <= cells["cleaned"] <= counts["maybe_cleaned"]:
        fault("manifest.json", "cells.cleaned is %d" % cells["cleaned"])


def main():
    parser = argparse.ArgumentParser(
        description="Read an evidence package independently.")
    parser.add_argument("package")
    parser.add_argument("--table", metavar="ROWS.json")
    arguments = parser.parse_args()
    records_raw, manifest_raw = read_archive(arguments.package)
    text = records_raw.decode("utf-8", "strict")
    records = parse(text)
    check_csv_module(text, records)
    manifest = check_manifest(manifest_raw, records_raw, records)
    if arguments.table:
        with open(arguments.table, encoding="utf-8") as file:
            check_table(json.load(file), records, manifest)
    print("%d records, %d faults" % (len(records) - 1, len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
