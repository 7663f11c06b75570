#!/usr/bin/env python3
"""Who can panic in a firmware image: the functions that call a panic function, by name.

    callers.py IMAGE ALLOWED

For images with code in them that is not ours and panics. ALLOWED is a file of regular
expressions on the demangled names of callers, one a line (# begins a comment, the reason).
Exits with 1 if there is another caller, or a function of an allocator.

What the linker has outlined counts as its callers.
"""

import os
import re
import sys
from collections import defaultdict

sys.path.insert(0, os.path.dirname(__file__))
from elf import ARM, Elf, readable
from image import allocators, patterns

PANIC = re.compile(
    r"core[0-9]*(\[[0-9a-f]+\])?::.*(panic|unwrap_failed|expect_failed|_fail$|len_mismatch_fail|slice_index_fail)|rust_begin_unwind"
)
OUTLINED = re.compile(r"^OUTLINED_FUNCTION")


def named(name):
    """A demangled name as the list has it: the old way to mangle and the new one, which is that of the lean build, name the
    same function differently."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"(?<=\w)\[[0-9a-f]+\]", "", name)  # a crate's hash
    name = re.sub(r"::<[^<>]*>$", "", name)  # what it is generic over
    return re.sub(r"^<([\w:]+)>::", r"\1::", name)  # the type of an inherent method


def main():
    elf = Elf(sys.argv[1])
    if elf.machine != ARM:
        sys.exit(f"{sys.argv[1]}: for a machine whose branches are not known here")
    elf.print_sizes()
    found = [raw for raw, symbol in elf.symbols.items() if elf.code(symbol)]
    names = {raw: named(name) for raw, name in zip(found, readable(found))}
    allowed = patterns(sys.argv[2])
    calls = defaultdict(set)
    for caller, called in elf.calls(found):
        calls[names[caller]].add(names[called])
    panics = {name for name in names.values() if PANIC.search(name)}
    outlined = {name for name in names.values() if OUTLINED.search(name)}
    reach = set(panics)
    while more := {name for name in outlined if name not in reach and calls[name] & reach}:
        reach |= more
    callers = sorted(name for name, to in calls.items() if to & reach and name not in reach)
    bad = [name for name in callers if not any(a.search(name) for a in allowed)]
    unused = [a.pattern for a in allowed if not any(a.search(name) for name in callers)]
    allocating = sorted(names[raw] for raw in allocators(found))
    print(f"callers of panics: {len(callers)}, of which allowed {len(callers) - len(bad)}")
    for pattern in unused:
        print(f"note: no longer calls a panic: {pattern}")
    for title, wrong in ("PANICS", bad), ("ALLOCATES", allocating):
        for name in wrong:
            print(f"{title}: {name} -> {', '.join(sorted(calls[name] & reach))}")
    return 1 if bad or allocating else 0


sys.exit(main())
