#!/usr/bin/env python3
"""Turn packages, good and forged, into inputs of fuzz_verify.

  package_seeds.py FOLDER OUT   read each FOLDER/*.zip, write into OUT

Each becomes two inputs: the file as it is, and its two members, which the
target puts into a ZIP of its own.
"""

import pathlib
import sys
import zipfile
import zlib

KIND_ZIP = b"\0"
KIND_MEMBERS = b"\1"
SEPARATOR = b"\xfe"
LONGEST = 60000


def members(path):
    """Return manifest and records, or None when Python cannot read them."""
    try:
        with zipfile.ZipFile(path) as archive:
            return (archive.read("manifest.json"),
                    archive.read("records.csv"))
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError,
            RuntimeError, EOFError, OSError, ValueError):
        return None


def main():
    folder, out = map(pathlib.Path, sys.argv[1:3])
    for path in sorted(folder.glob("*.zip")):
        content = path.read_bytes()
        if len(content) <= LONGEST:
            (out / f"zip-{path.stem}").write_bytes(KIND_ZIP + content)
        parts = members(path)
        if parts and sum(map(len, parts)) <= LONGEST:
            (out / f"members-{path.stem}").write_bytes(
                KIND_MEMBERS + parts[0] + SEPARATOR + parts[1])


if __name__ == "__main__":
    main()
