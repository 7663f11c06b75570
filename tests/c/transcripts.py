#!/usr/bin/env python3
"""What clients say in the repository's transcripts, to a C server and to a Rust server with the same service: both answer the same
bytes: transcripts.py C RUST"""

import difflib
import pathlib
import subprocess
import sys

TRANSCRIPTS = pathlib.Path(__file__).parents[1] / "protocol" / "transcripts"


def main():
    results = 0
    for path in sorted(TRANSCRIPTS.glob("*/*.jsonl")):
        said = b"".join(line[2:] + b"\n" for line in path.read_bytes().splitlines() if line.startswith(b"> "))
        runs = [subprocess.run([program], input=said, capture_output=True, timeout=60) for program in sys.argv[1:3]]
        for run in runs:
            if run.returncode or run.stderr:
                sys.exit(f"{path}: {run.args[0]} ended with {run.returncode}: {run.stderr.decode()}")
        ours, theirs = (run.stdout.decode().splitlines() for run in runs)
        if runs[0].stdout != runs[1].stdout:
            sys.exit(f"{path}:\n" + "\n".join(difflib.unified_diff(theirs, ours, "Rust", "C", lineterm="", n=0)))
        results += runs[0].stdout.count(b'"result"')
    if results < 300:
        sys.exit(f"transcripts.py: only {results} results")
    print(f"transcripts.py: {results} results, the same bytes")


if __name__ == "__main__":
    main()
