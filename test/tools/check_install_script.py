#!/usr/bin/env python3
"""Check what the install script promises about itself.

A superuser runs the script, so nothing that a stranger has left in the
database may take part in it; and what it forgets (a REVOKE, a comment, a
registration for pg_dump) is missing in every installation.  The script is
read as text here; what it leaves in the catalog is tested by
sql/10_install.sql and test/pgtap/10_catalog.sql.  Upgrade scripts are held to
the same rules.

  check_install_script.py               check the parts of extension/schema
                                        and the upgrade scripts
  check_install_script.py --self-test   plant faults in a good script and see
                                        each one reported
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

SAFE_PATH = "SET LOCAL search_path = pg_catalog, pg_temp"

# Tables that a dump leaves out on purpose: leases, grants and bytes belong to
# one running cluster.
NOT_DUMPED = {"attempt", "archive_chunk", "download_grant",
              "upload_attempt"}

# One of them replaces another's object, or accepts it as if it were ours.
FORBIDDEN = (
    (re.compile(r"\bOR\s+REPLACE\b", re.I), "OR REPLACE takes over an object "
     "that somebody else may own"),
    (re.compile(r"\bIF\s+(NOT\s+)?EXISTS\b", re.I), "IF (NOT) EXISTS goes on "
     "with, or without, an object that somebody else made"),
    (re.compile(r"\bCASCADE\b", re.I), "CASCADE reaches objects of users"),
    (re.compile(r"^\s*GRANT\b", re.I), "grants are made by "
     "grant_capability() only"),
)

TOKEN = re.compile(r"""
    (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
  | (?P<string>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")*")
  | (?P<meta>^\\[^\n]*)
  | (?P<end>;)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

QUALIFIED = r"evidence\.\w+"

# The kinds of statement that a script of ours consists of.
KINDS = [(kind, re.compile(pattern, re.I | re.S)) for kind, pattern in (
    ("table", rf"CREATE TABLE (?P<name>[\w.]+) \((?P<body>.*)\)"),
    ("view", rf"CREATE VIEW (?P<name>[\w.]+)\b.*"),
    ("function", rf"CREATE (?:FUNCTION|PROCEDURE) (?P<name>[\w.]+) ?\(.*"),
    ("trigger", r"CREATE TRIGGER (?P<trigger>\w+) .*? ON (?P<name>[\w.]+) "
     r".*EXECUTE FUNCTION (?P<other>[\w.]+) ?\(.*"),
    ("index", r"CREATE (?:UNIQUE )?INDEX \w+ ON (?P<name>[\w.]+) .*"),
    ("always", r"ALTER TABLE (?P<name>[\w.]+) ENABLE ALWAYS TRIGGER "
     r"(?P<trigger>\w+)"),
    ("storage", r"ALTER TABLE (?P<name>[\w.]+) ALTER COLUMN \w+ SET STORAGE "
     r"\w+"),
    ("comment", r"COMMENT ON (?:TABLE|VIEW|FUNCTION|PROCEDURE) "
     r"(?P<name>[\w.]+)\b.*"),
    ("column comment", r"COMMENT ON COLUMN (?P<name>[\w.]+)\.(?P<column>\w+)"
     r" IS .*"),
    ("schema comment", r"COMMENT ON SCHEMA evidence IS .*"),
    ("insert", r"INSERT INTO (?P<name>[\w.]+) .*"),
    ("dump", r"SELECT pg_catalog\.pg_extension_config_dump ?\("
     r"'(?P<name>[\w.]+)', '(?P<condition>(?:[^']|'')*)'\)"),
    ("revoke", r"REVOKE ALL ON (?P<what>.*) FROM PUBLIC"),
    ("block", r"DO (?P<body>\$.*)"),
    ("path", re.escape(SAFE_PATH)),
)]

# What stands behind these words is a relation.
RELATION = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|REFERENCES)\s+"
                      r"(?!LATERAL\s*\()(?:LATERAL\s+|ONLY\s+)?([\w.\"]+)(\s*\()?", re.I)

Statement = collections.namedtuple("Statement", "line text code kind match")


