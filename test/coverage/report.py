#!/usr/bin/env python3
"""Tell which lines of extension/ and uploader/ no test has run.

  report.py TREE [TABLE]   read what a tree built with --coverage has counted
                           while the tests ran; write the Markdown table of
                           folders to the file TABLE

A block is a run of lines of one function none of which ran.  Each must stand
in uncovered.txt, under the reason why no test reaches it.  The exit status is
1 when a block is not listed, when a listed one has run or is gone, or when
less than 90 % of the lines of extension/ or of uploader/ ran.  Under a reason
that begins with "By chance: " stand blocks that now and then run.

The package code is compiled three times, for the server, the program and the
unit tests; a line counts as run when it ran in any of them.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

WANTED = 90.0
PARTS = ("extension", "uploader")
LIST = "test/coverage/uncovered.txt"
CHANCE = "By chance: "
ROOT = pathlib.Path(__file__).resolve().parents[2]


def shorten(line):
    """The text of a line as the list has it."""
    return re.sub(r"\s+", " ", line.strip())


class File:
    """What ran of one source file."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8").splitlines()
        self.lines = {}             # number -> how often it ran
        self.functions = {}         # number -> name

    def add(self, line):
        """Add what one object file says about a line."""
        number = line["line_number"]
        self.lines[number] = self.lines.get(number, 0) + line["count"]
        self.functions[number] = line.get("function_name", "")

    def covered(self):
        """How many lines ran."""
        return sum(count > 0 for count in self.lines.values())

    def has(self, first):
        """Is there a line with this text?"""
        return any(shorten(line) == first for line in self.text)

    def blocks(self):
        """Yield (function, text of the first line, line numbers)."""
        block = []
        for number in sorted(self.lines) + [None]:
            goes_on = number is not None and self.lines[number] == 0
            if block and not (goes_on and self.functions[number] ==
                              self.functions[block[0]]):
                first = shorten(self.text[block[0] - 1])
                yield self.functions[block[0]], first, block
                block = []
            if goes_on:
                block.append(number)


def gcov(tree):
    """Yield what gcov says, object by object."""
    notes = sorted(tree.rglob("*.gcno"))
    if not notes:
        sys.exit(f"report.py: nothing in {tree} was built with --coverage")
    # Some thousand lines of JSON each, so not all in one go.
    for note in notes:
        output = subprocess.run(
            ["gcov", "--json-format", "--stdout", str(note)], cwd=tree,
            check=True, capture_output=True, text=True).stdout
        for line in output.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def measure(tree):
    """Return {path: File} for all C files of the two parts."""
    files = {}
    for report in gcov(tree):
        folder = pathlib.Path(report["current_working_directory"])
        for entry in report["files"]:
            path = (folder / entry["file"]).resolve()
            if not path.is_relative_to(tree):
                continue
            name = str(path.relative_to(tree))
            if not name.startswith(PARTS):
                continue
            if name not in files:
                files[name] = File(path)
            for line in entry["lines"]:
                files[name].add(line)
    return files


def read_list(path):
    """Return the listed blocks, counted by (file, function, first line), and
    those among them that chance may have run."""
    listed = collections.Counter()
    chance = set()
    reason = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            reason = line
            continue
        match = re.fullmatch(r" +(\S+) (\S+): (.*?)(?: \{(\d+)\})?", line)
        if reason is None or match is None:
            sys.exit(f"{path}:{number}: not of the form"
                     ' "  FILE FUNCTION: FIRST LINE" under a reason')
        listed[match.group(1, 2, 3)] += int(match.group(4) or 1)
        if reason.startswith(CHANCE):
            chance.add(match.group(1, 2, 3))
    return listed, chance


def percent(covered, lines):
    """Rounded down, so that 90.0 means it."""
    return int(1000 * covered / max(lines, 1)) / 10


def folder_rows(files):
    """Yield (name, lines, covered) of each folder and of the two parts."""
    folders = collections.defaultdict(list)
    for name, file in files.items():
        folders[str(pathlib.PurePath(name).parent)].append(file)
    for folder in sorted(folders):
        if folder not in PARTS or folder == "uploader":
            yield f"{folder}/", folders[folder]
        else:
            yield f"{folder}/*.c", folders[folder]


def table(files):
    """Return the rows (name, lines, covered), the two parts in the end."""
    rows = [(name, sum(len(file.lines) for file in members),
             sum(file.covered() for file in members))
            for name, members in folder_rows(files)]
    for part in PARTS:
        members = [file for name, file in files.items()
                   if name.startswith(part + "/")]
        rows.append((f"all of {part}/",
                     sum(len(file.lines) for file in members),
                     sum(file.covered() for file in members)))
    return rows


def markdown(rows):
    """The table of folders as README has it."""
    lines = ["| folder | lines | run by a test | share |",
             "| --- | ---: | ---: | ---: |"]
    lines += [f"| {name} | {total} | {covered} | "
              f"{percent(covered, total):.1f} % |"
              for name, total, covered in rows]
    return "\n".join(lines) + "\n"


def compare(files, listed, chance):
    """Print the blocks that are not listed and the stale ones; count both."""
    found = collections.defaultdict(list)
    for name, file in sorted(files.items()):
        for function, first, numbers in file.blocks():
            found[name, function, first].append(numbers)
    missing = [(key, numbers) for key, places in found.items()
               for numbers in places[listed.get(key, 0):]]
    stale = [(key, count - len(found.get(key, ())))
             for key, count in listed.items()
             if count > len(found.get(key, ())) and not
             (key in chance and key[0] in files and files[key[0]].has(key[2]))]
    for (name, function, first), numbers in missing:
        print(f"not run and not in {LIST}, {len(numbers)} lines from"
              f" {numbers[0]} on:\n  {name} {function}: {first}")
    for (name, function, first), count in stale:
        print(f"in {LIST} but run by a test, or gone ({count}):\n"
              f"  {name} {function}: {first}")
    return len(missing) + len(stale)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    tree = pathlib.Path(sys.argv[1]).resolve()
    files = measure(tree)
    for name, file in sorted(files.items()):
        print(f"{percent(file.covered(), len(file.lines)):6.1f} %"
              f" {len(file.lines) - file.covered():5d} of"
              f" {len(file.lines):5d} lines not run  {name}")
    rows = table(files)
    print("\n" + markdown(rows))
    if len(sys.argv) == 3:
        pathlib.Path(sys.argv[2]).write_text(markdown(rows), "utf-8")
    faults = compare(files, *read_list(ROOT / LIST))
    low = [name for name, total, covered in rows[-len(PARTS):]
           if percent(covered, total) < WANTED]
    for name in low:
        print(f"{name}: below {WANTED:.0f} %")
    sys.exit(1 if faults or low else 0)


if __name__ == "__main__":
    main()
