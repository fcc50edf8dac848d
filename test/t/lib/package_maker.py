#!/usr/bin/env python3
"""Make evidence packages, good and forged, for the tests of "verify".

Everything is written here from the documented format, without the project's
own C code, so that a fault which writer and verifier share shows up.

  package_maker.py --list         one line per case: name, then the checks
                                  that must fail (none: the package is good)
  package_maker.py FOLDER         write every case as FOLDER/NAME.zip
"""

import copy
import hashlib
import json
import pathlib
import struct
import sys
import zlib

COLUMNS = ["id", "created_at", "tenant_id", "actor_id", "actor_role",
           "action", "target_type", "target_id", "outcome", "error_code",
           "request_id", "source_fingerprint", "summary"]
EXPORT_ID = "0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f"
START = "2026-11-01T00:00:00.000000Z"
END = "2026-12-01T00:00:00.000000Z"


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=False).encode()


def cell(value):
    """One CSV cell; None is NULL."""
    if value is None:
        return ""
    if value == "" or any(c in value for c in ',"\r\n') or \
            value != value.strip(" "):
        return '"' + value.replace('"', '""') + '"'
    return value


def record(cells):
    return ",".join(cell(c) for c in cells) + "\r\n"


def row(number, created_at=None, **changes):
    values = {
        "id": str(number),
        "created_at": created_at or f"2026-11-{number % 28 + 1:02d}"
                                    f"T08:30:{number % 60:02d}.000001Z",
        "tenant_id": "default", "actor_id": f"user-{number}",
        "actor_role": None, "action": "invoice.approve",
        "target_type": "invoice", "target_id": f"2026-{number}",
        "outcome": "success", "error_code": None, "request_id": "",
        "source_fingerprint": "k1:" + "ab" * 32,
        "summary": f"approved, with \"remark\" {number}"}
    values.update(changes)
    return values


def rows_of_default():
    return [
        row(1), row(2, summary="'=1+1"), row(3, summary="''-42"),
        row(4, summary="token [redacted:bearer] was used"),
        row(5, summary="'[redacted:key] after a formula"),
        row(6, summary="'\u200b\uff1d1"), row(7, summary="'tis fine"),
        row(8, summary="a=b - c @ d + e"), row(9, summary=None),
        row(10, summary="\u05e9\u05dc\u05d5\u05dd \u65e5\u672c \U0001f600"),
        row(11, summary="a literal [redacted:x] of the text itself")]


