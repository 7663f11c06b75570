#!/usr/bin/env python3
"""Who can panic in a firmware image: the functions that call a panic function, by name.

    bare-metal-callers.py IMAGE ALLOWED

For images with code in them that is not ours and panics. ALLOWED is a file of regular
expressions on the demangled names of callers, one a line (# begins a comment, the reason).
Exits with 1 if there is another caller, or a function of an allocator.

Reads the branches of Thumb-2 code itself. What the linker has outlined counts as its callers.
"""

import os
import re
import struct
import sys
from collections import defaultdict

sys.path.insert(0, os.path.dirname(__file__))
from elf import Elf, readable

PANIC = re.compile(
    r"core[0-9]*(\[[0-9a-f]+\])?::.*(panic|unwrap_failed|expect_failed|_fail$|len_mismatch_fail|slice_index_fail)|rust_begin_unwind"
)
ALLOCATOR = re.compile(r"__(rust|rg|rdl)_(alloc|dealloc|realloc)|alloc::(alloc|raw_vec)|^(malloc|calloc|realloc|free)$")
OUTLINED = re.compile(r"^OUTLINED_FUNCTION")


def functions(elf):
    """Start of each function, its code, its name."""
    for name, symbol in elf.symbols.items():
        if code := elf.code(symbol):
            yield symbol.address & ~1, code, name


def branches(start, code):
    """Where the wide branches of a function lead: BL and B.W."""
    halves = struct.unpack(f"<{len(code) // 2}H", code[: len(code) // 2 * 2])
    at = 0
    while at < len(halves):
        first = halves[at]
        wide = first >> 11 in (0b11101, 0b11110, 0b11111)
        if wide and at + 1 < len(halves) and first & 0xF800 == 0xF000:
            second = halves[at + 1]
            s, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
            pc = start + 2 * at + 4
            if second & 0x9000 == 0x9000:
                offset = (s << 24 | (1 - (j1 ^ s)) << 23 | (1 - (j2 ^ s)) << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1)
                yield pc + offset - (s << 25)
            elif second & 0xD000 == 0x8000 and first >> 7 & 7 != 7:
                offset = s << 20 | j2 << 19 | j1 << 18 | (first & 0x3F) << 12 | (second & 0x7FF) << 1
                yield pc + offset - (s << 21)
        elif first & 0xF800 == 0xE000:
            offset = (first & 0x7FF) << 1
            yield start + 2 * at + 4 + offset - (0x1000 if offset & 0x800 else 0)
        elif first & 0xF000 == 0xD000 and first >> 8 & 0xF < 14:
            offset = (first & 0xFF) << 1
            yield start + 2 * at + 4 + offset - (0x200 if offset & 0x100 else 0)
        at += 2 if wide else 1


def main():
    elf = Elf(sys.argv[1])
    elf.print_sizes()
    found = list(functions(elf))
    names = dict(zip([name for *_, name in found], readable([name for *_, name in found])))
    names = {raw: re.sub(r"::h[0-9a-f]{16}$", "", name) for raw, name in names.items()}
    at = {start: names[raw] for start, _, raw in found}
    lines = (line.split("#")[0].strip() for line in open(sys.argv[2]))
    allowed = [re.compile(line) for line in lines if line]
    calls = defaultdict(set)
    for start, code, raw in found:
        for target in branches(start, code):
            if target in at and target != start:
                calls[names[raw]].add(at[target])
    panics = {name for name in names.values() if PANIC.search(name)}
    outlined = {name for name in names.values() if OUTLINED.search(name)}
    reach = set(panics)
    while more := {name for name in outlined if name not in reach and calls[name] & reach}:
        reach |= more
    callers = sorted(name for name, to in calls.items() if to & reach and name not in reach)
    bad = [name for name in callers if not any(a.search(name) for a in allowed)]
    unused = [a.pattern for a in allowed if not any(a.search(name) for name in callers)]
    allocators = sorted(name for name in names.values() if ALLOCATOR.search(name))
    print(f"callers of panics: {len(callers)}, of which allowed {len(callers) - len(bad)}")
    for pattern in unused:
        print(f"note: no longer calls a panic: {pattern}")
    for title, wrong in ("PANICS", bad), ("ALLOCATES", allocators):
        for name in wrong:
            print(f"{title}: {name} -> {', '.join(sorted(calls[name] & reach))}")
    return 1 if bad or allocators else 0


sys.exit(main())
