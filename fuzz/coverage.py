#!/usr/bin/env python3
"""Prints for each fuzz target the files of the library that it is meant for, with the regions and lines that its committed corpus reaches.

    fuzz/coverage.py                       # all targets; some minutes for the build, then seconds
    fuzz/coverage.py tokens follow         # some
    fuzz/coverage.py --missed follow       # the lines that are not reached, too
    fuzz/coverage.py --together            # all targets as one: the lines that none of them reaches
    fuzz/coverage.py --corpus DIR tokens   # with the inputs in DIR/tokens as well
    fuzz/coverage.py --page                # the table of fuzz/README.md

It needs nightly with llvm-tools (rustup component add --toolchain nightly llvm-tools), and builds in target/coverage of the repository.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parent
BUILD = ROOT / "target" / "coverage"

# The files that a target is meant for: paths, or the beginnings of paths. A name after ! is left out.
MEANT = {
    "line": ["src/frame/"],
    "scan": ["src/json/scan.rs", "src/json/raw.rs", "src/json/run.rs", "src/json/utf8.rs"],
    "envelope": ["src/rpc.rs"],
    "server_ops": ["src/line_server.rs", "src/server/", "src/service/", "!src/service/extension.rs", "!src/service/dynamic", "!src/service/relay.rs",
                   "!src/server/topics.rs", "!src/service/owned"],
    "http": ["adapters/http/src/endpoint/", "!adapters/http/src/endpoint/fleet", "!adapters/http/src/endpoint/follow.rs",
             "!adapters/http/src/endpoint/copies.rs", "!adapters/http/src/endpoint/sealed.rs"],
    "fleet": ["adapters/http/src/endpoint/fleet", "adapters/http/src/endpoint/follow.rs", "adapters/http/src/endpoint/copies.rs",
              "adapters/http/src/endpoint/sealed.rs", "adapters/http/src/fleet/", "!adapters/http/src/fleet/memory.rs"],
    "http_wire": ["adapters/http/src/http1/"],
    "sse": ["adapters/http/src/sse/"],
    "http_client": ["adapters/http/src/client/"],
    "params": ["adapters/http/src/client/params.rs"],
    "arguments": ["adapters/http/src/endpoint/header_check.rs"],
    "old_tasks": ["adapters/tasks/src/legacy.rs", "adapters/tasks/src/waiters.rs", "adapters/tasks/src/response.rs"],
    "client": ["src/client/", "!src/client/views", "!src/client/form.rs", "!src/client/cache.rs"],
    "form": ["src/client/form.rs"],
    "cache": ["src/client/cache.rs"],
    "auth": ["adapters/auth/src/", "!adapters/auth/src/resource_server.rs", "!adapters/auth/src/jose", "!adapters/auth/src/challenge.rs"],
    "challenge": ["adapters/auth/src/challenge.rs"],
    "tokens": ["adapters/auth/src/resource_server.rs", "adapters/auth/src/jose", "adapters/auth/src/dpop.rs"],
    "follow": ["adapters/tasks/src/client/"],
    "receiver": ["adapters/tasks/src/receiver.rs"],
    "tasks": ["adapters/tasks/src/", "!adapters/tasks/src/client/", "!adapters/tasks/src/receiver.rs", "!adapters/tasks/src/elsewhere.rs",
              "!adapters/tasks/src/legacy.rs", "!adapters/tasks/src/waiters.rs", "!adapters/tasks/src/response.rs"],
    "skills": ["adapters/skills/src/"],
    "schema": ["adapters/host/src/schema.rs"],
}


def is_meant(target, path):
    rules = MEANT[target]
    return any(path.startswith(rule) for rule in rules) and not any(path.startswith(rule[1:]) for rule in rules if rule[0] == "!")


def tool(name):
    sysroot = subprocess.check_output(["rustc", "+nightly", "--print", "sysroot"], text=True).strip()
    found = list(pathlib.Path(sysroot).glob(f"lib/rustlib/*/bin/{name}"))
    if not found:
        sys.exit("no llvm-tools: rustup component add --toolchain nightly llvm-tools")
    return found[0]


def build():
    flags = {"RUSTFLAGS": "-C instrument-coverage", "CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_TARGET_DIR": str(BUILD)}
    subprocess.run(["cargo", "+nightly", "build", "--quiet", "--example", "replay"], cwd=FUZZ, env=os.environ | flags, check=True)
    return BUILD / "debug" / "examples" / "replay"


def replay(program, target, corpus):
    """Replays a corpus; returns its profile and the number of inputs."""
    data = BUILD / f"{target}.profdata"
    folders = [FUZZ / "corpus" / target] + [folder / target for folder in corpus]
    files = sorted(str(file) for folder in folders if folder.exists() for file in folder.iterdir())
    profile = {"LLVM_PROFILE_FILE": str(BUILD / "one.profraw")}
    profiles = []
    # So many names fit into a command.
    for first in range(0, len(files), 2000):
        subprocess.run([program, target, *files[first : first + 2000]], env=os.environ | profile, check=True)
        profiles.append((BUILD / "one.profraw").rename(BUILD / f"{first}.profraw"))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *profiles, "-o", data], check=True)
    return data, len(files)


def export(program, data, *arguments):
    return subprocess.check_output([tool("llvm-cov"), "export", f"-instr-profile={data}", *arguments, program], text=True)


def together(program, targets):
    """Prints the lines that are meant for one of these targets and reached by none of them."""
    data = BUILD / "together.profdata"
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *[BUILD / f"{target}.profdata" for target in targets], "-o", data], check=True)
    print("together:")
    missed(export(program, data, "-format=lcov"), targets)


def missed(lcov, targets):
    """Prints the lines without a count, by file."""
    path, lines = None, []
    for line in lcov.splitlines():
        if line.startswith("SF:"):
            path, lines = line[3:].removeprefix(f"{ROOT}/"), []
        elif line.startswith("DA:") and line.endswith(",0"):
            lines.append(int(line[3:].split(",")[0]))
        elif line == "end_of_record" and lines and any(is_meant(target, path) for target in targets):
            parts = []
            for number in lines:
                if parts and parts[-1][1] == number - 1:
                    parts[-1][1] = number
                else:
                    parts.append([number, number])
            print(f"  {path}: " + ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--missed", action="store_true", help="print the lines that are not reached")
    parser.add_argument("--together", action="store_true", help="print the lines that none of the targets reaches")
    parser.add_argument("--corpus", action="append", default=[], type=pathlib.Path, help="a folder with further inputs, by target")
    parser.add_argument("--page", action="store_true", help="write the table of fuzz/README.md")
    options = parser.parse_args()
    program = build()
    rows = []
    for target in options.targets or list(MEANT):
        data, inputs = replay(program, target, options.corpus)
        text = export(program, data, "-summary-only")
        total = {"lines": [0, 0], "regions": [0, 0]}
        found = []
        for file in json.loads(text)["data"][0]["files"]:
            path = file["filename"].removeprefix(f"{ROOT}/")
            if is_meant(target, path):
                for kind, sums in total.items():
                    sums[0] += file["summary"][kind]["covered"]
                    sums[1] += file["summary"][kind]["count"]
                found.append((path, file["summary"]["lines"]["percent"], file["summary"]["regions"]["percent"]))
        percent = {kind: 100 * covered / max(count, 1) for kind, (covered, count) in total.items()}
        print(f"{target}: {inputs} inputs, {percent['lines']:.1f} % of {total['lines'][1]} lines, {percent['regions']:.1f} % of the regions")
        for path, lines, regions in found:
            print(f"  {lines:5.1f} % {regions:5.1f} %  {path}")
        rows.append((target, inputs, total["lines"][1], percent["lines"], percent["regions"]))
        if options.missed:
            missed(export(program, data, "-format=lcov"), [target])
    if options.together:
        together(program, [row[0] for row in rows])
    if options.page:
        page = FUZZ / "README.md"
        head = "| target | inputs | lines meant | lines | regions |\n|---|---:|---:|---:|---:|\n"
        table = head + "".join(f"| `{name}` | {inputs} | {count:,} | {lines:.1f} % | {regions:.1f} % |\n" for name, inputs, count, lines, regions in rows)
        text = re.sub(r"\| target \| inputs .*?\n\n", lambda _: table + "\n", page.read_text(), flags=re.S)
        page.write_text(text)


if __name__ == "__main__":
    main()