class Package:
    """A good package; a case changes some of it before it is written."""

    def __init__(self, rows=None, columns=COLUMNS, source="audit_log"):
        self.columns = list(columns)
        self.rows = rows_of_default() if rows is None else rows
        self.source = source
        self.records = None         # bytes; made from rows unless set
        self.change_manifest = []   # functions on the dict
        self.manifest_bytes = None  # made from the dict unless set
        self.change_bytes = []      # functions on the manifest's bytes
        self.request = {}           # overrides of digested members
        self.cells = {"cleaned": 1, "formula_prefixed": 4, "redacted": 2}
        self.members = None         # (name, bytes) pairs
        self.zip_options = {}
        self.change_file = []       # functions on the ZIP's bytes

    def records_bytes(self):
        if self.records is not None:
            return self.records
        text = record(self.columns)
        for values in self.rows:
            text += record(values[name] for name in self.columns)
        return text.encode()

    def edge(self, index):
        if not self.rows:
            return None
        return {"created_at": self.rows[index]["created_at"],
                "id": int(self.rows[index]["id"])}

    def manifest(self):
        records = self.records_bytes()
        request = {"columns": self.columns, "end": END,
                   "filters": {"action": ["a.b", "invoice.*"],
                               "tenant_id": ["default"]},
                   "purpose": "quarterly \"audit\", \u00e4\u00f6\u00fc",
                   "source": self.source, "start": START}
        request.update(self.request)
        value = {
            "cells": dict(self.cells), "columns": request["columns"],
            "export_id": EXPORT_ID,
            "files": [{
                "bytes": len(records),
                "dialect": {
                    "bom": False, "delimiter": ",", "empty": '""',
                    "encoding": "UTF-8", "guard": "'", "header": True,
                    "line_end": "\r\n", "null": "", "quote": '"',
                    "time": "YYYY-MM-DDTHH:MM:SS.ffffffZ"},
                "name": "records.csv", "rows": len(self.rows),
                "sha256": hashlib.sha256(records).hexdigest()}],
            "filters": request["filters"], "first": self.edge(0),
            "format": "pg_evidence/1", "generation": 1,
            "last": self.edge(-1), "limits": ["It proves little."],
            "policy": {"version": 1},
            "producer": {"codec": "none", "name": "pg_evidence",
                         "version": "1.0"},
            "purpose": request["purpose"],
            "range": {"end": request["end"], "start": request["start"]},
            "record_count": len(self.rows),
            "redaction": {"enabled": True, "ruleset": "pg_evidence",
                          "sha256": "0" * 64, "version": 1},
            "request_digest": hashlib.sha256(canonical(request)).hexdigest(),
            "requested_at": "2026-11-30T10:00:00.000000Z",
            "requested_by": "auditor",
            "snapshot": {"at": "2026-11-30T10:00:00.000000Z",
                         "consistency": "as-of-request",
                         "pg_snapshot": "10:20:", "system_identifier": "7"},
            "source": request["source"]}
        value = copy.deepcopy(value)
        for change in self.change_manifest:
            change(value)
        return value

    def file(self):
        manifest = self.manifest_bytes
        if manifest is None:
            manifest = canonical(self.manifest())
        for change in self.change_bytes:
            manifest = change(manifest)
        members = self.members
        if members is None:
            members = [("records.csv", self.records_bytes()),
                       ("manifest.json", manifest)]
        elif callable(members):
            members = members(self.records_bytes(), manifest)
        data = make_zip(members, **self.zip_options)
        for change in self.change_file:
            data = change(data)
        return data


def make_zip(members, local_name=None, crc_change=0, flags=0, method=8,
             size_change=0, local_size_change=None, comment=b"",
             packed_tail=b"", extra=b"", gap=b""):
    """Write a ZIP; the options forge the first member or the end."""
    out = b""
    central = b""
    for index, (name, data) in enumerate(members):
        first = index == 0
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = packer.compress(data) + packer.flush()
        this_method = method if first else 8
        if this_method == 0:
            packed = data
        if first:
            packed += packed_tail
        crc = (zlib.crc32(data) + (crc_change if first else 0)) & 0xffffffff
        size = len(data) + (size_change if first else 0)
        local_size = size
        if first and local_size_change is not None:
            local_size = len(data) + local_size_change
        this_flags = flags if first else 0
        encoded = name.encode()
        shown = local_name.encode() if first and local_name else encoded
        this_extra = extra if first else b""
        offset = len(out)
        out += struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, this_flags,
                           this_method, 0, 0x21, crc, len(packed),
                           local_size, len(shown), len(this_extra))
        out += shown + this_extra + packed
        if first:
            out += gap
        central += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 3 << 8 | 20,
                               20, this_flags, this_method, 0, 0x21, crc,
                               len(packed), size, len(encoded),
                               len(this_extra), 0, 0, 0, 0o100644 << 16,
                               offset)
        central += encoded + this_extra
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, len(members),
                      len(members), len(central), len(out), len(comment))
    return out + central + end + comment


CASES = {}


def case(*checks):
    """Register a case under its function's name; it must fail these."""
    def register(function):
        CASES[function.__name__] = (function, checks)
        return function
    return register


def put(path, value):
    """A change of the manifest at a path of keys."""
    def change(manifest):
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value
    return change


def simple(name, checks, path, value):
    def function(p):
        p.change_manifest.append(put(path, value))
    function.__name__ = name
    case(*checks)(function)


def changed_row(name, checks, **changes):
    """One row with other cells; everything else of the package fits."""
    def function(p):
        p.rows = [row(1), row(2, **changes), row(3)]
        p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}
    function.__name__ = name
    case(*checks)(function)


