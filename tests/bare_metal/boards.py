#!/usr/bin/env python3
"""The size of a board's template, against docs/footprint.md: boards.py NAME IMAGE [--write]"""

import pathlib
import re
import sys

from elf import Elf, total
from footprint import TOLERANCE

PAGE = pathlib.Path(__file__).parent / "../../docs/footprint.md"


def main():
    name, image, *write = sys.argv[1:]
    elf = Elf(image)
    # esp-hal has sections for the stack and for addresses that are in use otherwise.
    ram = [section for section in elf.ram() if not re.search("dummy|stack", section.name)]
    found = [total(elf.flash()), total(ram)]
    print(f"templates: {name}: {found[0]} bytes of flash, {found[1]} of RAM")
    text = PAGE.read_text()
    row = re.search(rf"^(\| `{name}` \|.*\|) ([\d,]+) \| ([\d,]+) \|$", text, re.M)
    if not row:
        sys.exit(f"docs/footprint.md has no row of {name}")
    if write:
        PAGE.write_text(text.replace(row[0], f"{row[1]} {found[0]:,} | {found[1]:,} |"))
        return
    for is_now, is_said in zip(found, row.groups()[1:]):
        said = int(is_said.replace(",", ""))
        if abs(is_now - said) > TOLERANCE * said:
            sys.exit(f"docs/footprint.md says {is_said}: tests/templates.sh --write {name}")


if __name__ == "__main__":
    main()
