#!/usr/bin/env python3
"""Keeps a small corpus of each target: the inputs with a name, and 28 others, those that reach the most code.

    fuzz/minimise.py [--from DIR] [TARGET...]    # takes the inputs of DIR/TARGET too, such as fuzz/found

Inputs with a name that is no hash have found something, and stay. Of the others, libFuzzer tells the code that no shorter one
reaches; those with the most of it stay.
"""
import argparse
import collections
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

FUZZ = pathlib.Path(__file__).resolve().parent
MOST = 28


def reached(program, target, folders):
    """By input, how much it reaches that no shorter one does, in libFuzzer's count."""
    with tempfile.TemporaryDirectory() as new, tempfile.NamedTemporaryFile() as control:
        arguments = ["-merge=1", "-use_counters=0", "-timeout=60", "-max_len=4096", f"-merge_control_file={control.name}", new, *folders]
        environment = {**os.environ, "FUZZ_TARGET": target}
        subprocess.run([program, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = pathlib.Path(control.name).read_text().split("\n")
    files = lines[2 : 2 + int(lines[0])]
    counts = collections.Counter()
    for words in map(str.split, lines):
        if words[:1] == ["FT"]:
            counts[pathlib.Path(files[int(words[1])])] += len(words) - 2
    return counts


def is_named(file):
    return not re.fullmatch("[0-9a-f]{40}", file.name)


def chosen(corpus, counts):
    named = [file for file in corpus.iterdir() if is_named(file)]
    others = [file for file, count in counts.items() if count and not is_named(file)]
    return named + sorted(others, key=lambda file: (-counts[file], file.name))[:MOST]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="more", type=pathlib.Path, help="a folder with inputs of each target")
    parser.add_argument("targets", nargs="*", help="default: all")
    options = parser.parse_args()
    program = subprocess.run([FUZZ / "run.sh", "--build"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    for target in options.targets or sorted(folder.name for folder in (FUZZ / "corpus").iterdir()):
        corpus = FUZZ / "corpus" / target
        folders = [folder.resolve() for folder in (corpus, *([options.more / target] if options.more else [])) if folder.is_dir()]
        before, kept = len(list(corpus.iterdir())), chosen(corpus, reached(program, target, folders))
        contents = {file.name if is_named(file) else hashlib.sha1(file.read_bytes()).hexdigest(): file.read_bytes() for file in kept}
        shutil.rmtree(corpus)
        corpus.mkdir()
        for name, content in contents.items():
            (corpus / name).write_bytes(content)
        print(f"{target}: {before} inputs before, {len(contents)} now")


if __name__ == "__main__":
    main()