def raw_records(name, checks, change):
    """Other bytes of records.csv with their right size and hash."""
    def function(p):
        p.rows = [row(1), row(2), row(3)]
        p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}
        p.records = change(p.records_bytes())
    function.__name__ = name
    case(*checks)(function)


# Good packages.

@case()
def good(p):
    pass


@case()
def good_empty(p):
    p.rows = []
    p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}


@case()
def good_few_columns(p):
    p.columns = ["action", "summary"]


@case()
def good_large(p):
    p.rows = [row(n, f"2026-11-02T00:00:00.{n:06d}Z",
                  summary="\u65e5\u672c\u8a9e \U0001f600 " * (n % 7) + "x",
                  actor_id="'" * (n % 3) + "n\u00e4me,\"" + str(n))
              for n in range(1, 9001)]
    p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}


@case()
def good_other_source(p):
    p.source = "payments"
    p.columns = ["id", "created_at", "amount", "due", "open"]
    p.rows = [
        {"id": "-9223372036854775808",
         "created_at": "2026-11-02T00:00:00.000000Z", "amount": "-42",
         "due": "-0043-03-15T12:00:00.000000Z", "open": "-infinity"},
        {"id": "9223372036854775807",
         "created_at": "2026-11-02T00:00:00.000000Z", "amount": "0",
         "due": "+12026-01-01T00:00:00.000000Z", "open": "infinity"}]
    p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}

    def ids_as_text(manifest):
        for key in "first", "last":
            manifest[key]["id"] = str(manifest[key]["id"])
    p.change_manifest.append(ids_as_text)


@case()
def good_redacted_purpose(p):
    def redact(manifest):
        manifest["purpose"] = "case [redacted:bearer]"
    p.change_manifest.append(redact)


@case()
def good_redaction_off(p):
    p.rows = [row(1)]
    p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}
    p.change_manifest.append(put(["redaction", "enabled"], False))
    p.change_manifest.append(put(["redaction", "sha256"], None))


# Forged archives.

@case("layout")
def no_zip(p):
    p.change_file.append(lambda data: b"id,created_at\r\n1,2\r\n")


@case("layout", "manifest", "records")
def no_bytes(p):
    p.change_file.append(lambda data: b"")


@case("layout")
def byte_behind(p):
    p.change_file.append(lambda data: data + b"x")


@case("layout")
def byte_in_front(p):
    p.change_file.append(lambda data: b"x" + data)


@case("layout")
def byte_between(p):
    p.zip_options["gap"] = b"hidden"


@case("layout")
def archive_comment(p):
    p.zip_options["comment"] = b"hello"


@case("layout")
def third_member(p):
    p.members = lambda records, manifest: [
        ("records.csv", records), ("manifest.json", manifest),
        ("run.exe", b"MZ")]


@case("layout", "manifest")
def no_manifest(p):
    p.members = lambda records, manifest: [("records.csv", records)]


@case("layout", "records")
def no_records(p):
    p.members = lambda records, manifest: [("manifest.json", manifest)]


@case("layout")
def members_swapped(p):
    p.members = lambda records, manifest: [
        ("manifest.json", manifest), ("records.csv", records)]


@case("layout")
def member_twice(p):
    p.members = lambda records, manifest: [
        ("records.csv", records), ("records.csv", records),
        ("manifest.json", manifest)]


@case("layout", "records")
def folder_in_name(p):
    p.members = lambda records, manifest: [
        ("../records.csv", records), ("manifest.json", manifest)]


@case("layout")
def other_local_name(p):
    p.zip_options["local_name"] = "r3cords.csv"


@case("layout")
def other_local_size(p):
    p.zip_options["local_size_change"] = 1


@case("layout")
def wrong_crc(p):
    p.zip_options["crc_change"] = 1


@case("layout", "bytes", "sha256", "records", "csv", "columns", "ends",
      "cells")
