"""Reads an ELF file itself: binutils for another machine than this one are not there everywhere."""

import struct
import sys
from collections import namedtuple

Section = namedtuple("Section", "name type flags address offset size link")

SHT_SYMTAB, SHT_NOBITS = 2, 8
SHF_WRITE, SHF_ALLOC, SHF_EXEC = 1, 2, 4


def string(table, offset):
    return table[offset : table.index(b"\0", offset)].decode()


def read(path):
    data = open(path, "rb").read()
    if data[:6] != b"\x7fELF\x01\x01":
        sys.exit(f"{path}: not a 32-bit little-endian ELF file")
    start, = struct.unpack_from("<I", data, 32)
    step, count, names_at = struct.unpack_from("<HHH", data, 46)
    raw = [struct.unpack_from("<10I", data, start + i * step) for i in range(count)]
    body = lambda header: data[header[4] : header[4] + header[5]]
    names = body(raw[names_at])
    sections = [Section(string(names, h[0]), h[1], h[2], h[3], h[4], h[5], h[6]) for h in raw]
    symbols = {}
    for header in raw:
        if header[1] != SHT_SYMTAB:
            continue
        strings = body(raw[header[6]])
        for name, _, size, info, _, home in struct.iter_unpack("<IIIBBH", body(header)):
            # Functions, objects, and symbols of no type; not sections and files.
            if info & 15 <= 2 and home != 0:
                symbols[string(strings, name)] = size
    return sections, symbols
