#!/usr/bin/env python3
"""Check that every hostile case has a test, as test/cases.md says.

Each case stands in the table once; each file that it names exists, and each
text in quotes is found there.  So a test that is renamed or taken out is
missed.

  check_cases.py               check the table
  check_cases.py --self-test   plant faults in a table and see each reported
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

CASES = [f"C{number:02}" for number in
         (*range(1, 58), *range(60, 67))]
REQUIREMENTS = ["S1.56", "S1.57", "S2.8", "S2.12", "S2.17", "S2.21", "S2.29",
                "S3.23", "S3.25", "S3.26", "S3.28", "S3.39", "S3.64", "S3.65",
                "S3.76", "S3.84", "S3.91", "S3.98", "S3.99", "S3.106", "S3.107",
                "S3.110"]

ROW = re.compile(r"^\| ([CS][\d.]+) \| (.+?) \| (.+) \|$", re.MULTILINE)
# `file`, or `file` "text"; the text may hold quotes of its own.
HELD_BY = re.compile(r'`([^`]+)`(?: "(.+)")?')


def words(text):
    """The text on one line, since documents are wrapped."""
    return " ".join(text.split())


def faults(table, root, wanted):
    """Yield what is wrong with the table."""
    seen = {}
    texts = {}
    for match in ROW.finditer(table):
        case, _, held_by = match.groups()
        if case in seen:
            yield f"{case} stands there twice"
        seen[case] = held_by
        for part in held_by.split("; "):
            reference = HELD_BY.fullmatch(part)
            if reference is None:
                yield f"{case}: not a file with a text: {part}"
                continue
            name, text = reference.groups()
            path = root / name
            if name not in texts and path.is_file():
                texts[name] = words(path.read_text("utf-8"))
            if name not in texts:
                yield f"{case}: no file {name}"
            elif text and words(text) not in texts[name]:
                yield f"{case}: {name} does not hold: {text}"
            elif not text and not name.startswith("test/"):
                yield f"{case}: {name} is named without a text"
    for case in wanted:
        if case not in seen:
            yield f"{case} is missing"
    for case in seen:
        if case not in wanted:
            yield f"{case} is not known"


GOOD = ('| C01 | formulas | `README.md` "Contents: [Requirements]"; '
        '`test/tools/check_cases.py` |\n'
        '| C02 | quotes | `test/tools/check_cases.py` "say "quoted"" |\n')

PLANTED = (
    ("| C02 |", "| C01 |", "twice"),
    ("| C02 | quotes", "| C03 | quotes", "C02 is missing"),
    ("| C02 | quotes", "| C99 | quotes", "C99 is not known"),
    ("`README.md` \"", "`READ.md` \"", "no file"),
    ("Contents: [Requirements]", "no such text", "does not hold"),
    ("say \"quoted\"", "say \"" + "other\"", "does not hold"),
    ("`README.md` \"Contents: [Requirements]\"", "`README.md`",
     "without a text"),
    ("`README.md` \"Contents: [Requirements]\"", "by inspection",
     "not a file"),
)


def self_test():
    wrong = [f"the good table is blamed: {fault}"
             for fault in faults(GOOD, ROOT, ["C01", "C02"])]
    for old, new, wanted in PLANTED:
        found = list(faults(GOOD.replace(old, new, 1), ROOT, ["C01", "C02"]))
        if not any(wanted in fault for fault in found):
            wrong.append(f"not reported: {old!r} -> {new!r}: {found}")
    for fault in wrong:
        print(f"self-test: {fault}")
    if not wrong:
        print(f"self-test: {len(PLANTED)} planted faults are reported")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    table = (ROOT / "test/cases.md").read_text("utf-8")
    wanted = CASES + REQUIREMENTS
    found = list(faults(table, ROOT, wanted))
    print("\n".join(found) if found
          else f"{len(wanted)} cases and requirements have their tests")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
