"""What a cell of records.csv must be, written from README alone.

"What happens to a cell" in README is the source of every rule here; no code
and no table of the project is used.  Classes of characters come from Python's
own Unicode data, texts of cells from a parser of RFC 4180 below.
"""
import codecs
import re
import unicodedata

# Skipped in front of a formula: control, blank, invisible and combining
# characters, by general category, and letters that show nothing.
HIDDEN = {"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Mc", "Me", "Cn", "Cs"}
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
# = + - @ and every character that compatibility normalisation makes one of.
TRIGGERS = {char for char in map(chr, range(0x110000))
            if unicodedata.normalize("NFKC", char)[:1] in tuple("=+-@")}
MARK = re.compile(r"\[redacted:[a-z0-9_-]{1,40}\]")
MARK_START = "[redacted:"
BARE = re.compile(r'[^,"\r\n]*')
# A text of these alone is clean and hides nothing.
PLAIN = re.compile(r"[ -~]*")


def one_mark_each(error):
    """Each byte that is not UTF-8 becomes one U+FFFD."""
    return "\ufffd", error.start + 1


codecs.register_error("one-mark-each", one_mark_each)


def from_bytes(data):
    """The text that a package has for the bytes of a value."""
    return data.decode("utf-8", "one-mark-each")


# The guard ------------------------------------------------------------------

def hidden(char):
    return char in BLANK_LETTERS or unicodedata.category(char) in HIDDEN


def behind_hidden(text, start=0):
    """Position of the first visible character from start on."""
    while start < len(text) and hidden(text[start]):
        start += 1
    return start


def dangerous(text, start=0):
    at = behind_hidden(text, start)
    return at < len(text) and text[at] in TRIGGERS


def looks_guarded(text):
    behind = len(text) - len(text.lstrip("'"))
    if behind == 0:
        return False
    return (dangerous(text, behind)
            or text.startswith(MARK_START, behind_hidden(text, behind)))


def undo_guard(cell):
    """The text behind the guard, and whether there was one."""
    if looks_guarded(cell):
        return cell[1:], True
    return cell, False


# Cleaning -------------------------------------------------------------------

def shown(char):
    code = ord(char)
    return (code in (0x61C, 0x200E, 0x200F)
            or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x206F
            or 0xE0000 <= code <= 0xE007F)


def clean(text):
    """Controls to blanks, bidi controls and tags written out."""
    if PLAIN.fullmatch(text):
        return text
    first = behind_hidden(text)
    out = []
    for at, char in enumerate(text):
        if unicodedata.category(char) == "Cc" or char in "\u2028\u2029":
            out.append(" ")
        elif shown(char):
            out.append("<U+%04X>" % ord(char) if at > first else " ")
        else:
            out.append(char)
    return "".join(out)


# Redaction ------------------------------------------------------------------

def removed_parts(text, wanted):
    """What marks in text took out of wanted; None if it differs elsewhere.

    Which texts are secrets is not judged here.  A mark stands for at least
    one character; with more than one way to fit, the shortest parts count.
    """
    if text == wanted:
        return []
    parts = MARK.split(text)
    if len(parts) == 1 or not wanted.startswith(parts[0]):
        return None
    removed = []
    at = len(parts[0])
    for number, part in enumerate(parts[1:], 1):
        if number == len(parts) - 1:
            end = len(wanted) - len(part)
            found = end if wanted.endswith(part) and end > at else -1
        else:
            found = wanted.find(part, at + 1)
        if found < 0:
            return None
        removed.append(wanted[at:found])
        at = found + len(part)
    return removed


# CSV ------------------------------------------------------------------------

def needs_quotes(cell):
    """The empty text, a comma, a quote, or a blank at either end."""
    return cell == "" or cell.strip(" ") != cell or '"' in cell or "," in cell


def parse(text):
    """RFC 4180 records of (text, quoted) cells; CR LF ends each record.

    The csv module cannot tell an empty cell from a quoted empty one, hence
    this parser.
    """
    records, record, at = [], [], 0
    while at < len(text):
        if text[at] == '"':
            cell, at = [], at + 1
            while True:
                end = text.index('"', at)
                cell.append(text[at:end])
                at = end + 1
                if text[at:at + 1] != '"':
                    break
                cell.append('"')
                at += 1
            record.append(("".join(cell), True))
        else:
            match = BARE.match(text, at)
            record.append((match.group(), False))
            at = match.end()
        if text[at:at + 1] == ",":
            at += 1
        elif text[at:at + 2] == "\r\n":
            records.append(record)
            record, at = [], at + 2
        else:
            raise ValueError("stray character at %d" % at)
    if record:
        raise ValueError("the last record has no CR LF")
    return records


def values(records):
    """The same records as texts, with None for NULL."""
    return [[None if (cell, quoted) == ("", False) else cell
             for cell, quoted in record] for record in records]
