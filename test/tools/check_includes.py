#!/usr/bin/env python3
"""Check who includes whom.

The layout of the project is a set of folders with one rule each: which
other folders its files may know, and which libraries.  This script reads the
#include lines and fails, with file and line, on any other one.  It also keeps
SQL text inside the ledger, where all table access is.

  check_includes.py               check the tree
  check_includes.py --self-test   plant bad files and see each one reported
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The folders under extension/ that each of them may include, itself aside.
ARROWS = {
    "base": {"base", "package/error.h"},
    "package": set(),
    "ledger": {"base", "package/error.h", "package/digest.h"},
    "process": {"base", "ledger", "package"},
    "api": {"base", "ledger", "process", "package"},
    "pg_evidence.c": {"base", "process"},
}

# Pure files: the C library and their own header, so that a unit test can
# link them alone.
PURE = {"extension/ledger/states.c", "extension/ledger/states.h"}

# Libraries that are known in one place only.
LIBRARY_OWNERS = (
    (re.compile(r"zip\.h|zipconf\.h|(isa-l/|isa-l\.h)?.*igzip.*|isa-l.*"
                r"|zlib\.h|libdeflate\.h"),
     re.compile(r"extension/package/(archive|deflate)\w*\.[ch]"),
     "only the archive files use libzip and ISA-L"),
    (re.compile(r"openssl/.*"),
     re.compile(r"extension/package/digest\w*\.[ch]"),
     "only digest.c uses OpenSSL"),
    (re.compile(r"pcre2.*\.h"),
     re.compile(r"extension/package/redact\w*\.[ch]"),
     "only the redact files use PCRE2"),
    (re.compile(r"executor/spi(_priv)?\.h"),
     re.compile(r"extension/ledger/\w+\.[ch]"),
     "only the ledger uses SPI"),
    (re.compile(r"libpq-fe\.h|libpq/.*-fs\.h|postgres_ext\.h"),
     re.compile(r"uploader/ledger\w*\.[ch]"),
     "only the program's ledger client uses libpq"),
    (re.compile(r"curl/.*"),
     re.compile(r"uploader/s3\w*\.[ch]"),
     "only the program's client of object stores uses libcurl"),
    (re.compile(r"expat(_\w+)?\.h"),
     re.compile(r"uploader/s3_xml\.[ch]"),
     "only s3_xml.c uses expat"),
)

SERVER_HEADER = re.compile(
    r"(postgres(_fe)?|c|fmgr|funcapi|miscadmin|pgstat|pg_config\w*|port|"
    r"varatt)\.h|(access|catalog|commands|common|datatype|executor|foreign|"
    r"jit|lib|libpq|mb|nodes|optimizer|parser|partitioning|port|postmaster|"
    r"regex|replication|rewrite|server|statistics|storage|tcop|tsearch|"
    r"utils)/.*")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]',
                     re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
SQL = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|MERGE INTO|"
                 r"LOCK TABLE|TRUNCATE|COPY|DECLARE|FETCH|VALUES)\s")
SQL_OWNERS = re.compile(r"extension/ledger/\w+\.[ch]|uploader/ledger\w*\.[ch]")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


class Tree:
    """The C files below a root, and what is wrong with their includes."""

    def __init__(self, root):
        self.root = root
        self.names = sorted(
            str(path.relative_to(root)) for folder in ("extension", "uploader")
            for path in (root / folder).rglob("*.[ch]"))

    def resolve(self, name, included):
        """Return the project file that an #include line means, or None."""
        for folder in (pathlib.PurePath(name).parent, "extension",
                       "extension/package", "uploader"):
            path = self.root / folder / included
            if path.is_file():
                return str(path.resolve().relative_to(self.root.resolve()))
        return None

    def include_fault(self, name, included, quoted):
        """Return what is wrong with one #include line, or None."""
        for header, owner, rule in LIBRARY_OWNERS:
            if header.fullmatch(included) and not owner.fullmatch(name):
                return rule

        target = self.resolve(name, included) if quoted else None
        if target and not target.endswith(".h"):
            return "only headers are included"
        if included.startswith("../") and not name.startswith("uploader/"):
            return "write the path from extension/ on"
        if name in PURE:
            own_header = name[:-1] + "h"
            if quoted and target != own_header:
                return "this file is pure C and knows its own header only"
            return self.server_fault(included)
        if name.startswith("uploader/"):
            return self.program_fault(target, included)
        return self.extension_fault(name, target, included, quoted)

    @staticmethod
    def server_fault(included):
        if SERVER_HEADER.fullmatch(included):
            return "no header of the server here"
        return None

    def program_fault(self, target, included):
        if target and not target.startswith(("uploader/",
                                             "extension/package/")):
            return "the program knows extension/package only"
        return self.server_fault(included)

    def extension_fault(self, name, target, included, quoted):
        layer = name.split("/")[1]
        if layer == "package":
            if quoted and not (target or "").startswith("extension/package/"):
                return "a package file knows the package folder only"
            return self.server_fault(included)
        if target is None:
            return None
        if not target.startswith("extension/"):
            return "the server never knows the program"
        target_layer, _, rest = target[len("extension/"):].partition("/")
        allowed = ARROWS.get(layer)
        if allowed is None:
            return f"folder {layer} has no rule in check_includes.py"
        if target_layer == layer or target_layer in allowed:
            return None
        if f"{target_layer}/{rest}" in allowed:
            return None
        return f"{layer} must not know {target_layer}/{rest}"

    def sql_faults(self, name, text):
        if SQL_OWNERS.fullmatch(name):
            return
        for match in COMMENT_OR_STRING.finditer(text):
            if match.group(1) and SQL.match(match.group(1)):
                yield (line_of(text, match.start()),
                       "SQL text belongs into the ledger")

    def faults(self):
        for name in self.names:
            text = (self.root / name).read_text("utf-8", "replace")
            found = list(self.sql_faults(name, text))
            for match in INCLUDE.finditer(text):
                included = match.group(2)
                fault = self.include_fault(name, included,
                                           match.group(1) == '"')
                if fault:
                    found.append((line_of(text, match.start()),
                                  f"includes {included}: {fault}"))
            for line, fault in sorted(found):
                yield f"{name}:{line}: {fault}"


