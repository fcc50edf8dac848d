#!/usr/bin/env python3
"""Look for the secrets that the tests plant, in all that a test run wrote.

Tests write made-up secrets into the log, into requests and into errors.  No
one of them may turn up in a server log, in what programs printed, in a
temporary file or in a package, whichever test it was.

What counts as planted is read from the tests themselves: the needles of
test/data/hostile_rows.sql, those of 080_secrets.pl, and whatever stands
behind a "password=" or the like in any other test.  Where the rows of others
are at hand (EVIDENCE_SHARED), their needles count as well.

The promise is about what the extension and its processes write.  A server
that logs statements logs what its users typed; those entries of its log are
passed over, and so are lines that a test's own input repeats.

  find_secrets.py FOLDER          search a folder in which tests have run
  find_secrets.py --self-test     plant secrets in a folder, in every kind of
                                  place, and see each one found
"""

import os
import pathlib
import re
import sys
import tempfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

# One row of hostile_rows.sql ends with its needles and perhaps with what has
# to stay.
HOSTILE = re.compile(r"(?<!'\{\}', )'\{([^{}']+)\}'(?:,\s*'\{[^']*\}')?\)")
MARKED = re.compile(r"Nk4Xw8Tq\w+|203\.0\.113\.77")
TYPED = re.compile(r"(?:password|passwd|token|secret|api_key)\s?[=:]\s?"
                   r"([A-Za-z0-9]*[0-9][A-Za-z0-9]*)(?![\w$])")
OF_OTHERS = re.compile(r"\bneedle=(\S+)")

# Shorter ones could come about by chance.
SHORTEST = 7

# An entry of a server log: its first line, and lines that begin with a tab.
ENTRY = re.compile(rb"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
LINE = re.compile(rb"^[^\n]*?\b([A-Z]{3,}\d?):  ")
# What the server repeats of a statement that a user has sent.
TYPED_BY_USER = re.compile(
    rb"STATEMENT:  |LOG:  (?:duration: [0-9.]+ ms  )?"
    rb"(?:statement|(?:parse|bind|execute) \S+): "
    rb"|DETAIL:  (?:parameters|Parameters|prepare): ")


def texts():
    for pattern in ("sql/*.sql", "test/pgtap/*.sql", "test/t/*.pl",
                    "test/t/lib/*", "test/data/*", "test/isolation/specs/*",
                    "test/lib/*.pm", "demo/*"):
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                yield path.name, path.read_text("utf-8", "replace")


def needles():
    """All planted secrets, as bytes."""
    found = set()
    for name, text in texts():
        if name == "hostile_rows.sql":
            for group in HOSTILE.findall(text):
                found |= {part.strip('"') for part in group.split(",")}
        else:
            found |= set(MARKED.findall(text)) | set(TYPED.findall(text))
    rows = pathlib.Path(os.environ.get("EVIDENCE_SHARED", "/nonexistent"),
                        "data/rows-hostile.sql")
    if rows.exists():
        found |= set(OF_OTHERS.findall(rows.read_text("utf-8")))
    return sorted(needle.encode() for needle in found
                  if len(needle) >= SHORTEST)


def readable_part(archive, member):
    """What can be read of a member; tests damage and encrypt some."""
    parts = []
    try:
        with archive.open(member) as file:
            while part := file.read(65536):
                parts.append(part)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError,
            RuntimeError):
        pass
    return b"".join(parts)


