#!/usr/bin/env python3
"""The manual of `ethernet`, read by the client of the TypeScript SDK and by `inspect`: tests/interop/skills.sh with a board."""

import os
import sys

from device import ROOT, Board, build


def main():
    with Board(build("ethernet")) as board:
        return board.run([ROOT / "tests/interop/skills.sh"], env=dict(os.environ, BOARD=board.url))


if __name__ == "__main__":
    sys.exit(main())