def split(text):
    """Yield (line, text, code) of each statement: text without comments,
    code without strings as well, dollar-quoted bodies kept in both."""
    start, kept, code = 0, [], []
    first = None
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "tag" else "dollar"
        piece = text[start:match.start()]
        start = match.end()
        if first is None and piece.strip():
            first = match.start() - len(piece.lstrip())
        kept.append(piece)
        code.append(piece)
        if kind == "end":
            yield line_of(text, first), clean(kept), clean(code)
            kept, code, first = [], [], None
        elif kind == "meta":
            yield line_of(text, match.start()), match.group(), ""
        elif kind != "comment":
            if first is None:
                first = match.start()
            kept.append(match.group())
            code.append(strip_body(match.group()) if kind == "dollar"
                        else "''" if kind == "string" else match.group())
    rest = clean([*kept, text[start:]])
    if rest:
        yield line_of(text, start), rest, rest


def strip_body(body):
    """A dollar-quoted body without its comments and strings."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'",
                  lambda m: "''" if m.group()[0] == "'" else "", body)


def clean(pieces):
    return re.sub(r"\s+", " ", "".join(pieces)).strip()


def line_of(text, position):
    return text.count("\n", 0, position or 0) + 1


def classify(line, text, code):
    for kind, pattern in KINDS:
        match = pattern.fullmatch(text)
        if match:
            return Statement(line, text, code, kind, match)
    return Statement(line, text, code, None, None)


class Script:
    """One script, and what is wrong with it."""

    def __init__(self, text):
        pieces = list(split(text))
        self.guard = bool(pieces) and pieces[0][1].startswith("\\echo") \
            and pieces[0][1].endswith("\\quit")
        self.statements = [classify(*piece) for piece in pieces
                           if not piece[1].startswith("\\")]

    def of_kind(self, *kinds):
        return [s for s in self.statements if s.kind in kinds]

    def faults(self):
        """Yield (line, fault)."""
        if not self.guard:
            yield 1, "begins without the \\echo ... \\quit that keeps psql off"
        if [s.kind for s in self.statements[:1]] != ["path"]:
            yield 1, f"the first statement is not {SAFE_PATH}"
        for check in (self.statement_faults, self.name_faults,
                      self.relation_faults, self.function_faults,
                      self.comment_faults, self.dump_faults,
                      self.trigger_faults, self.revoke_faults):
            yield from check()

    def statement_faults(self):
        for number, s in enumerate(self.statements):
            if s.kind is None:
                yield s.line, f"a statement of unknown kind: {s.text[:60]}"
            if number > 0 and (s.kind == "path" or (
                    s.kind not in ("function", "comment", "column comment")
                    and re.search(r"search_path", s.code, re.I))):
                yield s.line, "changes search_path"
            for pattern, fault in FORBIDDEN:
                # NOT EXISTS (SELECT ...) in a query is another matter.
                found = pattern.search(re.sub(
                    r"IF NOT EXISTS ?\(|IF EXISTS ?\(", "", s.code))
                if found:
                    yield s.line, fault
            # Dynamic SQL is text in a string.
            if s.kind == "block" and re.search(r"EXECUTE (?!pg_catalog\.)",
                                               s.code):
                yield s.line, "runs dynamic SQL that pg_catalog.format() " \
                    "did not make"

    def name_faults(self):
        for s in self.statements:
            groups = s.match.groupdict() if s.match else {}
            for name in (groups.get("name"), groups.get("other")):
                if name and not re.fullmatch(QUALIFIED, name):
                    yield s.line, f"{name} stands without its schema"
        own = {s.match["name"].split(".")[1]
               for s in self.of_kind("function") if "." in s.match["name"]}
        for s in self.statements:
            for called in re.finditer(r"(?<![\w.])(\w+) ?\(", s.code):
                if called[1] in own:
                    yield s.line, f"{called[1]}() is called without its schema"

    def relation_faults(self):
        for s in self.statements:
            if s.kind in ("comment", "column comment", "schema comment",
                          "revoke", "trigger"):
                continue
            code = re.sub(r"extract ?\( ?\w+ FROM", "extract(", s.code,
                          flags=re.I)
            code = re.sub(r"IS (NOT )?DISTINCT FROM", "<>", code, flags=re.I)
            known = set(re.findall(r"(\w+) AS (?:MATERIALIZED )?\(", code))
            known |= set(re.findall(r"\b(?:DECLARE|;) (\w+) [\w.\[\]]+"
                                    r"(?= ?[;:])", code))
            for word, name, call in RELATION.findall(code):
                if re.match(r"evidence\.|pg_catalog\.", name):
                    continue
                if name.lower() in ("select", "set", "public") or \
                        name in known:
                    continue
                if call and word.upper() == "FROM":
                    continue        # a function, which pg_catalog must have
                yield s.line, f"{word.upper()} {name}: without its schema"

    def function_faults(self):
        for s in self.of_kind("function"):
            name = s.match["name"].split(".")[-1]
            language = re.search(r"\bLANGUAGE (\w+)", s.code)
            safe = re.search(r"\bSET search_path = pg_catalog, pg_temp\b",
                             s.code)
            if not language:
                yield s.line, f"{name}: no language"
            elif language[1] == "C":
                if "'MODULE_PATHNAME', 'ev_sql_" not in s.text:
                    yield s.line, f"{name}: not in our library"
            elif not name.startswith("_"):
                yield s.line, f"{name}: a function of the interface is in C"
            elif not safe:
                yield s.line, f"{name}: neither in C nor with " \
                    "SET search_path = pg_catalog, pg_temp"
            if re.search(r"SECURITY DEFINER", s.code, re.I) and not safe:
                yield s.line, f"{name}: SECURITY DEFINER without " \
                    "SET search_path = pg_catalog, pg_temp"

    def comment_faults(self):
        told = {s.match["name"] for s in self.of_kind("comment")}
        told |= {f"{s.match['name']}.{s.match['column']}"
                 for s in self.of_kind("column comment")}
        for s in self.of_kind("table", "view", "function"):
            if s.match["name"] not in told:
                yield s.line, f"{s.match['name']} has no comment"
        for s in self.of_kind("table"):
            for column in columns_of(s.match["body"]):
                if f"{s.match['name']}.{column}" not in told:
                    yield s.line, \
                        f"{s.match['name']}.{column} has no comment"

    def dump_faults(self):
        dumped = {s.match["name"]: s for s in self.of_kind("dump")}
        filled = {s.match["name"] for s in self.of_kind("insert")}
        made = set()
        for s in self.of_kind("table"):
            name = s.match["name"]
            sequences = {f"{name}_{column}_seq" for column, rest in
                         columns_of(s.match["body"]).items()
                         if re.search(r"AS IDENTITY|serial", rest, re.I)}
            made |= {name} | sequences
            if name.split(".")[-1] in NOT_DUMPED:
                for other in sorted(({name} | sequences) & set(dumped)):
                    yield dumped[other].line, f"{other} must not be dumped"
                continue
            for other in sorted({name} | sequences):
                if other not in dumped:
                    yield s.line, f"{other} is not registered for pg_dump"
            if name in dumped and name in filled and \
                    not dumped[name].match["condition"].startswith("WHERE "):
                yield dumped[name].line, f"{name}: rows that the script " \
                    "ships would be dumped and restored twice"
        for name, s in dumped.items():
            if name not in made:
                yield s.line, f"{name} is registered and not made here"

    def trigger_faults(self):
        always = {(s.match["name"], s.match["trigger"])
                  for s in self.of_kind("always")}
        for s in self.of_kind("trigger"):
            if (s.match["name"], s.match["trigger"]) not in always:
                yield s.line, f"trigger {s.match['trigger']} on " \
                    f"{s.match['name']} is not ENABLE ALWAYS"

    def revoke_faults(self):
        revoked = [(self.statements.index(s), s.match["what"])
                   for s in self.of_kind("revoke")]
        for number, s in enumerate(self.statements):
            if s.kind not in ("table", "view", "function"):
                continue
            whole = "ALL ROUTINES IN SCHEMA evidence" \
                if s.kind == "function" else "ALL TABLES IN SCHEMA evidence"
            name = s.match["name"]
            if not any(later > number and
                       (what == whole or re.match(
                           rf"(TABLE|FUNCTION|PROCEDURE|ROUTINE) "
                           rf"{re.escape(name)}\b", what))
                       for later, what in revoked):
                yield s.line, f"{name} is not revoked from PUBLIC"


def columns_of(body):
    """Map each column of a CREATE TABLE to the rest of its definition."""
    depth, part, parts = 0, "", []
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    parts.append(part.strip())
    return {part.split()[0]: part for part in parts
            if part.split()[0].upper() not in
            ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE")}


# A script without a fault, and changes that each make one: what is replaced,
# by what, and a part of the fault that must be reported.
GOOD = r"""
-- A comment; with a semicolon, and CREATE OR REPLACE in it.
\echo Use "CREATE EXTENSION x" to load this file. \quit
SET LOCAL search_path = pg_catalog, pg_temp;
CREATE FUNCTION evidence.now() RETURNS timestamptz
    LANGUAGE C VOLATILE AS 'MODULE_PATHNAME', 'ev_sql_now';
