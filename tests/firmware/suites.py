#!/usr/bin/env python3
"""The official server suites against the board, with the host's script, the host's gate and the host's expectations."""

import subprocess
import sys

from device import ROOT, Board, build


def main():
    image = build("ethernet", "fixture")
    with Board(image) as board:
        done = subprocess.run([ROOT / "tests/conformance/run.sh", "server", "--url", board.url, *sys.argv[1:]])
        if board.process.poll() is not None or board.starts() != 1:
            print(f"FAIL the board has ended or started anew: {board.log()}")
            return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
