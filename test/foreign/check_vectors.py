#!/usr/bin/env python3
"""Check the package of hostile rows against what is stated for each.

    check_vectors.py PACKAGE.zip VECTORS.json

VECTORS.json is the table of test/data/hostile_rows.sql as an array of
objects.  Where no cell is stated, the needles tell where redaction had to
happen: each of them was taken out, and nothing was taken out without one.
Prints each vector that does not hold and ends with 1 if there is one.
Shares no code with the project.
"""
import csv
import io
import json
import sys
import zipfile

from cell_rules import clean, removed_parts, undo_guard


def check_marks(vector, cell):
    """Yield what redaction took out too much or too little."""
    removed = removed_parts(undo_guard(cell)[0], clean(vector["value"]))
    if removed is None:
        yield "more than marks distinguishes it from the row: %r" % cell[:80]
        return
    for part in removed:
        if not any(needle in part for needle in vector["needles"]):
            yield "%r was taken out" % part[:80]
    for needle in vector["needles"]:
        if not any(needle in part for part in removed):
            yield "%r was not taken out by a mark" % needle


def check(vector, row, members):
    """Yield what is wrong with one row."""
    cell = row[vector["col"]]
    if vector["cell"] is not None and cell != vector["cell"]:
        yield "cell is %r, not %r" % (cell[:80], vector["cell"][:80])
    if vector["cell"] is None and vector["value"] is not None:
        yield from check_marks(vector, cell)
    for needle in vector["needles"]:
        for name, data in members.items():
            if needle.encode() in data:
                yield "%r is in %s" % (needle, name)
    for text in vector["keeps"]:
        if text not in cell:
            yield "%r is gone from %r" % (text, cell[:80])


def main():
    with zipfile.ZipFile(sys.argv[1]) as package:
        members = {name: package.read(name) for name in package.namelist()}
    with open(sys.argv[2], encoding="utf-8") as file:
        vectors = json.load(file)
    csv.field_size_limit(1 << 30)
    text = members["records.csv"].decode("utf-8")
    rows = {row["request_id"]: row
            for row in csv.DictReader(io.StringIO(text, newline=""))}

    faults = 0
    for vector in vectors:
        if vector["key"] not in rows:
            faults += 1
            print("%s: no record" % vector["key"])
            continue
        for fault in check(vector, rows[vector["key"]], members):
            faults += 1
            print("%s: %s" % (vector["key"], fault))
    print("%d vectors, %d faults" % (len(vectors), faults))
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
