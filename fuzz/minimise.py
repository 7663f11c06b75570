#!/usr/bin/env python3
"""Keeps a small corpus of each target: the inputs with a name, and those that reach the most code, 40 in all.

    fuzz/minimise.py [--from DIR] [TARGET...]    # takes the inputs of DIR/TARGET too, such as fuzz/found

Inputs with a name that is no hash have found something, and stay. The others are chosen one after the other, each for the
code that those before it do not reach; of two that reach as much, the shorter one.
"""
import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile

FUZZ = pathlib.Path(__file__).resolve().parent
MOST = 40


def reached(target, folders):
    """What each input reaches, in libFuzzer's numbers, by its file."""
    with tempfile.TemporaryDirectory() as new, tempfile.NamedTemporaryFile() as control:
        arguments = ["-merge=1", "-use_counters=0", "-timeout=60", "-max_len=4096", f"-merge_control_file={control.name}", new, *folders]
        run = ["cargo", "+nightly", "fuzz", "run", "--features", "libfuzzer", target, "--", *arguments]
        subprocess.run(run, cwd=FUZZ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = pathlib.Path(control.name).read_text().split("\n")
    files = lines[2 : 2 + int(lines[0])]
    return {pathlib.Path(files[int(number)]): {*marks.split()} for number, marks in re.findall(r"^FT (\d+) (.*)$", "\n".join(lines), re.M)}


def is_named(file):
    return not re.fullmatch("[0-9a-f]{40}", file.name)


def chosen(inputs):
    kept = [file for file in inputs if is_named(file)]
    seen = set().union(*(inputs[file] for file in kept))
    while len(kept) < MOST:
        best = max(inputs, key=lambda file: (len(inputs[file] - seen), -file.stat().st_size, file.name))
        if not inputs[best] - seen:
            break
        kept.append(best)
        seen |= inputs[best]
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="more", type=pathlib.Path, help="a folder with inputs of each target")
    parser.add_argument("targets", nargs="*", help="default: all")
    options = parser.parse_args()
    for target in options.targets or sorted(folder.name for folder in (FUZZ / "corpus").iterdir()):
        corpus = FUZZ / "corpus" / target
        folders = [folder.resolve() for folder in (corpus, *([options.more / target] if options.more else [])) if folder.is_dir()]
        before, kept = len(list(corpus.iterdir())), chosen(reached(target, folders))
        contents = {file.name if is_named(file) else hashlib.sha1(file.read_bytes()).hexdigest(): file.read_bytes() for file in kept}
        shutil.rmtree(corpus)
        corpus.mkdir()
        for name, content in contents.items():
            (corpus / name).write_bytes(content)
        print(f"{target}: {before} inputs before, {len(contents)} now")


if __name__ == "__main__":
    main()
