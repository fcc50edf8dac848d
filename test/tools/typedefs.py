#!/usr/bin/env python3
"""List the type names that the formatter must know.

pg_bsd_indent cannot tell a type from a variable by itself.  This script
finds every typedef of our own headers and sources, of the server's headers
and of the libraries' headers, and keeps those that our code mentions.

  typedefs.py            print the list
  typedefs.py --write    renew test/tools/typedefs.list
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "test/tools/typedefs.list"
OUR_FOLDERS = ("extension", "uploader", "test/unit", "test/fuzz", "test/tools",
               "test/objectstore")

LIBRARY_HEADERS = (
    "/usr/include/zip.h",
    "/usr/include/jansson.h",
    "/usr/include/expat.h",
    "/usr/include/postgresql/libpq-fe.h",
    "/usr/include/openssl/types.h",
    "/usr/include/zconf.h",
)

# Types that a regular expression does not find: the C library spreads them
# over many internal headers, PCRE2 makes its names with macros, and libcurl's
# headers lie in a folder of the architecture.
FURTHER_TYPES = """
    FILE bool clock_t dev_t double_t ino_t int16_t int32_t int64_t int8_t
    intmax_t intptr_t jmp_buf mode_t off_t pid_t ptrdiff_t sig_atomic_t
    sigjmp_buf sigset_t size_t socklen_t ssize_t time_t uid_t uint16_t
    uint32_t uint64_t uint8_t uintmax_t uintptr_t va_list wchar_t
    pcre2_code pcre2_compile_context pcre2_general_context pcre2_jit_stack
    pcre2_match_context pcre2_match_data PCRE2_SIZE PCRE2_SPTR PCRE2_UCHAR
    __m128i __m256i
    CURL CURLM CURLMcode CURLMsg CURLcode curl_off_t
""".split()

# What holds no declarations: comments, and preprocessor lines.
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:\\\n|[^\n])*",
                     re.DOTALL | re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")


def declared_types(text):
    """Return the names that the typedefs of a C text declare."""
    names = set()
    text = COMMENT.sub(" ", text)
    for start in re.finditer(r"\btypedef\b", text):
        depth = 0
        for end in range(start.end(), len(text)):
            char = text[end]
            depth += (char == "{") - (char == "}")
            if char == ";" and depth == 0:
                break
        else:
            continue
        declaration = text[start.end():end]
        # The name of a function pointer stands in parentheses, any other
        # one is the last word outside brackets.
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\([^{}]*\)\s*$",
                            declaration, re.DOTALL)
        if pointer:
            names.add(pointer.group(1))
            continue
        declaration = re.sub(r"\{.*\}", " ", declaration, flags=re.DOTALL)
        declaration = re.sub(r"\[[^]]*\]|\([^()]*\)\s*$", " ", declaration)
        words = WORD.findall(declaration)
        if words:
            names.add(words[-1])
    return names


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def our_files():
    for folder in OUR_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h"):
                yield path


def server_headers():
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    folder = subprocess.run([pg_config, "--includedir-server"], check=True,
                            capture_output=True, text=True).stdout.strip()
    return sorted(pathlib.Path(folder).rglob("*.h"))


def main():
    known = set(FURTHER_TYPES)
    used = set()
    for path in our_files():
        text = COMMENT.sub(" ", read(path))
        known |= declared_types(text)
        used |= set(WORD.findall(text))
    for path in server_headers():
        known |= declared_types(read(path))
    for path in map(pathlib.Path, LIBRARY_HEADERS):
        if path.exists():
            known |= declared_types(read(path))
    names = "".join(name + "\n" for name in sorted(known & used))
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(names, encoding="utf-8")
    else:
        sys.stdout.write(names)


if __name__ == "__main__":
    main()
