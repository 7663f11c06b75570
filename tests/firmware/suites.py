#!/usr/bin/env python3
"""The official server suites against the board, with the host's script, the host's gate and the host's expectations."""

import sys

from device import ROOT, Board, build


def main():
    with Board(build("ethernet", "fixture")) as board:
        return board.run([ROOT / "tests/conformance/run.sh", "server", "--url", board.url, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
