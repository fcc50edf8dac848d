#!/usr/bin/env python3
"""Open records.csv in spreadsheets and look at every cell.

    spreadsheets.py MODE NAME=PACKAGE.zip... [--formulas-at-least N]

MODE is how the file is opened:

  evaluate   comma, UTF-8, everything recognised that LibreOffice can: numbers,
             dates, and formulas evaluated, as if a user had asked for it
  text       the same with all columns as text
  latin      read as Windows-1252, which is what LibreOffice takes a file for
             without being told
  tab        split at tabs
  semicolon  split at ; and |, which README warns of
  gnumeric   Gnumeric, which takes an apostrophe for its own mark of a text

No cell may become a formula.  With evaluate, text and gnumeric every text
must also be the one that the reference parser sees, but for what the
spreadsheet cannot hold: each such cell is counted and said.

--formulas-at-least is for the controls: a file that must give formulas, so
that a spreadsheet that never evaluates anything cannot pass.  A file of CSV
may stand for a package there.

Prints one line of a Markdown table for each package.
"""
import argparse
import collections
import io
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile

from cell_rules import parse
from text_readers import version

OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
GNUMERIC = "{http://www.gnumeric.org/v10.dtd}"

COMPARED = ("evaluate", "text", "gnumeric")
# The longest text of a LibreOffice cell.
CALC_LONGEST = 65535
# XML has no form for these, so neither format can store them.
NOT_IN_XML = re.compile("[\ufffe\uffff]")
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(E[0-9]+)?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

# Separators, quote, character set (76 is UTF-8, 1 is Windows-1252), first
# line, columns, language, quoted fields as text, special numbers, three for
# storing, sheet, evaluate formulas.
OPTIONS = "%s,34,%d,1,%s,0,false,true,false,false,false,0,true"
TEXT_COLUMNS = "/".join("%d/2" % column for column in range(1, 14))
MODES = {
    "evaluate": (OPTIONS % ("44", 76, ""), "LibreOffice, formulas evaluated"),
    "text": (OPTIONS % ("44", 76, TEXT_COLUMNS),
             "LibreOffice, columns as text"),
    "latin": (OPTIONS % ("44", 1, ""), "LibreOffice, as Windows-1252"),
    "tab": (OPTIONS % ("9", 76, ""), "LibreOffice, split at tabs"),
    "semicolon": (OPTIONS % ("59/124", 76, ""),
                  "LibreOffice, split at ; and \\|"),
    "gnumeric": (None, "Gnumeric"),
}

Cell = collections.namedtuple("Cell", "formula kind text")


# LibreOffice ----------------------------------------------------------------

def paragraph(element):
    """The text of a paragraph; runs of blanks are elements there."""
    out = [element.text or ""]
    for child in element:
        if child.tag == TEXT + "s":
            out.append(" " * int(child.get(TEXT + "c", "1")))
        elif child.tag == TEXT + "tab":
            out.append("\t")
        elif child.tag == TEXT + "line-break":
            out.append("\n")
        else:
            out.append(paragraph(child))
        out.append(child.tail or "")
    return "".join(out)


def calc_row(element):
    row = []
    for cell in element:
        text = "\n".join(paragraph(child)
                         for child in cell.findall(TEXT + "p"))
        times = int(cell.get(TABLE + "number-columns-repeated", "1"))
        found = Cell(cell.get(TABLE + "formula"),
                     cell.get(OFFICE + "value-type"), text)
        # The empty rest of a sheet is one cell, repeated.
        row += [found] * (times if found.kind else min(times, 64))
    return row


def calc_rows(path):
    """All rows of a flat OpenDocument file that hold anything."""
    rows = []
    for _, element in ElementTree.iterparse(path):
        if element.tag == TABLE + "table-row":
            row = calc_row(element)
            if any(cell.kind or cell.formula for cell in row):
                times = int(element.get(TABLE + "number-rows-repeated", "1"))
                rows += [row] * times
            element.clear()
    return rows


def open_in_calc(paths, options, folder):
    """Convert files to flat OpenDocument; the new paths in the same order.

    A profile of its own keeps the settings of a user out.
    """
    command = ["soffice", "-env:UserInstallation=file://%s/profile" % folder,
               "--headless", "--norestore",
               "--infilter=Text - txt - csv (StarCalc):" + options,
               "--convert-to", "fods", "--outdir", folder, *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=folder,
                          env=dict(os.environ, HOME=folder))
    out = [path[:-len(".csv")] + ".fods" for path in paths]
    for path in out:
        if not os.path.exists(path):
            raise RuntimeError("soffice made no %s: %s"
                               % (path, done.stdout.decode()[:2000]))
    return out


# Gnumeric -------------------------------------------------------------------