class Search:
    """What was looked at, and what was found where."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.needles = needles()
        self.pattern = re.compile(b"|".join(map(re.escape, self.needles)))
        self.inputs = input_lines()
        self.found = []
        self.files = self.size = self.server_logs = self.typed = 0

    def files_to_search(self):
        """All that a run leaves but its inputs, its programs, and the
        tables, which hold what was planted in them."""
        for folder, subfolders, names in os.walk(self.folder):
            relative = pathlib.Path(folder).relative_to(self.folder).parts
            if relative[:1] in (("tree",),):
                subfolders[:] = [name for name in subfolders
                                 if len(relative) > 1 or name in
                                 ("results", "output_iso", "tmp_check")]
                if len(relative) == 1:
                    names = [name for name in names
                             if name.startswith(("regression", "core"))]
            elif not relative:
                subfolders[:] = [name for name in subfolders
                                 if name not in ("pg", "shared")]
            if "PG_VERSION" in names:       # a data directory
                for path in pathlib.Path(folder, "base",
                                         "pgsql_tmp").glob("**/*"):
                    if path.is_file():
                        yield path
                subfolders[:] = []
                names = [name for name in names
                         if name.endswith(".log") or name.startswith("core")]
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                # A failed step shows logs as they are.
                if path.is_file() and not path.is_symlink() and \
                        path.suffix != ".failed":
                    yield path

    def run(self):
        for path in self.files_to_search():
            data = path.read_bytes()
            self.files += 1
            self.size += len(data)
            if re.fullmatch(r"core(\.\d+)?", path.name):
                self.report(path, b"a process has crashed")
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    for member in archive.infolist():
                        self.look(path, readable_part(archive, member))
            self.look(path, self.promised(path, data))

    def promised(self, path, data):
        """The part of a file for which the promise holds."""
        if any(part.startswith("tmp_test_") for part in path.parts):
            return b""      # a test's own folder: its inputs, and packages
        if path.suffix == ".log" and ENTRY.match(data[:19]):
            self.server_logs += 1
            return b"".join(self.entries(data))
        if path.parent.name in ("results", "output_iso") or \
                path.name.startswith("regression"):
            return b"\n".join(line for line in data.split(b"\n")
                              if line.lstrip(b"+- ") not in self.inputs)
        return data

    def entries(self, data):
        for entry in ENTRY.split(data):
            line = LINE.match(entry)
            start = line.start(1) if line else 0
            if line and TYPED_BY_USER.match(entry, start):
                self.typed += len(self.pattern.findall(entry))
            else:
                yield entry

    def look(self, path, data):
        for match in self.pattern.finditer(data):
            begin = data.rfind(b"\n", 0, match.start()) + 1
            line = data[max(begin, match.start() - 80):match.end() + 20]
            self.report(path, b"%s: ...%s" % (match.group(), line))

    def report(self, path, what):
        text = what.decode("utf-8", "replace").replace("\n", " ")
        self.found.append(f"{path.relative_to(self.folder)}: {text}")


def input_lines():
    lines = set()
    for pattern in ("sql/*.sql", "test/isolation/specs/*"):
        for path in ROOT.glob(pattern):
            lines |= {line.lstrip(b"+- ") for line in
                      path.read_bytes().split(b"\n")}
    return lines


STAMP = b"2026-01-02 03:04:05.678 UTC [7] x "

# Each planted file: its place, what it says around the needle, and whether
# the needle must be found.
PLANTED = (
    ("servers/a/server.log", STAMP + b"LOG:  export is ready: %s\n", True),
    ("servers/a/server.log", STAMP + b"ERROR:  bad\n" + STAMP
     + b"CONTEXT:  while %s\n", True),
    ("servers/a/server.log", STAMP + b"DEBUG:  a\n\tb %s\n", True),
    ("servers/a/server.log", STAMP + b"WARNING:  x\n" + STAMP
     + b"STATEMENT:  SELECT 1\n" + STAMP + b"HINT:  %s\n", True),
    ("servers/a/server.log", STAMP + b"LOG:  statement: SELECT '%s'\n",
     False),
    ("servers/a/server.log", STAMP + b"STATEMENT:  SELECT\n\t'%s'\n", False),
    ("servers/a/server.log", STAMP + b"LOG:  execute <unnamed>: '%s'\n",
     False),
    ("tree/tmp_check/log/080_x.log", STAMP + b"FATAL:  %s\n", True),
    ("tree/tmp_check/log/regress_log_080", b"not ok 1\n# got %s\n", True),
    ("tree/tmp_check/t_x_data/pgdata/base/pgsql_tmp/pgsql_tmp7.0", b"\0%s\0",
     True),
    ("tree/tmp_check/t_x_data/pgdata/base/5/16384", b"\0%s\0", False),
    ("tree/tmp_check/tmp_test_x/rows.json", b"%s\n", False),
    ("tree/tmp_check/tmp_test_x/left.zip", b"%s\n", True),
    ("tree/results/10.out", b"a row | %s\n", True),
    ("tree/output_iso/results/x.out", b"%s\n", True),
    ("tree/regression.diffs", b"+ %s\n", True),
    ("tree/test/data/rows.sql", b"%s\n", False),
    ("tmp/left/first.txt", b"%s", True),
    ("tmp/core", b"%s", True),
    ("step-1.log", b"psql: %s\n", True),
    ("step-2.log.failed", b"psql: %s\n", False),
    ("pg/lib/x.so", b"%s", False),
    ("shared/data/rows.sql", b"%s", False),
)


def forms(place):
    """Whether to plant it as it is, inside a package, or both."""
    if place.endswith(".zip"):
        return (True,)
    return (False, True) if place.startswith("tmp/left") else (False,)


def self_test():
    wrong = []
    known = needles()
    if len(known) < 60:
        wrong.append(f"only {len(known)} needles are known")
    for place, text, bad in PLANTED:
        for packed in forms(place):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, place)
                path.parent.mkdir(parents=True, exist_ok=True)
                if "/pgdata/" in place:
                    (pathlib.Path(folder, place.split("/base")[0])
                     / "PG_VERSION").write_text("15\n")
                for needle in (known[0], known[-1]):
                    if packed:
                        with zipfile.ZipFile(path, "w",
                                             zipfile.ZIP_DEFLATED) as archive:
                            archive.writestr("records.csv",
                                             text % needle * 100)
                    else:
                        path.write_bytes(text % needle)
                    search = Search(folder)
                    search.run()
                    if bool(search.found) != bad:
                        wrong.append(f"wrong verdict on {place}: {text}")
    for fault in wrong:
        print(f"self-test: {fault}")
    if not wrong:
        print(f"self-test: {len(PLANTED)} planted files judged rightly")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    search = Search(sys.argv[1])
    search.run()
    for line in search.found[:50]:
        print(line)
    print(f"{len(search.needles)} planted secrets were looked for in "
          f"{search.files} files with {search.size // 1000000} MB, "
          f"{search.server_logs} server logs among them: "
          f"{len(search.found)} places")
    print(f"users' own statements, passed over, have {search.typed}")
    # Without one server log, nothing was searched that matters.
    return 1 if search.found or search.server_logs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
