#!/usr/bin/env python3
"""How much a person has to read: code lines, public items, features, `cfg`s, files and words, against a bound for each.

A code line is one with code on it: no comment, no blank line, no unit test. Published is `src` and `adapters/*/src`.
A bound is what was reached; it goes down with the number, and up only with a reason in the commit.

usage: tests/size.py             # the table; fails where a bound is passed
       tests/size.py --packages  # code lines, public types and functions of each package
       tests/size.py --files     # code lines of each published file, the largest first
"""
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent

BOUNDS = {
    "code lines, core": 21586,
    "code lines, http": 11241,
    "code lines, published": 63310,
    "public functions": 1913,
    "public types": 441,
    "feature entries": 40,
    "cfgs": 472,
    "tracked files": 2182,
    "words for users": 25208,
}

# A comment, a string or a character. Strings stay as one word, with their lines.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']*|[^\\'])'""", re.S)
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]|#\[cfg\(all\([^\]]*\btest\b[^\]]*\]")
# The functions of builders, which macros write; those of `options!` are its fields.
SETTERS = re.compile(r"^ *(?:\w+::)*(?:const_)?setters! \{$(.*?)^ *\}$", re.M | re.S)
SETTER = re.compile(r"^ *\w+\(.*\) => ", re.M)
PUBLIC = re.compile(r"^\s*pub (?:const |async |unsafe |extern \"\w*\" )*(struct|enum|union|fn)\s+\w+", re.M)


def without_comments(text):
    def kept(match):
        lines = "\n" * match[0].count("\n")
        return lines if match[0].startswith("/") else f'"{lines}"'

    return TOKEN.sub(kept, text)


def without_tests(text):
    """Cuts each item behind a `#[cfg(test)]`: to its closing brace, or to its semicolon."""
    while test := TEST.search(text):
        depth, end = 0, test.end()
        for end in range(test.end(), len(text)):
            depth += (text[end] in "([{") - (text[end] in ")]}")
            if depth < 0 or depth == 0 and text[end] in "};,":
                break
        text = text[: test.start()] + text[end + 1 :]
    return text


def sources(package):
    return [file for file in sorted((package / "src").rglob("*.rs")) if file.name != "tests.rs" and "tests" not in file.parts]


def code(file):
    return without_tests(without_comments(file.read_text()))


def lines(text):
    return sum(1 for line in text.split("\n") if line.strip())


def measure():
    """The numbers of the table, those of each package, and those of each file."""
    packages = [ROOT, *sorted(manifest.parent for manifest in ROOT.glob("adapters/*/Cargo.toml"))]
    files, table, features, cfgs = {}, {}, 0, 0
    for package in packages:
        name = "core" if package == ROOT else package.name
        texts = {file: code(file) for file in sources(package)}
        files |= {file.relative_to(ROOT): lines(text) for file, text in texts.items()}
        kinds = [kind for text in texts.values() for kind in PUBLIC.findall(text)]
        blocks = [block for text in texts.values() for block in SETTERS.findall(text)]
        functions = kinds.count("fn") + sum(len(SETTER.findall(block)) for block in blocks)
        table[name] = (sum(map(lines, texts.values())), len(kinds) - kinds.count("fn"), functions)
        features += len(tomllib.loads((package / "Cargo.toml").read_text()).get("features", {}))
        cfgs += sum(text.count("#[cfg(") for text in texts.values())
    readers = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *ROOT.glob("docs/*.md"), *ROOT.glob("adapters/*/README.md")]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    numbers = {
        "code lines, core": table["core"][0],
        "code lines, http": table["http"][0],
        "code lines, published": sum(row[0] for row in table.values()),
        "public functions": sum(row[2] for row in table.values()),
        "public types": sum(row[1] for row in table.values()),
        "feature entries": features,
        "cfgs": cfgs,
        "tracked files": tracked.count("\n"),
        # The bars of tables are no words.
        "words for users": sum(any(map(str.isalnum, word)) for file in readers for word in file.read_text().split()),
    }
    return numbers, table, files


def main(arguments):
    numbers, table, files = measure()
    if "--packages" in arguments:
        for name, row in table.items():
            print(f"{name:10} {row[0]:7,} lines {row[1]:4} types {row[2]:5} functions")
    if "--files" in arguments:
        for file, count in sorted(files.items(), key=lambda entry: -entry[1]):
            print(f"{count:5} {file}")
    passed = [name for name, bound in BOUNDS.items() if numbers[name] > bound]
    for name, bound in BOUNDS.items():
        print(f"{name:22} {numbers[name]:7,} of at most {bound:7,}{'  TOO MUCH' if name in passed else ''}")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