COMMENT ON FUNCTION evidence.now() IS 'The time; OR REPLACE nothing.';
CREATE FUNCTION evidence._fill() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    n integer := 1;
BEGIN
    -- FROM nowhere
    INSERT INTO evidence.thing (id) SELECT i FROM generate_series(1, n) AS i;
    SELECT count(*) INTO n FROM evidence.thing;
END
$$;
COMMENT ON FUNCTION evidence._fill() IS 'Fills.';
CREATE TABLE evidence.thing (
    id   bigint GENERATED BY DEFAULT AS IDENTITY,
    at   timestamptz DEFAULT evidence.now(),
    kind text CHECK (kind IN ('a', 'b')),
    CONSTRAINT thing_at CHECK (isfinite(at))
);
COMMENT ON TABLE evidence.thing IS 'A thing.';
COMMENT ON COLUMN evidence.thing.id IS 'Number.';
COMMENT ON COLUMN evidence.thing.at IS 'When.';
COMMENT ON COLUMN evidence.thing.kind IS 'What.';
CREATE TABLE evidence.attempt (id bigint REFERENCES evidence.thing);
COMMENT ON TABLE evidence.attempt IS 'An attempt.';
COMMENT ON COLUMN evidence.attempt.id IS 'Of what.';
CREATE INDEX thing_at ON evidence.thing (at);
CREATE TRIGGER guard BEFORE INSERT ON evidence.thing
    FOR EACH ROW EXECUTE FUNCTION evidence.now();