# Each planted file: its name, its text, and whether it must be reported.
PLANTED = (
    ("extension/base/settings.h", "", False),
    ("extension/ledger/export.h", '#include "base/settings.h"\n', False),
    ("extension/process/launcher.h", "", False),
    ("extension/api/request.h", "", False),
    ("extension/package/digest.h", "#include <stddef.h>\n", False),
    ("extension/package/csv.h", '#include "digest.h"\n', False),
    ("extension/package/digest.c", "#include <openssl/evp.h>\n", False),
    ("extension/package/archive_read.c", "#include <zip.h>\n", False),
    ("extension/package/redact.c", "#include <pcre2.h>\n", False),
    ("extension/ledger/job.c",
     '#include "executor/spi.h"\n#include "package/digest.h"\n'
     'static const char *q = "SELECT 1 FROM t";\n', False),
    ("extension/ledger/states.h", "#include <stdbool.h>\n", False),
    ("extension/ledger/states.c", '#include "ledger/states.h"\n', False),
    ("extension/process/exporter.c",
     '#include "ledger/export.h"\n#include "package/csv.h"\n', False),
    ("extension/api/fetch.c",
     '#include "postgres.h"\n#include "process/launcher.h"\n'
     '/* "SELECT " in a comment */\n', False),
    ("extension/pg_evidence.c", '#include "process/launcher.h"\n', False),
    ("uploader/main.c", '#include "package/csv.h"\n', False),
    ("uploader/ledger.c", "#include <libpq-fe.h>\n"
     'static const char *q = "SELECT evidence.f()";\n', False),
    ("uploader/s3_request.c", "#include <curl/curl.h>\n", False),
    ("uploader/s3_xml.c", "#include <expat.h>\n", False),

    ("extension/base/bad_up.c", '#include "ledger/export.h"\n', True),
    ("extension/package/bad_server.c", '#include "postgres.h"\n', True),
    ("extension/package/bad_angled.c", "#include <utils/elog.h>\n", True),
    ("extension/package/bad_base.c", '#include "base/settings.h"\n', True),
    ("extension/package/bad_ssl.c", "#include <openssl/sha.h>\n", True),
    ("extension/package/bad_zip.c", "#include <zip.h>\n", True),
    ("extension/package/bad_igzip.c", "#include <isa-l/igzip_lib.h>\n", True),
    ("extension/package/bad_pcre.c", "# include <pcre2.h>\n", True),
    ("extension/ledger/bad_csv.c", '#include "package/csv.h"\n', True),
    ("extension/ledger/bad_process.c", '#include "process/launcher.h"\n',
     True),
    ("extension/ledger/bad_dots.c", '#include "../api/request.h"\n', True),
    ("extension/process/bad_api.c", '#include "api/request.h"\n', True),
    ("extension/process/bad_spi.c", '#include "executor/spi.h"\n', True),
    ("extension/process/bad_sql.c",
     'static const char *q = "UPDATE t SET a = 1";\n', True),
    ("extension/api/bad_source.c", '#include "ledger/job.c"\n', True),
    ("extension/api/bad_program.c", '#include "../../uploader/main.h"\n',
     True),
    ("extension/other/bad_folder.c", '#include "base/settings.h"\n', True),
    ("uploader/bad_server.c", '#include "postgres.h"\n', True),
    ("uploader/bad_ledger.c", '#include "ledger/export.h"\n', True),
    ("uploader/bad_libpq.c", "#include <libpq-fe.h>\n", True),
    ("uploader/bad_curl.c", "#include <curl/curl.h>\n", True),
    ("uploader/s3_bad_xml.c", "#include <expat.h>\n", True),
)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        reported = {line.split(":")[0] for line in Tree(root).faults()}
    wrong = [name for name, _, bad in PLANTED if bad != (name in reported)]
    for name in wrong:
        print(f"self-test: wrong verdict on planted {name}")
    if not wrong:
        print(f"self-test: {len(PLANTED)} planted files judged rightly")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tree = Tree(ROOT)
    faults = list(tree.faults())
    print("\n".join(faults) if faults
          else f"{len(tree.names)} files keep to the arrows")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
