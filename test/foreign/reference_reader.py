#!/usr/bin/env python3
"""Read an evidence package independently of the code that wrote it.

    reference_reader.py PACKAGE.zip [--table ROWS.json [--secrets LIST.json]]

Checks the layout of the archive, the form and every claim of the manifest,
and that Python's csv module reads the records as a parser of RFC 4180 does.

--table compares records.csv cell by cell with the table.  ROWS.json is an
array of objects, one for each row, ordered by (created_at, id): text as it
stands in the table, null for NULL, created_at in the form it must have in
the package; or, for text that is not UTF-8, an object {"hex": "..."}.  A cell
must equal the table's text after the documented cleaning, once the documented
guard is undone; a mark [redacted:rule] stands for any text that is not empty.

--secrets narrows that down: LIST.json is an array of all secrets in the
table.  None may be anywhere in the package, and every mark must have taken
out one of them.

Exit status 1 if anything differs, each difference named.  It shares no code
with the project: zip_layout.py, manifest_rules.py and cell_rules.py are
written from README and from the formats' own documents.
"""
import argparse
import csv
import io
import json
import sys
import zipfile

from cell_rules import (clean, dangerous, from_bytes, looks_guarded,
                        needs_quotes, parse, removed_parts, undo_guard)
from manifest_rules import check_manifest
from zip_layout import MEMBERS, check_layout

faults = []


def fault(where, what):
    faults.append((where, what))
    if len(faults) <= 50:
        print("FAULT %s: %s" % (where, what))


def read_archive(path):
    with open(path, "rb") as file:
        data = file.read()
    check_layout(data, fault)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if archive.namelist() != MEMBERS:
            fault("archive", "members are %r" % archive.namelist())
        return [archive.read(name) for name in MEMBERS]


def check_csv_module(text, records):
    """A stock reader must see the same cells."""
    csv.field_size_limit(2 ** 30)
    stock = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if stock != [[cell for cell, _ in record] for record in records]:
        fault("records.csv", "the csv module reads other cells")


class Table:
    """Compares cells with the values that they were made from."""

    def __init__(self, secrets):
        self.secrets = secrets
        self.counts = dict(formula_prefixed=0, redacted=0, cleaned=0,
                           maybe_cleaned=0)
        self.cells = 0

    def check_cell(self, where, cell, quoted, value):
        self.cells += 1
        if value is None:
            if (cell, quoted) != ("", False):
                fault(where, "NULL came out as %r" % cell)
            return
        if quoted != needs_quotes(cell):
            fault(where, "quotes: %r" % cell[:80])
        if isinstance(value, int):
            if cell != str(value):
                fault(where, "%r came out as %r" % (value, cell))
            return
        if isinstance(value, dict):
            raw = bytes.fromhex(value["hex"])
            value = from_bytes(raw)
            repaired = value.encode("utf-8") != raw
        else:
            repaired = False
        self.check_text(where, cell, value, repaired)

    def check_text(self, where, cell, value, repaired):
        text, guarded = undo_guard(cell)
        wanted = clean(value)
        removed = removed_parts(text, wanted)
        if removed is None:
            fault(where, "%r came out as %r" % (value[:80], cell[:80]))
            return
        if guarded != (dangerous(value) or dangerous(text)
                       or looks_guarded(text)):
            fault(where, "guard is wrong: %r came out as %r"
                  % (value[:80], cell[:80]))
        if self.secrets is not None:
            self.check_marks(where, wanted, removed)
        cleaned = repaired or wanted != value
        self.counts["formula_prefixed"] += guarded
        self.counts["redacted"] += bool(removed)
        self.counts["cleaned"] += cleaned and (repaired or not removed)
        self.counts["maybe_cleaned"] += cleaned

    def check_marks(self, where, wanted, removed):
        planted = [secret for secret in self.secrets if secret in wanted]
        if planted and not removed:
            fault(where, "a secret was left in %r" % wanted[:80])
        for part in removed:
            if not any(secret in part for secret in planted):
                fault(where, "%r is no secret and was taken out" % part[:80])

    def check_counts(self, manifest):
        cells, counts = manifest["cells"], self.counts
        for name in ("formula_prefixed", "redacted"):
            if cells[name] != counts[name]:
                fault("manifest.json", "cells.%s is %d and there are %d"
                      % (name, cells[name], counts[name]))
        # A control character may have left together with a secret.
        if not counts["cleaned"] <= cells["cleaned"] <= counts["maybe_cleaned"]:
            fault("manifest.json", "cells.cleaned is %d, not %d to %d"
                  % (cells["cleaned"], counts["cleaned"],
                     counts["maybe_cleaned"]))


def check_table(rows, records, manifest, secrets):
    table = Table(secrets)
    header = manifest["columns"]
    if len(rows) != len(records) - 1:
        fault("records.csv", "%d records for %d rows"
              % (len(records) - 1, len(rows)))
    for number, (row, record) in enumerate(zip(rows, records[1:]), 1):
        for name, (cell, quoted) in zip(header, record):
            table.check_cell("record %d, %s" % (number, name), cell, quoted,
                             row[name])
    table.check_counts(manifest)
    return table.cells


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def judge(package, table=None, secrets=None):
    """Read one package; how many records and cells were looked at."""
    records_raw, manifest_raw = read_archive(package)
    records = parse(records_raw.decode("utf-8", "strict"))
    check_csv_module(records_raw.decode("utf-8"), records)
    manifest = check_manifest(manifest_raw, records_raw, records, fault)
    for secret in secrets or []:
        for name, member in zip(MEMBERS, (records_raw, manifest_raw)):
            if secret.encode("utf-8") in member:
                fault(name, "holds the secret %r" % secret)
    cells = 0
    if table is not None:
        cells = check_table(table, records, manifest, secrets)
    return len(records) - 1, cells


def main():
    parser = argparse.ArgumentParser(
        description="Read an evidence package independently.")
    parser.add_argument("package")
    parser.add_argument("--table", metavar="ROWS.json")
    parser.add_argument("--secrets", metavar="LIST.json")
    arguments = parser.parse_args()
    records, cells = judge(
        arguments.package,
        load(arguments.table) if arguments.table else None,
        load(arguments.secrets) if arguments.secrets else None)
    print("%d records, %d cells compared with the table, %d faults"
          % (records, cells, len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
