#!/usr/bin/env python3
"""The crates in the normal trees of the adapters, without authorization and with it: none of authorization's crates in the
first, and as many as docs/authorization.md says in both.

    trees.py     compares; exits with 1 where something differs
"""

import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(__file__), "..")

# What brings signatures and hashes along.
OF_AUTHORIZATION = {"mcp-sansio-auth", "sha2", "hmac", "digest", "p256", "ecdsa", "elliptic-curve"}

# The row in the page, the package, its features without authorization, and what adds it.
CHECKS = "mcp-sansio-auth/resource-server"
ROWS = [
    ("`mcp-sansio`", "mcp-sansio", [], []),
    ("`mcp-sansio-http`", "mcp-sansio-http", [], ["mcp-sansio-http/resource-server", CHECKS]),
    ("`mcp-sansio-blocking`, a server", "mcp-sansio-blocking", ["http"], [CHECKS]),
    ("`mcp-sansio-blocking`, a client", "mcp-sansio-blocking", ["client", "http"], ["mcp-sansio-blocking/auth"]),
    ("`mcp-sansio-tower`, a server", "mcp-sansio-tower", [], [CHECKS]),
    ("`mcp-sansio-smol`, a server", "mcp-sansio-smol", ["http"], [CHECKS]),
    ("`mcp-sansio-smol`, a client", "mcp-sansio-smol", ["client", "http"], ["mcp-sansio-smol/auth"]),
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
    page = open(os.path.join(ROOT, "docs/authorization.md")).read().splitlines()
    wrong = []
    for title, package, features, added in ROWS:
        without = tree([package], [f"{package}/{feature}" for feature in features])
        if found := without & OF_AUTHORIZATION:
            wrong.append(f"{title}: {', '.join(sorted(found))} without authorization")
        numbers = [len(without), "", ""]
        if added:
            packages, features = [package, "mcp-sansio-auth"], [f"{package}/{feature}" for feature in features] + added
            whole = [tree(packages, features + more) for more in ([], ["mcp-sansio-auth/es256"])]
            if not whole[0] & OF_AUTHORIZATION:
                wrong.append(f"{title}: no crate of authorization with it, so the check above says nothing")
            numbers[1:] = map(len, whole)
        row = f"| {title} | {' | '.join(map(str, numbers))} |".replace("  ", " ")
        print(row)
        if row not in page:
            wrong.append(f"docs/authorization.md has another row for {title}")
    print("\n".join(wrong) if wrong else "trees: all as in docs/authorization.md")
    return 1 if wrong else 0


sys.exit(main())
