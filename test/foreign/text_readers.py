#!/usr/bin/env python3
"""Have programs of other makes read a package, and compare what they saw.

    text_readers.py NAME PACKAGE.zip READER...

Unpackers must give both members byte for byte; some read the file as a
stream and never see its directory.  Readers of CSV must see every cell as the
reference parser does; those that can tell NULL from the empty text must tell
it here.  The reference itself is compared with the table by
reference_reader.py.

Prints one line of a Markdown table for each reader, under the name that the
package has there; exit status 1 if any differs.  PostgreSQL is found through
the usual PG* variables.
"""
import csv
import io
import json
import subprocess
import sys
import tempfile
import zipfile

from cell_rules import parse, values
from zip_layout import MEMBERS

TEXT_CSV = r"""
use Text::CSV_XS; use JSON::PP;
my $csv = Text::CSV_XS->new({ binary => 1, strict => 1, auto_diag => 2,
                              blank_is_undef => 1 });
open my $file, '<:raw', $ARGV[0] or die $!;
print JSON::PP->new->utf8->encode($csv->getline_all($file));
"""
STREAM_UNZIP = r"""
use IO::Uncompress::Unzip qw($UnzipError);
binmode STDIN; binmode STDOUT;
my $stream = IO::Uncompress::Unzip->new(\*STDIN) or die $UnzipError;
my ($text, $name, $status) = ('');
do {
    $name = $stream->getHeaderInfo->{Name};
    $text .= $_ while read($stream, $_, 65536) > 0;
    print $text if $name eq $ARGV[0];
    $text = '';
    $status = $stream->nextStream;
} while $status > 0;
die $UnzipError if $status < 0;
"""


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (command[0], done.stderr.decode(
            "utf-8", "replace")[:2000] or done.stdout[:2000]))
    return done.stdout


def version(*command):
    """The first line that a program says about its version."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    words = done.stdout.decode("utf-8", "replace").split()
    return next(word.strip("v,'") for word in words
                if any(char.isdigit() for char in word) and "." in word)


# Unpackers: (version, function from path and member to bytes) ----------------

UNPACKERS = {
    "unzip": (lambda: version("unzip", "-v"),
              lambda path, name: run("unzip", "-p", path, name)),
    "7-Zip": (lambda: version("7z"),
              lambda path, name: run("7z", "x", "-so", path, name)),
    "bsdtar, as a stream": (
        lambda: version("bsdtar", "--version"),
        lambda path, name: run("bsdtar", "-xOf", "-", name,
                               stdin=open(path, "rb").read())),
    "Perl, as a stream": (
        lambda: version("perl", "-e", "print \"$^V\\n\""),
        lambda path, name: run("perl", "-e", STREAM_UNZIP, name,
                               stdin=open(path, "rb").read())),
}


def unpack(reader, path, members):
    """How many bytes were compared, and how many members differ."""
    read = UNPACKERS[reader][1]
    differing = [name for name in MEMBERS if read(path, name) != members[name]]
    return ("%d bytes" % sum(map(len, members.values())), differing)


# Readers of CSV: functions from a file's path to the list of records ---------

def read_python(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def read_perl(path):
    return json.loads(run("perl", "-e", TEXT_CSV, path))


def read_sqlite(path):
    header = read_python(path)[0]
    columns = ", ".join('"%s"' % name for name in header)
    out = run("sqlite3", ":memory:", "-cmd", ".mode csv",
              "-cmd", ".import '%s' t" % path, "-cmd", ".mode list",
              "SELECT json_group_array(json_array(%s)) FROM t" % columns)
    return [header] + json.loads(out)


def read_postgres(path):
    """Through a table of its own: COPY in, and the rows in order again.

    In hexadecimal, because psql would lose a character of the last plane.
    """
    header = read_python(path)[0]
    names = ", ".join(header)
    out = run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1",
              "-c", "CREATE TEMPORARY TABLE t (n bigint GENERATED ALWAYS AS"
                    " IDENTITY, %s)" % ", ".join(name + " text"
                                                 for name in header),
              "-c", "\\copy t (%s) FROM '%s' (FORMAT csv, HEADER match,"
                    " ENCODING 'UTF8')" % (names, path),
              "-c", "SELECT encode(convert_to(coalesce(json_agg("
                    "json_build_array(%s) ORDER BY n), '[]')::text, 'UTF8'),"
                    " 'hex') FROM t" % names)
    return [header] + json.loads(bytes.fromhex(out.decode("ascii").strip()))


def read_miller(path):
    rows = json.loads(run("mlr", "-S", "--icsv", "--ojson", "cat", path))
    header = read_python(path)[0]
    return [header] + [[row[name] for name in header] for row in rows]


# The third says whether the reader tells NULL from the empty text.
CSV_READERS = {
    "Python csv": (lambda: "%d.%d.%d" % sys.version_info[:3], read_python,
                   False),
    "Perl Text::CSV_XS": (
        lambda: version("perl", "-MText::CSV_XS", "-e",
                        "print \"$Text::CSV_XS::VERSION\\n\""),
        read_perl, True),
    "SQLite .import": (lambda: version("sqlite3", "-version"), read_sqlite,
                       False),
    "PostgreSQL COPY": (
        lambda: version("psql", "-XAt", "-c", "SHOW server_version"),
        read_postgres, True),
    "Miller": (lambda: version("mlr", "--version"), read_miller, False),
}


def read_cells(reader, records_path, wanted):
    """How many cells were compared, and where they differ."""
    _, read, tells_null = CSV_READERS[reader]
    seen = read(records_path)
    if not tells_null:
        wanted = [[cell or "" for cell in record] for record in wanted]
    differing = [] if len(seen) == len(wanted) else ["%d records" % len(seen)]
    cells = 0
    for number, (got, want) in enumerate(zip(seen, wanted)):
        cells += len(want)
        if got != want:
            differing.append("record %d" % number)
    return "%d cells" % cells, differing


def main():
    name, path, readers = sys.argv[1], sys.argv[2], sys.argv[3:]
    with zipfile.ZipFile(path) as package:
        members = {member: package.read(member) for member in MEMBERS}
    wanted = values(parse(members["records.csv"].decode("utf-8")))
    csv.field_size_limit(2 ** 30)
    bad = 0
    with tempfile.NamedTemporaryFile(suffix=".csv") as records:
        records.write(members["records.csv"])
        records.flush()
        for reader in readers or [*UNPACKERS, *CSV_READERS]:
            if reader in UNPACKERS:
                found = UNPACKERS[reader][0]()
                compared, differing = unpack(reader, path, members)
            else:
                found = CSV_READERS[reader][0]()
                compared, differing = read_cells(reader, records.name, wanted)
            print("| %s | %s | %s | %d | %s | | %d |"
                  % (reader, found, name, len(wanted) - 1, compared,
                     len(differing)))
            for where in differing[:20]:
                print("FAULT %s: %s" % (reader, where), file=sys.stderr)
            bad += bool(differing)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
