#!/usr/bin/env python3
"""Check that the documents say what the code does.

The version of the control file stands in META.json and CHANGELOG.md too, and
README.md names every setting, every SQLSTATE that a user may see, and every
exit code of the program, and has one place for each measured result.

  check_docs.py                         check the tree
  check_docs.py --built PROGRAM MODULE  check the version inside two built
                                        files: the program and the module
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Raised where something cannot happen, or by the server itself: not part of
# what the project promises.
UNDOCUMENTED = {"XX000", "53200"}

DEFINED_STATE = re.compile(
    r"#define\s+(\w*ERRCODE_\w+)\s+MAKE_SQLSTATE\("
    + r"\s*,\s*".join(["'(.)'"] * 5) + r"\)")
USED_STATE = re.compile(r"\berrcode\((\w+)\)")
SQL_STATE = re.compile(r"ERRCODE = '(\w+)'", re.IGNORECASE)


def read(name):
    """Return the text of a file of the project, empty when it is missing."""
    path = ROOT / name
    return path.read_text("utf-8") if path.exists() else ""


def control_version():
    return re.search(r"^default_version\s*=\s*'([^']+)'",
                     read("extension/pg_evidence.control"), re.MULTILINE)[1]


def version_faults():
    """META.json wants three numbers, the control file has two."""
    version = control_version()
    meta = json.loads(read("META.json"))
    provided = meta["provides"]["pg_evidence"]
    for what, found in (("version", meta["version"]),
                        ("provides.pg_evidence.version",
                         provided["version"])):
        if not (found + ".").startswith(version + "."):
            yield (f"META.json: {what} is {found}, "
                   f"the control file says {version}")
    if provided["file"] != f"extension/pg_evidence--{version}.sql":
        yield f"META.json: provides file {provided['file']}"
    if not re.search(rf"^## {re.escape(version)}\b", read("CHANGELOG.md"),
                     re.MULTILINE):
        yield f"CHANGELOG.md: has no section for version {version}"


def settings():
    text = read("extension/base/settings.c")
    return re.findall(r'DefineCustom\w+Variable\(\s*"([^"]+)"', text)


def server_sources():
    yield ROOT / "extension/pg_evidence.c"
    for folder in ("base", "package", "ledger", "process", "api"):
        yield from sorted((ROOT / "extension" / folder).glob("*.[ch]"))
    yield from sorted((ROOT / "extension/schema").glob("*.sql"))


def sqlstates():
    """Map each SQLSTATE that our code raises to one place that does."""
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    folder = subprocess.run([pg_config, "--includedir-server"], check=True,
                            capture_output=True, text=True).stdout.strip()
    names = {}
    sources = [pathlib.Path(folder) / "utils/errcodes.h", *server_sources()]
    for path in sources:
        for match in DEFINED_STATE.finditer(read(path)):
            names[match[1]] = "".join(match.groups()[1:])
    raised = {}
    for path in server_sources():
        text = read(path)
        where = path.relative_to(ROOT)
        for name in USED_STATE.findall(text):
            if name in names:
                raised.setdefault(names[name], where)
        for name in SQL_STATE.findall(text):
            code = names.get("ERRCODE_" + name.upper(), name)
            raised.setdefault(code, where)
    # Our own class is documented as a whole, raised here or not.
    for code in names.values():
        if code.startswith("PE"):
            raised.setdefault(code, "extension/base/errors.h")
    return {code: where for code, where in raised.items()
            if code not in UNDOCUMENTED}


def exit_codes():
    """Return the numbers of the program's statuses."""
    text = read("uploader/failure.h")
    return {int(number): name for name, number in
            re.findall(r"^\s*(EV_\w+) = (\d+)", text, re.MULTILINE)}


def readme_faults():
    readme = read("README.md")
    for name in settings():
        if f"`{name}`" not in readme:
            yield f"README.md: setting {name} is missing"
    for code, where in sorted(sqlstates().items()):
        if f"`{code}`" not in readme:
            yield f"README.md: SQLSTATE {code} ({where}) is missing"
    for number, name in sorted(exit_codes().items()):
        if not re.search(rf"^\| *`?{number}`? *\|", readme, re.MULTILINE):
            yield f"README.md: exit code {number} ({name}) has no table row"


def result_faults():
    """Each measured result has one place in README.md."""
    readme = read("README.md")
    begun = re.findall(r"^<!-- result (\w+) -->$", readme, re.MULTILINE)
    ended = re.findall(r"^<!-- end of (\w+) -->$", readme, re.MULTILINE)
    if begun != ended or len(set(begun)) != len(begun):
        yield (f"README.md: results begin as {' '.join(begun)}"
               f" and end as {' '.join(ended)}")


def built_faults(program, module):
    version = control_version()
    printed = subprocess.run([program, "--version"], check=True,
                             capture_output=True, text=True).stdout
    if version not in printed.split():
        yield (f"{program} --version prints {printed.strip()!r}, "
               f"the control file says {version}")
    if b"\0" + version.encode() + b"\0" not in \
            pathlib.Path(module).read_bytes():
        yield f"{module} does not hold version {version}"


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--built"]:
        faults = list(built_faults(*arguments[1:]))
    else:
        faults = [*version_faults(), *readme_faults(), *result_faults()]
    print("\n".join(faults) if faults else "documents and code agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
