#!/usr/bin/env python3
"""Check the look of the source files, or repair it.

C files must be what pg_bsd_indent makes of them with PostgreSQL's options
and test/tools/typedefs.list, have at most 79 columns (message texts stay on
one line, so a line with a string may be longer) and no // comments.  No text
file may have blanks at the end of a line.

  check_format.py [FILE...]          name every fault
  check_format.py --fix [FILE...]    format the C files in place
"""

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPEDEFS = ROOT / "test/tools/typedefs.list"
FOLDERS = (".ci", "demo", "extension", "uploader", "sql", "test")
COLUMNS = 79
TAB = 4

INDENT = (
    "pg_bsd_indent -bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 "
    "-nfc1 -i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4"
).split()

# The server's type "text" is a plain word in code that knows no server.
SERVER_ONLY_TYPES = {"text"}
SERVERLESS = ("extension/package/", "uploader/", "test/")

TEXT_SUFFIXES = {".c", ".h", ".sql", ".spec", ".pl", ".pm", ".py", ".sh",
                 ".md", ".control", ""}

# A string, a character constant, or a comment: what // may stand inside of.
OPAQUE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
                    r"|/\*.*?\*/", re.DOTALL)


def formatted(path):
    """Return the text of a C file as the formatter wants it."""
    types = TYPEDEFS.read_text("utf-8").split()
    if str(path.relative_to(ROOT)).startswith(SERVERLESS):
        types = [name for name in types if name not in SERVER_ONLY_TYPES]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / path.name
        copy.write_bytes(path.read_bytes())
        (pathlib.Path(folder) / "types").write_text("\n".join(types) + "\n")
        run = subprocess.run(
            [*INDENT, "-Utypes", copy.name, "formatted"],
            cwd=folder, capture_output=True, text=True)
        if run.returncode != 0 or run.stderr:
            raise RuntimeError(run.stderr.strip() or "the formatter failed")
        text = (pathlib.Path(folder) / "formatted").read_text("utf-8")
    # The indenter takes a return type on its own line for a declaration.
    return re.sub(r"^([A-Za-z_]\S*)[ \t]+\*$", r"\1 *", text, flags=re.M)


def c_faults(name, text):
    """Yield what the formatter itself does not complain about."""
    for number, line in enumerate(text.split("\n"), 1):
        width = len(line.expandtabs(TAB))
        if width > COLUMNS and '"' not in line:
            yield f"{name}:{number}: {width} columns, more than {COLUMNS}"
    blanked = OPAQUE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for number, line in enumerate(blanked.split("\n"), 1):
        if "//" in line:
            yield f"{name}:{number}: // comment, use /* */"


def text_faults(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"{name}:{number}: blanks at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{name}: no line end at the end of the file"


def files(arguments):
    if arguments:
        return [pathlib.Path(argument).resolve() for argument in arguments]
    found = [path for path in ROOT.iterdir()
             if path.is_file() and path.suffix in TEXT_SUFFIXES]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*")
                  if path.is_file() and path.suffix in TEXT_SUFFIXES]
    # Built programs have no suffix either; they are not text.
    return sorted(path for path in found
                  if path.name != ".git"
                  and "build" not in path.relative_to(ROOT).parts[:-1]
                  and b"\0" not in path.read_bytes())


def check(path):
    name = str(path.relative_to(ROOT))
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return [f"{name}: not UTF-8"]
    faults = list(text_faults(name, text))
    if path.suffix in (".c", ".h"):
        faults += c_faults(name, text)
        try:
            wanted = formatted(path)
        except RuntimeError as error:
            return faults + [f"{name}: {error}"]
        faults += difflib.unified_diff(
            text.split("\n"), wanted.split("\n"),
            name, name + " (formatted)", lineterm="", n=1)
    return faults


def fix(path):
    if path.suffix not in (".c", ".h"):
        return
    wanted = formatted(path)
    if wanted != path.read_text("utf-8"):
        path.write_text(wanted, "utf-8")
        print(f"formatted {path.relative_to(ROOT)}")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--fix"]:
        for path in files(arguments[1:]):
            fix(path)
        return 0
    checked = files(arguments)
    faults = [fault for path in checked for fault in check(path)]
    print("\n".join(faults) if faults
          else f"{len(checked)} files are formatted")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
