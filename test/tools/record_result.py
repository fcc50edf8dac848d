#!/usr/bin/env python3
"""Put a measured table into README.md.

  record_result.py NAME [--readme FILE] [--command TEXT] [--server TEXT]

Reads a Markdown table on standard input and writes it, under one line with
date, version and machine, between the lines <!-- result NAME --> and
<!-- end of NAME -->.  What stood there before is gone.

--command names what was run, if NAME does not say it.  --server names the
server; without it PG_CONFIG is asked, and an empty text leaves it out.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(*command):
    """Return what a command prints, empty if it cannot be run."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True,
                              text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version():
    """Name the version, and the commit if this is a checkout.

    README.md itself does not count as a change: results are written there.
    """
    text = (ROOT / "extension/pg_evidence.control").read_text("utf-8")
    name = "pg_evidence " + re.search(r"default_version *= *'([^']+)'",
                                      text)[1]
    commit = output_of("git", "rev-parse", "--short=7", "HEAD")
    if not commit:
        return name
    changed = output_of("git", "status", "--porcelain",
                        "--untracked-files=no", "--", ".", ":!README.md")
    return f"{name} ({commit}{' with changes' if changed else ''})"


def server():
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    match = re.match(r"PostgreSQL (\S+)", output_of(pg_config, "--version"))
    return f"PostgreSQL {match[1]}" if match else ""


def processor():
    match = re.search(r"^model name\s*: (.*)$",
                      pathlib.Path("/proc/cpuinfo").read_text("utf-8"),
                      re.MULTILINE)
    cores = len(os.sched_getaffinity(0))
    return (f"{cores} core{'' if cores == 1 else 's'} of "
            + (match[1].strip() if match else os.uname().machine))


def system():
    debian = pathlib.Path("/etc/debian_version")
    if debian.exists():
        return "Debian " + debian.read_text("utf-8").strip()
    return os.uname().sysname


def heading(options):
    facts = [version(),
             server() if options.server is None else options.server,
             processor(), system()]
    command = f": `{options.command}`" if options.command else ""
    return (f"Measured {datetime.date.today()} with "
            + ", ".join(fact for fact in facts if fact) + command + ".")


def replaced(text, name, result):
    """Return text with the result in its place, or None without a place."""
    begin, end = f"<!-- result {name} -->\n", f"<!-- end of {name} -->\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        return None
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    return f"{before}{begin}{result}{end}{after}" if found else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--readme", type=pathlib.Path,
                        default=ROOT / "README.md")
    parser.add_argument("--command", default="")
    parser.add_argument("--server")
    options = parser.parse_args()

    table = sys.stdin.read().strip()
    lines = table.splitlines()
    if len(lines) < 3 or not all(line.startswith("|") for line in lines):
        sys.exit("record_result: standard input is not one Markdown table")
    text = replaced(options.readme.read_text("utf-8"), options.name,
                    f"{heading(options)}\n\n{table}\n\n")
    if text is None:
        sys.exit(f"record_result: {options.readme} has no place for"
                 f" {options.name}")
    options.readme.write_text(text, "utf-8")
    print(f"{options.readme.name}: wrote result {options.name}",
          file=sys.stderr)


if __name__ == "__main__":
    main()
