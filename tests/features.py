#!/usr/bin/env python3
"""Checks published packages with few sets of their features: none, each alone, and each two of them on and off in all
four ways; with --three, each three of them in all eight ways, which takes three times as long.

All sets would be some 1,000 for the core alone; what breaks is nearly always what one feature needs of another, or of one
that is off. The features are read from the manifests, so a new one needs no line here. A warning is a failure.
  tests/features.py [--list] [--three] [PACKAGE..]     default: all; --list shows the sets and checks nothing
"""
import itertools
import json
import subprocess
import sys


def closed(features, chosen):
    """The features with all that they imply within the package."""
    todo, have = list(chosen), set()
    while todo:
        name = todo.pop()
        if name in features and name not in have:
            have.add(name)
            todo += features[name]
    return frozenset(have)


def covering(features, width):
    """Sets of features: none, each alone, and for each `width` of them all ways that their implications allow."""
    names = sorted(features)
    every = {closed(features, some) for n in range(len(names) + 1) for some in itertools.combinations(names, n)}
    every = sorted(every, key=lambda some: (len(some), sorted(some)))
    covers = {
        some: {tuple((name, name in some) for name in few) for few in itertools.combinations(names, min(width, len(names)))}
        for some in every
    }
    missing = set().union(*covers.values())
    chosen = list(dict.fromkeys([frozenset()] + [closed(features, [name]) for name in names]))
    for some in chosen:
        missing -= covers[some]
    while missing:
        chosen.append(max(every, key=lambda some: len(covers[some] & missing)))
        missing -= covers[chosen[-1]]
    return chosen


def main():
    arguments = sys.argv[1:]
    listing, width = "--list" in arguments, 3 if "--three" in arguments else 2
    wanted = [word for word in arguments if not word.startswith("--")]
    metadata = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], check=True, capture_output=True)
    failed = total = 0
    for package in json.loads(metadata.stdout)["packages"]:
        name = package["name"]
        features = {key: value for key, value in package["features"].items() if key != "default"}
        if package["publish"] is not None or not features or wanted and name not in wanted:
            continue
        for some in covering(features, width):
            total += 1
            words = ",".join(sorted(some))
            print(f"features: {name} {words or 'none'}", flush=True)
            if listing:
                continue
            check = ["cargo", "check", "-q", "-p", name, "--no-default-features", "--features", words]
            done = subprocess.run(check, capture_output=True, text=True)
            if done.returncode != 0 or "warning:" in done.stderr:
                failed += 1
                print(done.stderr)
    print(f"features: {total} sets, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