ALTER TABLE evidence.thing ENABLE ALWAYS TRIGGER guard;
CREATE VIEW evidence.seen AS
WITH old AS (SELECT t.id FROM evidence.thing AS t)
SELECT old.id, extract(epoch FROM t.at) FROM old JOIN evidence.thing AS t ON t.id = old.id;
COMMENT ON VIEW evidence.seen IS 'Seen.';
INSERT INTO evidence.thing (kind) VALUES ('a');
DO $$ BEGIN PERFORM evidence._fill(); END $$;
SELECT pg_catalog.pg_extension_config_dump('evidence.thing', 'WHERE kind <> ''a''');
SELECT pg_catalog.pg_extension_config_dump('evidence.thing_id_seq', '');
REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM PUBLIC;
"""

PLANTED = (
    ("\\quit", "", "keeps psql off"),
    (SAFE_PATH + ";", "", "first statement"),
    (SAFE_PATH, "SET LOCAL search_path = evidence, pg_temp",
     "first statement"),
    ("CREATE INDEX", "SET LOCAL search_path = public; CREATE INDEX",
     "changes search_path"),
    ("CREATE INDEX", "SELECT set_config('search_path', '', true);"
     " CREATE INDEX", "unknown kind"),
    ("CREATE FUNCTION evidence.now", "CREATE OR REPLACE FUNCTION evidence.now",
     "OR REPLACE"),
    ("CREATE VIEW", "CREATE OR REPLACE VIEW", "OR REPLACE"),
    ("CREATE TABLE evidence.thing", "CREATE TABLE IF NOT EXISTS "
     "evidence.thing", "EXISTS"),
    ("DO $$ BEGIN", "DO $$ BEGIN CREATE TABLE IF NOT EXISTS evidence.x ();",
     "EXISTS"),
    ("CREATE INDEX", "DROP TABLE evidence.x CASCADE; CREATE INDEX", "CASCADE"),
    ("CREATE INDEX", "GRANT SELECT ON evidence.thing TO x; CREATE INDEX",
     "grant_capability"),
    ("CREATE INDEX", "CREATE CAST (text AS evidence.thing) WITH INOUT;"
     " CREATE INDEX", "unknown kind"),
    ("PERFORM evidence._fill()", "EXECUTE 'DROP TABLE ' || kind",
     "dynamic SQL"),
    ("CREATE TABLE evidence.attempt", "CREATE TABLE attempt",
     "without its schema"),
    ("ON evidence.thing (at)", "ON thing (at)", "without its schema"),
    ("EXECUTE FUNCTION evidence.now", "EXECUTE FUNCTION now",
     "without its schema"),
    ("INSERT INTO evidence.thing (kind)", "INSERT INTO thing (kind)",
     "without its schema"),
    ("INSERT INTO evidence.thing (id)", "INSERT INTO thing (id)",
     "without its schema"),
    ("INTO n FROM evidence.thing", "INTO n FROM thing", "without its schema"),
    ("JOIN evidence.thing", "JOIN thing", "without its schema"),
    ("REFERENCES evidence.thing", "REFERENCES thing", "without its schema"),
    ("DEFAULT evidence.now()", "DEFAULT now()", "called without its schema"),
    ("PERFORM evidence._fill()", "PERFORM _fill()",
     "called without its schema"),
    ("'MODULE_PATHNAME', 'ev_sql_now'", "'/tmp/x', 'ev_sql_now'",
     "not in our library"),
    ("LANGUAGE C VOLATILE AS 'MODULE_PATHNAME', 'ev_sql_now'",
     "LANGUAGE sql AS 'SELECT 1'", "interface is in C"),
    ("plpgsql SET search_path = pg_catalog, pg_temp", "plpgsql",
     "SET search_path"),
    ("SET search_path = pg_catalog, pg_temp\n",
     "SET search_path = pg_catalog, evidence\n", "SET search_path"),
    ("LANGUAGE C VOLATILE", "LANGUAGE C VOLATILE SECURITY DEFINER",
     "SECURITY DEFINER"),
    ("COMMENT ON FUNCTION evidence._fill() IS 'Fills.';", "",
     "_fill has no comment"),
    ("COMMENT ON VIEW evidence.seen IS 'Seen.';", "", "seen has no comment"),
    ("COMMENT ON TABLE evidence.thing IS 'A thing.';", "",
     "thing has no comment"),
    ("COMMENT ON COLUMN evidence.thing.kind IS 'What.';", "",
     "thing.kind has no comment"),
    ("SELECT pg_catalog.pg_extension_config_dump('evidence.thing', "
     "'WHERE kind <> ''a''');", "", "not registered"),
    ("SELECT pg_catalog.pg_extension_config_dump('evidence.thing_id_seq', "
     "'');", "", "thing_id_seq is not registered"),
    ("'evidence.thing', 'WHERE kind <> ''a'''", "'evidence.thing', ''",
     "restored twice"),
    ("'evidence.thing_id_seq'", "'evidence.attempt'", "must not be dumped"),
    ("'evidence.thing_id_seq'", "'evidence.other'", "not made here"),
    ("ALTER TABLE evidence.thing ENABLE ALWAYS TRIGGER guard;", "",
     "ENABLE ALWAYS"),
    ("REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM PUBLIC;", "",
     "not revoked"),
    ("REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM PUBLIC;",
     "REVOKE ALL ON FUNCTION evidence.now() FROM PUBLIC;",
     "_fill is not revoked"),
)


def self_test():
    wrong = [f"the good script is blamed: {fault}"
             for _, fault in Script(GOOD).faults()]
    for old, new, wanted in PLANTED:
        if GOOD.count(old) < 1:
            wrong.append(f"nothing to replace: {old}")
        faults = [fault for _, fault in
                  Script(GOOD.replace(old, new, 1)).faults()]
        if not any(wanted in fault for fault in faults):
            wrong.append(f"not reported: {old!r} -> {new!r}: {faults}")
    for fault in wrong:
        print(f"self-test: {fault}")
    if not wrong:
        print(f"self-test: {len(PLANTED)} planted faults are reported")
    return 1 if wrong else 0


def scripts():
    """Yield each script as a list of (file, text) that make would join."""
    yield [(path, path.read_text("utf-8")) for path in
           sorted((ROOT / "extension/schema").glob("*.sql"))]
    for path in sorted((ROOT / "extension").glob("*--*--*.sql")):
        yield [(path, path.read_text("utf-8"))]


def place(parts, line):
    """The file and line that a line of the joined script comes from."""
    for path, text in parts:
        lines = text.count("\n")
        if line <= lines:
            return f"{path.relative_to(ROOT)}:{line}"
        line -= lines
    return f"{parts[-1][0].relative_to(ROOT)}"


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    count = faults = 0
    for parts in scripts():
        script = Script("".join(text for _, text in parts))
        count += len(script.statements)
        for line, fault in sorted(script.faults()):
            faults += 1
            print(f"{place(parts, line)}: {fault}")
    if not faults:
        print(f"{count} statements of the install script keep to the rules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
