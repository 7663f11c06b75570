#!/usr/bin/env python3
"""The crates in the normal trees of the adapters, without authorization and with it: none of authorization's crates in the
first, and as many in both as are written here.

    trees.py     compares; exits with 1 where something differs
"""

import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(__file__), "..")

# What brings signatures and hashes along.
OF_AUTHORIZATION = {"mcp-sansio-auth", "sha2", "hmac", "digest", "p256", "ecdsa", "elliptic-curve"}

# The package and its features without authorization, the features that it has beside `mcp-sansio-auth` (`None`: they are never
# together), and the crates: without, with it, and with ES256 in software.
ROWS = [
    ("mcp-sansio", [], None, [2]),
    ("mcp-sansio-http", [], ["mcp-sansio-http/resource-server"], [4, 15, 32]),
    ("mcp-sansio-blocking", ["http"], [], [9, 20, 37]),
    ("mcp-sansio-blocking", ["client", "http"], ["mcp-sansio-blocking/tls"], [10, 32, 48]),
    ("mcp-sansio-tower", [], [], [17, 27, 44]),
    ("mcp-sansio-smol", ["http"], [], [30, 40, 57]),
    ("mcp-sansio-smol", ["client", "http"], ["mcp-sansio-smol/tls"], [36, 55, 71]),
]


def tree(packages, features):
    """The names of all crates that these packages are built of, themselves included."""
    command = "cargo tree --quiet --locked -e normal --prefix none --target x86_64-unknown-linux-gnu".split()
    command += [word for package in packages for word in ("-p", package)] + ["--features", ",".join(features)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def main():
    wrong = []
    for package, features, added, expected in ROWS:
        title = " ".join([package, *features])
        without = tree([package], [f"{package}/{feature}" for feature in features])
        if found := without & OF_AUTHORIZATION:
            wrong.append(f"{title}: {', '.join(sorted(found))} without authorization")
        numbers = [len(without)]
        if added is not None:
            packages, features = [package, "mcp-sansio-auth"], [f"{package}/{feature}" for feature in features] + added
            whole = [tree(packages, features + more) for more in ([], ["mcp-sansio-auth/es256"])]
            if not whole[0] & OF_AUTHORIZATION:
                wrong.append(f"{title}: no crate of authorization with it, so the check above says nothing")
            numbers += map(len, whole)
        print(f"{title}: {numbers}")
        if numbers != expected:
            wrong.append(f"{title}: {numbers} crates, and {expected} are written in tests/trees.py")
    print("\n".join(wrong) if wrong else "trees: as many crates as before")
    return 1 if wrong else 0


sys.exit(main())
