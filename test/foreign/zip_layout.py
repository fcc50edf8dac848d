"""The layout of a package's ZIP file, read byte by byte.

Written from the ZIP format's own field lists: what a reader of a stream sees
in the local headers, what one that seeks sees in the directory, and that the
two agree.  README promises exactly two members, no ZIP64 and no extra fields
where sizes need none, and always the same DOS time.
"""
import struct
import zlib

MEMBERS = ["records.csv", "manifest.json"]
LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
DOS_DATE = 0x21             # 1980-01-01, the first day of that calendar
DEFLATE = 8
VERSION_NEEDED = 20
UNIX = 3
REGULAR_FILE = 0o100644


def inflate(data, at, size):
    """Unpack one member as a stream: its text and how long it was packed."""
    unpacker = zlib.decompressobj(-15)
    text = unpacker.decompress(data[at:]) + unpacker.flush()
    used = len(data) - at - len(unpacker.unused_data)
    return (text, used) if len(text) == size else (None, used)


def read_local(data, name, at, fault):
    """Check one local header; its fields and the position behind."""
    fields = LOCAL.unpack_from(data, at)
    (magic, version, flags, method, time, date, crc, packed, size,
     name_length, extra) = fields
    if magic != b"PK\3\4":
        fault("archive", "no local header at %d" % at)
        return None, at
    found = data[at + LOCAL.size:at + LOCAL.size + name_length]
    if found != name.encode("ascii"):
        fault("archive", "%r where %s belongs" % (found, name))
    if (version, method, extra) != (VERSION_NEEDED, DEFLATE, 0):
        fault("archive", "%s: version, method or extra field" % name)
    if flags & ~6:
        fault("archive", "%s: flags %#x" % (name, flags))
    if (time, date) != (0, DOS_DATE):
        fault("archive", "%s has a time of its own" % name)
    at += LOCAL.size + name_length + extra
    text, used = inflate(data, at, size)
    if text is None or used != packed or zlib.crc32(text) != crc:
        fault("archive", "%s: sizes or CRC of the local header" % name)
    return fields, at + packed


def read_central(data, name, at, local, offset, fault):
    """Compare one entry of the directory with its local header."""
    (magic, made_by, version, flags, method, time, date, crc, packed, size,
     name_length, extra, comment, disk, internal, external,
     local_at) = CENTRAL.unpack_from(data, at)
    if magic != b"PK\1\2":
        fault("archive", "no directory entry at %d" % at)
        return at
    found = data[at + CENTRAL.size:at + CENTRAL.size + name_length]
    if (found, local_at) != (name.encode("ascii"), offset):
        fault("archive", "the directory has %r at %d" % (found, local_at))
    if (version, flags, method, time, date, crc, packed, size) != local[1:9]:
        fault("archive", "%s: directory and local header differ" % name)
    if (extra, comment, disk) != (0, 0, 0):
        fault("archive", "%s: extra field, comment or disk" % name)
    if made_by >> 8 != UNIX or external != REGULAR_FILE << 16 or internal & ~1:
        fault("archive", "%s: attributes %#x, %#x by %#x"
              % (name, internal, external, made_by))
    return at + CENTRAL.size + name_length + extra + comment


def check_layout(data, fault):
    """Members without gaps, their directory, the end record, nothing more."""
    at = 0
    found = []
    for name in MEMBERS:
        offset = at
        local, at = read_local(data, name, at, fault)
        if local is None:
            return
        found.append((name, local, offset))
    directory = at
    for name, local, offset in found:
        at = read_central(data, name, at, local, offset, fault)
    if len(data) - at != END.size:
        fault("archive", "%d bytes behind the directory" % (len(data) - at))
        return
    wanted = (b"PK\5\6", 0, 0, len(MEMBERS), len(MEMBERS), at - directory,
              directory, 0)
    if END.unpack_from(data, at) != wanted:
        fault("archive", "the end record is %r" % (END.unpack_from(data, at),))
