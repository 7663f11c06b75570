"""Runs the official suites against a server or a client and has gate.py judge every check."""

import argparse
import fnmatch
import functools
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
from concurrent.futures import ThreadPoolExecutor
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
RUNS = (
    [(f"alpha-{v}", "alpha", ["--suite", "all", "--spec-version", v]) for v in REVISIONS]
    + [(f"alpha-requirements-{v}", "alpha", ["--requirements", v]) for v in REQUIREMENTS]
    + [("alpha-all", "alpha", ["--suite", "all"]), ("latest-all", "latest", ["--suite", "all"])]
)
SERVER_RUNS = [(f"server-{name}", which, words) for name, which, words in RUNS]
# Without those whose scenarios another run has at the same revision: `alpha-all` those of 2025-11-25, the requirements of 2026-07-28
# those of that revision.
SHORT = [
    "server-alpha-2025-03-26",
    "server-alpha-2025-06-18",
    "server-alpha-requirements-2026-07-28",
    "server-alpha-all",
    "server-latest-all",
]
CLIENT_RUNS = [(f"client-{name}", which, words) for name, which, words in RUNS]

# Our other client: the same program with another option, which other clients may not have.
SMOL_RUNS = [(f"client-smol-{v}", "alpha", ["--suite", "all", "--spec-version", v]) for v in REVISIONS]

# Each scenario alone: only then the suites look at how a client ends. Of those that are not excused as a whole.
ALONE_RUNS = [
    (f"client-alone-{v}", "alpha", ["--spec-version", v]) for v in REVISIONS
] + [("client-alone-latest", "latest", [])]

# Scenarios that no revision lists, alone at one revision: their pattern, and the words that make the suite run them there.
FORCED_RUNS = [
    ("client-alone-skills-2025-11-25", "alpha", [], "sep-2640-*"),
    ("client-alone-skills-2026-07-28", "alpha", ["--spec-version", "2026-07-28", "--force"], "sep-2640-*"),
]

# How many checks succeed where all is right, without what allowed.txt excuses: so that expected.json can't be recorded
# from less. Of a server, as many as with rmcp 3.1.4; of a client, counted in the scenarios.
LEAST = {
    "server-alpha-2025-03-26": 3,
    "server-alpha-2025-06-18": 56,
    "server-alpha-2025-11-25": 83,
    "server-alpha-2026-07-28": 153,
    "server-alpha-requirements-2025-11-25": 83,
    "server-alpha-requirements-2026-07-28": 197,
    "server-alpha-all": 269,
    "server-latest-all": 44,
    "client-alpha-2025-03-26": 19,
    "client-alpha-2025-06-18": 60,
    "client-alpha-2025-11-25": 249,
    "client-alpha-2026-07-28": 413,
    "client-alpha-requirements-2025-11-25": 308,
    "client-alpha-requirements-2026-07-28": 470,
    "client-alpha-all": 502,
    "client-latest-all": 306,
    "client-smol-2025-03-26": 19,
    "client-smol-2025-06-18": 60,
    "client-smol-2025-11-25": 249,
    "client-smol-2026-07-28": 413,
    "client-alone-2025-03-26": 19,
    "client-alone-2025-06-18": 60,
    "client-alone-2025-11-25": 249,
    "client-alone-2026-07-28": 413,
    "client-alone-latest": 309,
    "client-alone-skills-2025-11-25": 4,
    "client-alone-skills-2026-07-28": 4,
}

# Seconds. A server that never answers costs 0.1.16 a minute a scenario.
RUN_LIMIT = 300
ALONE_LIMIT = 60
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


def scope(words: list[str]) -> tuple[str]:
    """What of a run's words says which scenarios there are."""
    return tuple(word for word in words if word not in ("--suite", "all"))