def size_too_small(p):
    p.rows = [row(n, f"2026-11-02T00:00:00.{n:06d}Z") for n in range(1, 4001)]
    p.cells = {"cleaned": 0, "formula_prefixed": 7, "redacted": 0}
    p.zip_options["size_change"] = -1000


@case("layout")
def size_too_large(p):
    p.zip_options["size_change"] = 7


@case("layout")
def bytes_behind_stream(p):
    p.zip_options["packed_tail"] = b"hidden bytes"


@case("layout", "columns", "bytes", "sha256", "records", "cells")
def stored_not_deflated(p):
    p.zip_options["method"] = 0


@case("layout", "columns", "bytes", "sha256", "records", "cells")
def encrypted(p):
    p.zip_options["flags"] = 1


@case("layout")
def data_descriptor(p):
    p.zip_options["flags"] = 8


@case("layout")
def extra_field(p):
    p.zip_options["extra"] = struct.pack("<HHI", 0x5455, 4, 0)


@case("layout")
def cut_off(p):
    p.change_file.append(lambda data: data[:len(data) // 2])


@case("layout", "columns", "bytes", "sha256", "records", "cells")
def bomb(p):
    p.members = lambda records, manifest: [
        ("records.csv", b"\0" * (300 << 20)), ("manifest.json", manifest)]


@case("layout", "manifest")
def manifest_too_long(p):
    p.change_bytes.append(lambda data: data + b" " * (4 << 20))


# Forged manifests.

@case("manifest")
def manifest_empty(p):
    p.manifest_bytes = b""


@case("manifest")
def manifest_no_json(p):
    p.change_bytes.append(lambda data: data[:-1])


@case("manifest")
def manifest_no_object(p):
    p.manifest_bytes = b"[]"


@case("manifest")
def key_twice(p):
    p.change_bytes.append(
        lambda data: data.replace(b'"generation":1',
                                  b'"generation":1,"generation":1'))


@case("manifest")
def zero_byte_in_text(p):
    p.change_bytes.append(
        lambda data: data.replace(b'"auditor"', b'"aud\\u0000itor"'))


@case("manifest")
def too_many_elements(p):
    p.manifest_bytes = b"[" + b"[]," * 300000 + b"[]]"


@case("canonical")
def line_end_behind(p):
    p.change_bytes.append(lambda data: data + b"\n")


@case("canonical")
def indented(p):
    p.change_bytes.append(
        lambda data: json.dumps(json.loads(data), sort_keys=True, indent=1,
                                ensure_ascii=False).encode())


@case("canonical")
def keys_unsorted(p):
    p.change_bytes.append(
        lambda data: json.dumps(dict(reversed(json.loads(data).items())),
                                separators=(",", ":"),
                                ensure_ascii=False).encode())


@case("canonical")
def escape_not_needed(p):
    p.change_bytes.append(
        lambda data: data.replace(b'"auditor"', b'"\\u0061uditor"'))


@case("canonical", "manifest")
def count_as_fraction(p):
    p.change_bytes.append(
        lambda data: data.replace(b'"generation":1', b'"generation":1.0'))


@case("canonical", "manifest")
def nested_deep(p):
    def nest(manifest):
        value = []
        for _ in range(100):
            value = [value]
        manifest["producer"]["codec"] = value
    p.change_manifest.append(nest)


@case("manifest")
def unknown_member(p):
    p.change_manifest.append(put(["signature"], "trust me"))


@case("manifest")
def unknown_inner_member(p):
    p.change_manifest.append(put(["snapshot", "signed"], True))


@case("manifest")
def member_missing(p):
    p.change_manifest.append(lambda manifest: manifest.pop("snapshot"))


@case("manifest")
def two_files(p):
    p.change_manifest.append(
        lambda manifest: manifest["files"].append(
            copy.deepcopy(manifest["files"][0])))


simple("other_format", ["format"], ["format"], "pg_evidence/2")
simple("other_delimiter", ["manifest"],
       ["files", 0, "dialect", "delimiter"], ";")
simple("no_export_id", ["manifest"], ["export_id"], "../../etc/passwd")
simple("negative_count", ["manifest"], ["cells", "cleaned"], -1)
simple("time_not_utc", ["manifest"], ["requested_at"],
       "2026-11-30T10:00:00.000000+01:00")
simple("time_impossible", ["manifest"], ["requested_at"],
       "2026-02-29T10:00:00.000000Z")
simple("column_no_text", ["manifest"], ["columns", 0], 1)
simple("filter_value_no_text", ["manifest"], ["filters", "action"], [1])
simple("too_many_columns", ["manifest"], ["columns"], ["c"] * 10001)
simple("hash_upper_case", ["manifest"], ["request_digest"], "A" * 64)
simple("consistency_unknown", ["manifest"], ["snapshot", "consistency"],
       "legal")
simple("two_counts", ["manifest", "records"], ["record_count"], 12)
simple("first_missing", ["manifest"], ["first"], None)
simple("purpose_changed", ["digest"], ["purpose"], "holiday")
simple("source_changed", ["digest"], ["source"], "audit_log2")
simple("filters_changed", ["digest"], ["filters"], {})
simple("filter_value_changed", ["digest"], ["filters", "tenant_id"], ["x"])
simple("range_wider", ["digest"], ["range", "end"],
       "2026-12-31T00:00:00.000000Z")
simple("range_narrower", ["digest", "range"], ["range", "end"],
       "2026-11-08T00:00:00.000000Z")
simple("range_reversed", ["digest", "range", "manifest"], ["range", "end"],
       "2026-10-01T00:00:00.000000Z")
simple("bytes_changed", ["bytes"], ["files", 0, "bytes"], 1000)
simple("sha256_changed", ["sha256"], ["files", 0, "sha256"], "ab" * 32)
simple("first_changed", ["ends"], ["first", "id"], 7)
simple("first_no_number", ["manifest"], ["first", "id"], True)
simple("last_changed", ["ends"], ["last", "created_at"],
       "2026-11-30T00:00:00.000000Z")
simple("guards_miscounted", ["cells"], ["cells", "formula_prefixed"], 3)
simple("marks_missing", ["cells"], ["cells", "redacted"], 4)
simple("too_many_cleaned", ["cells"], ["cells", "cleaned"], 100000)
simple("redaction_denied", ["cells"], ["redaction", "enabled"], False)
simple("columns_renamed", ["digest", "columns"], ["columns", 12], "remark")


@case("bytes", "sha256", "records", "cells", "digest")
def many_faults(p):
    def change(manifest):
        manifest["purpose"] = "another"
        manifest["record_count"] = manifest["files"][0]["rows"] = 99
        manifest["files"][0]["bytes"] = 1
        manifest["files"][0]["sha256"] = "0" * 64
        manifest["cells"]["formula_prefixed"] = 99
    p.change_manifest.append(change)


# Forged records; size and hash of the manifest fit unless a case says no.

@case("sha256")
def one_letter_changed(p):
    value = p.manifest()
    p.records = p.records_bytes().replace(b"user-9", b"user-8")
    p.change_manifest.append(put(["files"], value["files"]))


@case("bytes", "sha256", "records", "ends")
def last_record_removed(p):
    value = p.manifest()
    p.rows = p.rows[:-1]
    for key in "files", "last", "record_count":
        p.change_manifest.append(put([key], value[key]))


@case("bytes", "sha256", "records")
def record_inserted(p):
    value = p.manifest()
    p.rows = p.rows[:5] + [row(5, "2026-11-06T08:30:30.000000Z")] + p.rows[5:]
    for key in "files", "last", "record_count":
        p.change_manifest.append(put([key], value[key]))


@case("order")
def records_swapped(p):
    p.rows[3], p.rows[4] = p.rows[4], p.rows[3]


@case("order")
def id_twice(p):
    p.rows = [row(1), row(2), row(2)]
    p.cells = {"cleaned": 0, "formula_prefixed": 0, "redacted": 0}


@case("range")
def before_range(p):
    p.rows[0]["created_at"] = "2026-10-31T23:59:59.999999Z"


@case("range")
def at_end_of_range(p):
    p.rows[-1]["created_at"] = END


changed_row("formula", ["formula"], summary="=1+1")
changed_row("formula_at", ["formula"], action="@SUM(1)")
changed_row("formula_behind_blank", ["formula"], summary="  \u00a0=1+1")
changed_row("formula_behind_invisible", ["formula"],
            summary="\u200b\u2060=1+1")
changed_row("formula_full_width", ["formula"], summary="\uff1d1+1")
changed_row("formula_quoted", ["formula"], summary="=1,2")
changed_row("number_in_text", ["formula"], summary="-42")
changed_row("control_character", ["control"], summary="a\x1bb")
changed_row("tab", ["control"], summary="a\tb")
changed_row("line_break", ["control"], summary="a\r\nb")
changed_row("c1_control", ["control"], summary="a\u0085b")
changed_row("line_separator", ["control"], summary="a\u2028b")
changed_row("bidi", ["control"], summary="request \u202edeined\u202c")
changed_row("tag_characters", ["control"], summary="a\U000e0041b")
changed_row("formula_behind_tab", ["control", "formula"], summary="\t=1")
changed_row("time_without_zone", ["order"],
            created_at="2026-11-03T08:30:02.000001")
raw_records("time_missing", ["order"],
            lambda b: b.replace(b"2026-11-03T08:30:02.000001Z", b""))
changed_row("id_missing", ["order"], id=None)
changed_row("id_with_zero", ["order"], id="02")

raw_records("lf_only", ["csv"], lambda b: b.replace(b"\r\n", b"\n"))
raw_records("cr_only", ["csv"], lambda b: b.replace(b"\r\n", b"\r"))
raw_records("last_line_end_missing", ["csv"], lambda b: b[:-2])
raw_records("last_lf_missing", ["csv"], lambda b: b[:-1])
raw_records("blank_line", ["columns", "order", "records"],
            lambda b: b + b"\r\n")
raw_records("bom", ["columns"], lambda b: b"\xef\xbb\xbf" + b)
raw_records("bare_quote", ["csv"],
            lambda b: b.replace(b"user-2", b'us"er-2'))
raw_records("text_behind_quote", ["csv"],
            lambda b: b.replace(b'remark"" 2"', b'remark"" 2"x'))
raw_records("quote_open_at_end", ["control", "csv"],
            lambda b: b[:-3] + b"\r\n")
raw_records("cell_too_many", ["columns"],
            lambda b: b.replace(b"user-2", b"user-2,x"))
raw_records("cell_too_few", ["columns"],
            lambda b: b.replace(b"user-2,", b"user-2"))
raw_records("header_missing", ["columns", "records"],
            lambda b: b.split(b"\r\n", 1)[1])
raw_records("no_records_at_all", ["columns", "records"], lambda b: b"")
raw_records("latin1", ["utf8"], lambda b: b.replace(b"user-2", b"us\xe9r-2"))
raw_records("lone_continuation", ["utf8"],
            lambda b: b.replace(b"user-2", b"us\x80r-2"))
raw_records("overlong", ["utf8"],
            lambda b: b.replace(b"user-2", b"us\xc0\xafr-2"))
raw_records("surrogate", ["utf8"],
            lambda b: b.replace(b"user-2", b"us\xed\xa0\xbdr"))
raw_records("character_cut_by_comma", ["utf8"],
            lambda b: b.replace(b"user-2,", b"user\xe6\x97,"))
raw_records("character_cut_by_end", ["utf8", "csv"],
            lambda b: b[:-3] + b"\xe6\x97")
raw_records("zero_byte", ["control"],
            lambda b: b.replace(b"user-2", b"user\x002"))


def build(name):
    package = Package()
    CASES[name][0](package)
    return package.file()


def main():
    if sys.argv[1:] == ["--list"]:
        for name, (_, checks) in CASES.items():
            print(name, *sorted(set(checks)))
        return
    folder = pathlib.Path(sys.argv[1])
    for name in CASES:
        (folder / f"{name}.zip").write_bytes(build(name))


if __name__ == "__main__":
    main()
