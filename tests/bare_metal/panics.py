#!/usr/bin/env python3
"""What a firmware image holds: sizes, and nothing that panics or allocates.

    panics.py IMAGE [ALLOWED]

ALLOWED is a file of regular expressions, one a line (# begins a comment), for
the names of panic functions that may be in the image. Exits with 1 if there
are others, or any function of an allocator, and names them and what calls them.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
from elf import Elf, readable
from image import allocators, patterns

# In mangled names, old style and new. `rust_begin_unwind` is the panic handler
# of the firmware itself (board/src/end.rs keeps it from being inlined): it is in
# the image if anything at all can panic, whatever was inlined into what.
PANIC = re.compile(
    r"\dpanic|_panic|panicking|rust_begin_unwind|unwrap_failed|expect_failed"
    r"|slice_\w*fail|str_\w*fail|len_mismatch_fail|_overflow_fail|handle_alloc_error"
)
FORMAT = re.compile(r"4core3fmt|NtCs\w*_4core3fmt")


def main():
    path = sys.argv[1]
    elf = Elf(path)
    symbols = elf.symbols
    if not symbols:
        sys.exit(f"{path}: no symbols, nothing can be said")

    elf.print_sizes()
    formatting = {name: symbol.size for name, symbol in symbols.items() if FORMAT.search(name)}
    print(f"core::fmt: {len(formatting)} functions, {sum(formatting.values())} bytes")

    allowed = patterns(sys.argv[2]) if len(sys.argv) > 2 else []
    panics = sorted(name for name in symbols if PANIC.search(name))
    bad = [name for name in panics if not any(a.search(name) for a in allowed)]
    allocating = allocators(symbols)
    print(f"panic functions: {len(panics)}, of which allowed {len(panics) - len(bad)}")
    for caller, callee in zip(*[iter(readable([name for pair in elf.calls(bad) for name in pair]))] * 2):
        print(f"PANICS: {caller}\n        calls {callee}")
    for title, names in ("PANICS", bad), ("ALLOCATES", allocating):
        for name in readable(names):
            print(f"{title}: {name}")
    return 1 if bad or allocating else 0


if __name__ == "__main__":
    sys.exit(main())