@functools.cache
def listed(role: str, which: str, words: tuple[str]) -> list[str]:
    """The names of the scenarios that a run consists of, as far as the suite tells."""
    code, printed = suite(which, ["list", f"--{role}", *words], 60)
    if code != 0:
        sys.exit(f"conformance: `list` of {which} failed: {printed}")
    # A requirement set lists the scenarios of both roles.
    of_role = re.search(rf"^{role.capitalize()} scenarios.*?\n((?:  .*\n|\n)*)", printed + "\n", re.M)
    return re.findall(r"^  - (\S+)", of_role[1] if of_role else "", re.M)


class Server:
    """Our fixture, for as long as the suites run."""

    def __init__(self, command: list[str]):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
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


def fixture(role: str) -> list[str]:
    """The command of our server or client, built if nobody says which one to take."""
    if command := os.environ.get(f"CONFORMANCE_{role.upper()}"):
        return shlex.split(command)
    build = ["cargo", "build", "--quiet", "--workspace", "--bin", f"conformance-{role}", "--example", "calc"]
    if subprocess.run(build, cwd=ROOT, stdin=subprocess.DEVNULL).returncode:
        sys.exit(f"conformance: the {role} does not build")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(ROOT / target / f"debug/conformance-{role}")]


class Results:
    """What has come of the runs so far."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.rules = gate.read_rules(ALLOWED)
        self.known = json.loads(arguments.expected.read_text()) if arguments.expected.exists() else {}
        self.fresh = {}
        self.passed = self.failed = self.excused = 0

    def fail(self, words: str) -> None:
        self.failed += 1
        print(f"FAIL {words}", flush=True)

    def judge(self, name: str, names: list[str], seconds: float) -> list[gate.Verdict]:
        """Judges what a run wrote; `names` are the scenarios that it was to run."""
        expected = None if self.arguments.record else self.known.get(name, {})
        verdicts = gate.judge_run(name, OUT / name, names, expected, self.rules)
        for verdict in verdicts:
            if verdict.problems:
                self.fail(f"{name} {verdict.scenario}")
                for problem in verdict.problems:
                    print(f"       {problem}")
        for verdict in verdicts:
            if verdict.idle:
                self.fail(f"{name} {verdict.scenario}: it needs no excuse any more, see allowed.txt")
        good = [verdict for verdict in verdicts if not verdict.problems and not verdict.excused]
        self.passed += len(good)
        self.excused += sum(verdict.excused for verdict in verdicts)
        self.fresh[name] = {verdict.scenario: dict(sorted(verdict.successes.items())) for verdict in good}
        if not names:
            self.fail(f"{name}: the suite lists no scenario")
        checks = sum(sum(verdict.successes.values()) for verdict in verdicts if not verdict.excused)
        if checks < LEAST[name]:
            self.fail(f"{name}: only {checks} checks succeeded, at least {LEAST[name]} do where all is right")
        print(f"{name}: {len(good)} of {len(verdicts)} scenarios, {checks} checks succeeded, {seconds:.1f} s", flush=True)
        return verdicts

    def end(self, runs: int) -> int:
        """Writes or says what is left to say; the exit code."""
        if self.arguments.record:
            text = json.dumps(self.known | self.fresh, indent=1, sort_keys=True)
            self.arguments.expected.write_text(text + "\n")
            print(f"recorded {self.arguments.expected}")
        elif len(self.fresh) == runs:
            for rule in self.rules:
                if not rule.used and any(rule.is_of(run) for run in self.fresh):
                    print(f"note: allowed.txt allows what no longer happens: {rule.run} | {rule.scenario} | {rule.check}")
        if self.excused:
            print(f"{self.excused} excused by allowed.txt")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def run_suite(results: Results, run: tuple, role: str, words: list[str]) -> None:
    """A run of many scenarios; `words` say what is tested."""
    name, which, filters = run
    begun = time.monotonic()
    names = listed(role, which, scope(filters))
    with open(OUT / f"{name}.log", "w") as log:
        code, _ = suite(which, [role, *words, *filters, "-o", str(OUT / name)], RUN_LIMIT, log)
    verdicts = results.judge(name, names, time.monotonic() - begun)
    if code is None:
        results.fail(f"{name}: not done after {RUN_LIMIT} s")
    elif code and not any(verdict.failures for verdict in verdicts):
        results.fail(f"{name}: the suite ended with {code}, see {OUT / name}.log")


def run_alone(results: Results, run: tuple, words: list[str]) -> None:
    """The scenarios of a run, each with a suite of its own, which has to be content with how the client ends."""
    name, which, filters, *forced = run
    begun = time.monotonic()
    names = [
        scenario
        for scenario in listed("client", which, () if forced else scope(filters))
        if all(fnmatch.fnmatchcase(scenario, pattern) for pattern in forced)
        and not any(rule.excuses(name, scenario) for rule in results.rules)
    ]
    (OUT / name).mkdir()

    def log_of(scenario: str) -> Path:
        return OUT / f"{name}-{scenario.replace('/', '-')}.log"

    def alone(scenario: str) -> int | None:
        with open(log_of(scenario), "w") as log:
            told = ["client", *words, "--scenario", scenario, *filters, "-o", str(OUT / name)]
            return suite(which, told, ALONE_LIMIT, log)[0]

    # 0.1.16 does not take its own slowness into account.
    with ThreadPoolExecutor(2 if which == "alpha" else 1) as pool:
        codes = dict(zip(names, pool.map(alone, names)))
    results.judge(name, names, time.monotonic() - begun)
    for scenario, code in codes.items():
        if code != 0:
            end = f"not done after {ALONE_LIMIT} s" if code is None else f"the suite ended with {code}"
            results.fail(f"{name} {scenario}: {end}, see {log_of(scenario)}")


def run_server(arguments) -> int:
    results = Results(arguments)
    mounted = ["--mount", arguments.mount] if arguments.mount else []
    server = None if arguments.url else Server([*fixture("server"), *mounted])
    for run in chosen(SERVER_RUNS, arguments):
        run_suite(results, run, "server", ["--url", arguments.url or server.url])
        if server and not server.alive():
            results.fail(f"{run[0]}: the server has ended with {server.process.returncode}, see {OUT / 'server.log'}")
            break
    if server and server.alive() and (wrong := server.stop()):
        results.fail(wrong)
    return results.end(len(SERVER_RUNS))


def run_client(arguments) -> int:
    results = Results(arguments)
    words = ["--command", arguments.command or shlex.join(fixture("client"))]
    for run in chosen(CLIENT_RUNS, arguments):
        run_suite(results, run, "client", words)
    for run in chosen(SMOL_RUNS, arguments):
        run_suite(results, run, "client", [words[0], f"{words[1]} --smol"])
    for run in chosen(ALONE_RUNS + FORCED_RUNS, arguments):
        run_alone(results, run, words)
    return results.end(len(CLIENT_RUNS) + len(SMOL_RUNS) + len(ALONE_RUNS) + len(FORCED_RUNS))


def chosen(runs: list[tuple], arguments) -> list[tuple]:
    return [run for run in runs if not arguments.run or run[0] in arguments.run]


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("server", help="the suites play the client")
    server.add_argument("--url", help="of a server that is there already, on 127.0.0.1")
    server.add_argument("--mount", choices=["axum", "hyper", "mio"], help="our server, mounted in another one, or with another driver")
    server.add_argument("--short", dest="run", action="store_const", const=SHORT, help="each scenario once at each revision")
    client = roles.add_parser("client", help="the suites play the server")
    client.add_argument("--command", help="what starts a client; the URL is added to it")
    for role, runs in ((server, SERVER_RUNS), (client, CLIENT_RUNS + SMOL_RUNS + ALONE_RUNS + FORCED_RUNS)):
        role.add_argument("--run", action="append", choices=[run[0] for run in runs], help="only this one")
        role.add_argument("--record", action="store_true", help="write down which checks succeed: expected.json")
        role.add_argument("--expected", type=Path, default=EXPECTED, help="the checks that have to succeed")
    arguments = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    return run_server(arguments) if arguments.role == "server" else run_client(arguments)


if __name__ == "__main__":
    sys.exit(main())
