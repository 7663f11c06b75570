#!/usr/bin/env python3
"""The official server suites through the bridge, in front of the conformance fixture: suites.py [http|stdio|board]...

`http`: the fixture is behind by its URL. `stdio`: a second bridge is between both, so what the suites send passes a pipe too; the
suites themselves speak HTTP alone. `board`: the fixture of the firmware `ethernet`, in QEMU."""

import contextlib
import subprocess
import sys
from pathlib import Path

from programs import BRIDGE, ROOT, Front, HttpServer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "firmware"))
from device import Board, build  # noqa: E402

RUNS = ["server-alpha-2025-06-18", "server-alpha-2025-11-25", "server-alpha-2026-07-28"]

# What does not succeed through a bridge, and why.
FAILS = {
    # The fixture closes the stream in the middle of a call, and takes the client back. That is between it and the bridge.
    ("server-alpha-2025-11-25", "server-sse-polling"),
}


@contextlib.contextmanager
def fixture(behind):
    """The URL of what is behind."""
    if behind == "board":
        with Board(build("ethernet", "fixture")) as board:
            yield board.url
        return
    server = HttpServer()
    try:
        yield server.url
    finally:
        server.stop()


def through(behind, runs):
    """Runs suites, and compares the scenarios that fail."""
    with fixture(behind) as url:
        front = Front(*(["--", BRIDGE, url] if behind == "stdio" else [url]))
        try:
            command = [sys.executable, str(ROOT / "tests/conformance/runner.py"), "server", "--url", front.url]
            chosen = [word for run in runs for word in ("--run", run)]
            told = subprocess.run(command + chosen, capture_output=True, text=True, timeout=300).stdout
        finally:
            front.stop()
    # "FAIL run scenario", and "FAIL run: ..." for fewer checks than without a bridge.
    fails = {tuple(line.split()[1:]) for line in told.splitlines() if line.startswith("FAIL ") and ":" not in line}
    done = [line for line in told.splitlines() if "scenarios," in line]
    assert len(done) == len(runs) and fails == {fail for fail in FAILS if fail[0] in runs}, told
    for line in done:
        print(f"suites.py: {behind}: {line}", flush=True)


for behind in sys.argv[1:] or ["http", "stdio"]:
    through(behind, RUNS)
