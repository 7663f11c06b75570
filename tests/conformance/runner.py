"""Runs the official suites against a server and has gate.py judge every check."""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import gate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = HERE / ".out"
EXPECTED = HERE / "expected.json"
ALLOWED = HERE / "allowed.txt"

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
REQUIREMENTS = ["2025-11-25", "2026-07-28"]

# A run: its name, which suite, what it is told.
SERVER_RUNS = (
    [(f"alpha-{v}", "alpha", ["--suite", "all", "--spec-version", v]) for v in REVISIONS]
    + [(f"alpha-requirements-{v}", "alpha", ["--requirements", v]) for v in REQUIREMENTS]
    + [("alpha-all", "alpha", ["--suite", "all"]), ("latest-all", "latest", ["--suite", "all"])]
)

# How many checks succeed with a server that is known to be right (rmcp 3.1.4, without what allowed.txt excuses): so
# that expected.json can't be recorded from less.
LEAST = {
    "alpha-2025-03-26": 3,
    "alpha-2025-06-18": 56,
    "alpha-2025-11-25": 83,
    "alpha-2026-07-28": 153,
    "alpha-requirements-2025-11-25": 83,
    "alpha-requirements-2026-07-28": 153,
    "alpha-all": 180,
    "latest-all": 44,
}

# Seconds. A server that never answers costs 0.1.16 a minute a scenario.
RUN_LIMIT = 300
START_LIMIT = 20
STOP_LIMIT = 5


def node() -> Path:
    for path in sorted((HERE / "node/node_modules").glob("node-*/bin/node")):
        return path
    found = shutil.which("node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    if int((re.match(r"v(\d+)", version) or ["", "0"])[1]) < 22:
        sys.exit(f"conformance: no Node 22 for this machine; found {version.strip() or 'none'}")
    return Path(found)


def suite(which: str, words: list[str], limit: float, log=None) -> tuple[int | None, str]:
    """Runs a suite's program in a group of its own; its exit code, None if it had to be ended, and what it printed."""
    program = HERE / which / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    environment = dict(os.environ, NO_COLOR="1", PATH=f"{node().parent}{os.pathsep}{os.environ['PATH']}")
    process = subprocess.Popen(
        [node(), program, *words],
        stdin=subprocess.DEVNULL,
        stdout=log or subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=limit)
        return process.returncode, printed or ""
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def listed(which: str, words: list[str]) -> list[str]:
    """The names of the scenarios that a run consists of, as far as the suite tells."""
    filters = [word for word in words if word not in ("--suite", "all")]
    code, printed = suite(which, ["list", "--server", *filters], 60)
    if code != 0:
        sys.exit(f"conformance: `list` of {which} failed: {printed}")
    # A requirement set lists the scenarios for clients too.
    of_servers = re.search(r"^Server scenarios.*?\n((?:  .*\n|\n)*)", printed + "\n", re.M)
    return re.findall(r"^  - (\S+)", of_servers[1] if of_servers else "", re.M)


class Server:
    """Our fixture, for as long as the suites run."""

    def __init__(self, command: list[str]):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        OUT.mkdir(exist_ok=True)
        self.log = open(OUT / "server.log", "w")
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        deadline = time.monotonic() + START_LIMIT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    sys.exit(f"conformance: {shlex.join(command)} does not listen; see {OUT / 'server.log'}")
                time.sleep(0.05)

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> str | None:
        """Asks it to end; what was wrong with how it did."""
        if not self.alive():
            return f"the server ended by itself with {self.process.returncode}"
        self.process.terminate()
        try:
            self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"the server did not end within {STOP_LIMIT} s of SIGTERM"
        return None


def fixture() -> list[str]:
    """The command of our server, built if nobody says which one to take."""
    if command := os.environ.get("CONFORMANCE_SERVER"):
        return shlex.split(command)
    build = ["cargo", "build", "--release", "--quiet", "--workspace", "--bin", "conformance-server"]
    if subprocess.run(build, cwd=ROOT, stdin=subprocess.DEVNULL).returncode:
        sys.exit("conformance: the fixture does not build")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(ROOT / target / "release/conformance-server")]


def run_server(arguments) -> int:
    rules = gate.read_rules(ALLOWED)
    known = json.loads(arguments.expected.read_text()) if arguments.expected.exists() else {}
    runs = [run for run in SERVER_RUNS if not arguments.run or run[0] in arguments.run]
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    server = None if arguments.url else Server(fixture())
    url = arguments.url or server.url
    passed = failed = excused = 0
    fresh = {}

    def fail(words: str) -> None:
        nonlocal failed
        failed += 1
        print(f"FAIL {words}", flush=True)

    for name, which, words in runs:
        begun = time.monotonic()
        names = listed(which, words)
        with open(OUT / f"{name}.log", "w") as log:
            code, _ = suite(which, ["server", "--url", url, *words, "-o", str(OUT / name)], RUN_LIMIT, log)
        expected = None if arguments.record else known.get(name, {})
        verdicts = gate.judge_run(name, OUT / name, names, expected, rules)
        bad = [verdict for verdict in verdicts if verdict.problems]
        for verdict in bad:
            fail(f"{name} {verdict.scenario}")
            for problem in verdict.problems:
                print(f"       {problem}")
        good = [verdict for verdict in verdicts if not verdict.problems and not verdict.excused]
        passed += len(good)
        excused += sum(verdict.excused for verdict in verdicts)
        fresh[name] = {verdict.scenario: dict(sorted(verdict.successes.items())) for verdict in good}
        if code is None:
            fail(f"{name}: not done after {RUN_LIMIT} s")
        elif code and not any(verdict.failures for verdict in verdicts):
            fail(f"{name}: the suite ended with {code}, see {OUT / name}.log")
        if not names:
            fail(f"{name}: the suite lists no scenario")
        if server and not server.alive():
            fail(f"{name}: the server has ended with {server.process.returncode}, see {OUT / 'server.log'}")
            break
        checks = sum(sum(verdict.successes.values()) for verdict in verdicts if not verdict.excused)
        if checks < LEAST[name]:
            fail(f"{name}: only {checks} checks succeeded, at least {LEAST[name]} do with a server that is right")
        seconds = time.monotonic() - begun
        print(f"{name}: {len(good)} of {len(verdicts)} scenarios, {checks} checks succeeded, {seconds:.1f} s", flush=True)
    if server and server.alive() and (wrong := server.stop()):
        fail(wrong)
    if arguments.record:
        arguments.expected.write_text(json.dumps(known | fresh, indent=1, sort_keys=True) + "\n")
        print(f"recorded {arguments.expected}")
    elif not arguments.run:
        for rule in rules:
            if not rule.used:
                print(f"note: allowed.txt allows what no longer happens: {rule.run} | {rule.scenario} | {rule.check}")
    if excused:
        print(f"{excused} excused by allowed.txt")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("server", help="the suites play the client")
    server.add_argument("--url", help="of a server that is there already, on 127.0.0.1")
    server.add_argument("--run", action="append", choices=[run[0] for run in SERVER_RUNS], help="only this one")
    server.add_argument("--record", action="store_true", help="write down which checks succeed: expected.json")
    server.add_argument("--expected", type=Path, default=EXPECTED, help="the checks that have to succeed")
    return run_server(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
