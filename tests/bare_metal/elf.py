"""Reads an ELF file itself: binutils for another machine than this one are not there everywhere."""

import shutil
import struct
import subprocess
import sys
from collections import namedtuple

Section = namedtuple("Section", "name type flags address offset size link")
Symbol = namedtuple("Symbol", "address size")

SHT_SYMTAB, SHT_NOBITS = 2, 8
SHF_WRITE, SHF_ALLOC, SHF_EXEC = 1, 2, 4
ARM = 40


def string(table, offset):
    return table[offset : table.index(b"\0", offset)].decode()


def readable(names):
    """The names as in the source, where there is a tool for it."""
    if not shutil.which("c++filt"):
        return names
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else names


def total(sections):
    return sum(s.size for s in sections)


def branches(start, code):
    """Where the branches of a function in Thumb-2 code lead, wide ones and narrow ones."""
    halves = struct.unpack(f"<{len(code) // 2}H", code[: len(code) // 2 * 2])
    at = 0
    while at < len(halves):
        first, pc = halves[at], start + 2 * at + 4
        wide = first >> 11 in (0b11101, 0b11110, 0b11111)
        if wide and at + 1 < len(halves) and first & 0xF800 == 0xF000:
            second = halves[at + 1]
            s, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
            if second & 0x9000 == 0x9000:
                # BL and B.W
                offset = (s << 24 | (1 - (j1 ^ s)) << 23 | (1 - (j2 ^ s)) << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1)
                yield pc + offset - (s << 25)
            elif second & 0xD000 == 0x8000 and first >> 7 & 7 != 7:
                # B<c>.W
                offset = s << 20 | j2 << 19 | j1 << 18 | (first & 0x3F) << 12 | (second & 0x7FF) << 1
                yield pc + offset - (s << 21)
        elif first & 0xF800 == 0xE000:
            # B
            offset = (first & 0x7FF) << 1
            yield pc + offset - (0x1000 if offset & 0x800 else 0)
        elif first & 0xF000 == 0xD000 and first >> 8 & 0xF < 14:
            # B<c>
            offset = (first & 0xFF) << 1
            yield pc + offset - (0x200 if offset & 0x100 else 0)
        at += 2 if wide else 1


class Elf:
    """Sections, symbols by name, and the machine that they are for."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        if self.data[:6] != b"\x7fELF\x01\x01":
            sys.exit(f"{path}: not a 32-bit little-endian ELF file")
        self.machine, = struct.unpack_from("<H", self.data, 18)
        start, = struct.unpack_from("<I", self.data, 32)
        step, count, names_at = struct.unpack_from("<HHH", self.data, 46)
        raw = [struct.unpack_from("<10I", self.data, start + i * step) for i in range(count)]
        body = lambda header: self.data[header[4] : header[4] + header[5]]
        names = body(raw[names_at])
        self.sections = [Section(string(names, h[0]), h[1], h[2], h[3], h[4], h[5], h[6]) for h in raw]
        self.symbols = {}
        for header in raw:
            if header[1] != SHT_SYMTAB:
                continue
            strings = body(raw[header[6]])
            for name, address, size, info, _, home in struct.iter_unpack("<IIIBBH", body(header)):
                # Functions, objects, and symbols of no type; not sections and files.
                if info & 15 <= 2 and home != 0:
                    self.symbols[string(strings, name)] = Symbol(address, size)

    def flash(self):
        """The sections that are in flash."""
        return [s for s in self.sections if s.flags & SHF_ALLOC and s.size and s.type != SHT_NOBITS]

    def ram(self):
        """The sections that are in RAM."""
        held = [s for s in self.sections if s.flags & SHF_ALLOC and s.size]
        return [s for s in held if s.flags & SHF_WRITE or s.type == SHT_NOBITS]

    def print_sizes(self):
        flash, ram = self.flash(), self.ram()
        print("flash: {:6} bytes ({})".format(total(flash), ", ".join(f"{s.name} {s.size}" for s in flash)))
        print("RAM:   {:6} bytes static ({})".format(total(ram), ", ".join(f"{s.name} {s.size}" for s in ram)))

    def code(self, symbol):
        """The bytes of a function."""
        at = symbol.address & ~1
        for s in self.sections:
            if s.flags & SHF_EXEC and s.address <= at and at + symbol.size <= s.address + s.size:
                return self.data[s.offset + at - s.address : s.offset + at - s.address + symbol.size]
        return b""

    def calls(self, targets):
        """Who calls one of the targets, or jumps to it: (function, target), by name. ARM's Thumb only."""
        if self.machine != ARM:
            return []
        wanted = {self.symbols[name].address & ~1: name for name in targets}
        found = set()
        for name, symbol in self.symbols.items():
            start = symbol.address & ~1
            for target in branches(start, self.code(symbol)):
                if target in wanted and target != start:
                    found.add((name, wanted[target]))
        return sorted(found)