def gnumeric_rows(path):
    with open(path, "rb") as file:
        text = NOT_IN_XML.sub("", file.read().decode("utf-8"))
    cells = {}
    for _, element in ElementTree.iterparse(io.StringIO(text)):
        if element.tag == GNUMERIC + "Cell":
            kind = {"60": "string", None: None}.get(element.get("ValueType"),
                                                    "float")
            formula = element.text if kind is None else None
            at = int(element.get("Row")), int(element.get("Col"))
            cells[at] = Cell(formula, kind, element.text or "")
    height = max(row for row, _ in cells) + 1
    width = max(column for _, column in cells) + 1
    return [[cells.get((row, column), Cell(None, None, ""))
             for column in range(width)] for row in range(height)]


def open_in_gnumeric(paths, folder):
    out = []
    for path in paths:
        out.append(path[:-len(".csv")] + ".xml")
        subprocess.run(["ssconvert", "-I", "Gnumeric_stf:stf_csvtab", "-T",
                        "Gnumeric_XmlIO:sax:0", path, out[-1]], check=True,
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, HOME=folder))
    return out


# Comparing ------------------------------------------------------------------

def difference(mode, cell, want):
    """Why the sheet shows something else than the file; None if it does not.

    An explanation in words is a known limit of the program; False is none.
    """
    if cell.text == want:
        return None
    if cell.kind == "float" and (NUMBER.fullmatch(want)
                                 or mode == "gnumeric"
                                 and TIME.fullmatch(want)):
        return "taken for a number or a time"
    if NOT_IN_XML.search(want):
        return "without U+FFFF" if cell.text == NOT_IN_XML.sub("", want) \
            else False
    if mode == "gnumeric":
        return "apostrophe taken off" if "'" + cell.text == want else False
    if len(want) > CALC_LONGEST and cell.text == want[:CALC_LONGEST]:
        return "cut at %d characters" % CALC_LONGEST
    return False


def compare(mode, rows, records):
    """Cells compared, explained differences by reason, and faults."""
    reasons = collections.Counter()
    faults = []
    cells = 0
    if len(rows) != len(records):
        faults.append("%d rows for %d records" % (len(rows), len(records)))
    for number, (row, record) in enumerate(zip(rows, records)):
        nothing = [Cell(None, None, "")] * (len(record) - len(row))
        for name, cell, (want, _) in zip(records[0], row + nothing, record):
            cells += 1
            reason = difference(mode, cell, want)
            if reason is False:
                faults.append("record %d, %s: %r is shown as %s %r"
                              % (number, name[0], want[:80], cell.kind,
                                 cell.text[:80]))
            elif reason:
                reasons[reason] += 1
        if any(cell.kind for cell in row[len(record):]):
            faults.append("record %d has more cells" % number)
    return cells, reasons, faults


def unpack(path, number, folder):
    """A file of CSV for the spreadsheet, whatever was given."""
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as package:
            data = package.read("records.csv")
    else:
        with open(path, "rb") as file:
            data = file.read()
    out = os.path.join(folder, "sheet%d.csv" % number)
    with open(out, "wb") as file:
        file.write(data)
    return out


def judge(mode, name, csv_path, rows, formulas_wanted):
    """Print the line of one package; true if all is as it must be."""
    formulas = [cell.formula for row in rows for cell in row if cell.formula]
    faults, reasons = [], {}
    compared = "formulas only"
    if len(formulas) < formulas_wanted or formulas and not formulas_wanted:
        faults.append("%d formulas: %s"
                      % (len(formulas), " ".join(formulas[:10])))
    if mode in COMPARED and not formulas_wanted:
        with open(csv_path, encoding="utf-8", newline="") as file:
            records = parse(file.read())
        cells, reasons, more = compare(mode, rows, records)
        compared = "%d cells" % cells
        faults += more
    program = version("ssconvert" if mode == "gnumeric" else "soffice",
                      "--version")
    told = "; ".join("%d %s" % (count, reason)
                     for reason, count in sorted(reasons.items()))
    print("| %s | %s | %s | %d | %s | %d | %d%s |"
          % (MODES[mode][1], program, name, len(rows) - 1, compared,
             len(formulas), len(faults), told and " (" + told + ")"))
    for fault in faults[:20]:
        print("FAULT %s: %s: %s" % (mode, name, fault), file=sys.stderr)
    return not faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--formulas-at-least", type=int, default=0)
    parser.add_argument("packages", nargs="+", metavar="NAME=FILE")
    arguments = parser.parse_args()
    named = [package.split("=", 1) for package in arguments.packages]
    with tempfile.TemporaryDirectory() as folder:
        paths = [unpack(path, number, folder)
                 for number, (_, path) in enumerate(named)]
        if arguments.mode == "gnumeric":
            sheets = map(gnumeric_rows, open_in_gnumeric(paths, folder))
        else:
            sheets = map(calc_rows, open_in_calc(
                paths, MODES[arguments.mode][0], folder))
        good = [judge(arguments.mode, name, path, rows,
                      arguments.formulas_at_least)
                for (name, _), path, rows in zip(named, paths, sheets)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
