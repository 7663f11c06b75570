#!/usr/bin/env python3
"""Three processes of the conformance server behind nginx, with a Redis.

1. The official server suites of every revision, without an excuse.
2. Clients of all five revisions (load.py): every request is answered, every change is heard once.
3. The same at once, while one process after the other is killed with -9 and started anew, and Redis once. A scenario that a
   kill has hit is run again, at most five times, and counted; nothing else is forgiven. No request vanishes without an answer or
   an error, and each change is heard.
4. Once more clients, when nothing is killed any more.

usage: tests/scale/fleet.py [--long] [--part suites|load|kills]... [--seconds N] [--run RUN]... [--revision REVISION]... SERVER
"""

import argparse
import asyncio
import collections
import datetime
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))
import gate  # noqa: E402
import runner  # noqa: E402

from load import LEGACY, MODERN, OLDEST, Load  # noqa: E402
from processes import Processes  # noqa: E402

KILL_EVERY = 3.0  # seconds
AGAIN = 5  # how often a scenario is run again: on a busy machine one takes longer than the time between two kills
QUIET = 8  # seconds of talk without a kill
# Scenarios whose work stays at one process when their connection is closed: with that process the work is gone.
HELD = ("tasks-", "server-sse-polling", "sse-")


class Killer(threading.Thread):
    """Kills one process after the other and starts it anew, and Redis once, in the middle of `seconds`."""

    def __init__(self, processes, seconds, losses):
        super().__init__(daemon=True)
        self.processes, self.seconds, self.losses = processes, seconds, losses
        self.kills = []  # (port, time before, time after), by the clock of the logs
        self.outages = []  # of Redis: (begin, end)
        self.ended = threading.Event()
        self.error = None

    def run(self):
        """Runs until `ended` is set, or the time is over and Redis was killed."""
        try:
            begun, number = time.monotonic(), 0
            while not self.ended.wait(KILL_EVERY):
                if not self.outages and time.monotonic() > begun + self.seconds / 2:
                    self.restart_redis()
                self.restart(number % self.processes.count)
                number += 1
        except Exception as error:  # noqa: BLE001
            self.error = error

    def restart(self, number):
        """Kills a process and starts it anew."""
        before = time.time()
        self.losses.append(time.monotonic())
        self.processes.kill(number)
        self.kills.append((self.processes.ports[number], before, time.time()))
        self.processes.start(number)
        self.processes.wait_joined(number)

    def restart_redis(self):
        """Kills Redis and starts it anew: it has forgotten everything."""
        before = time.time()
        self.losses.append(time.monotonic())
        self.processes.kill_redis()
        time.sleep(1)
        self.processes.start_redis()
        for number in range(self.processes.count):
            self.processes.wait_joined(number)
        self.losses.append(time.monotonic())
        self.outages.append((before, time.time()))
        time.sleep(2)


def window(folder, begun):
    """Returns when a scenario began and ended, by the clock, from what it wrote."""
    found = [path for path in folder.rglob("checks.json")]
    stamp = gate.STAMP.search(str(found[0].parent)) if found else None
    if not stamp:
        return begun, time.time()
    text = stamp[0][1:-1]
    day, of_day = text.split("T")
    hours, minutes, seconds, millis = of_day.split("-")
    start = datetime.datetime.fromisoformat(f"{day}T{hours}:{minutes}:{seconds}.{millis}+00:00").timestamp()
    return start, found[0].stat().st_mtime


def place(folder, scenario):
    """Returns where the whole suite has written what became of a scenario."""
    for path in folder.rglob("checks.json"):
        if gate.STAMP.sub("", str(path.parent.relative_to(folder))).removeprefix("server-") == scenario:
            return path.parent
    return folder / "nothing"


def hit(killer, processes, scenario, begin, end):
    """Returns what a kill has done to a scenario in its time; None if nothing."""
    for line in (processes.dir / "access.log").read_text().splitlines():
        # Several processes may have been tried: "a, b" and "502, 200".
        stamp, lasted, status, rest = line.split(" ", 3)
        last, first = float(stamp), float(stamp) - float(lasted)
        if rest.endswith(" load") or last < begin or first > end:
            continue
        if status in ("502", "504"):
            return "its request was cut"
        for port, before, after in killer.kills:
            if f":{port} " in rest and before - 0.01 <= last <= after + 0.25:
                return "its stream was cut"
    if scenario.startswith(HELD) and any(begin <= after and before <= end for _, before, after in killer.kills):
        return "its work was killed"
    if any(begin <= after and before <= end for before, after in killer.outages):
        return "Redis was away"
    return None


def alone(filters, scenario):
    """Returns the words that run one scenario of a run."""
    words = [word for word in filters if word not in ("--suite", "all")]
    if "--requirements" in words:
        words = ["--spec-version", words[1], "--force"]
    return ["--scenario", scenario, *words]


def suites_among_kills(processes, killer, runs):
    """Runs all suites. Returns their failures, and how often what was forgiven."""
    rules, known = gate.read_rules(runner.ALLOWED), json.loads(runner.EXPECTED.read_text())
    failures, again = [], collections.Counter()
    runner.OUT.mkdir(exist_ok=True)
    for name, which, filters in runs:
        begun, folder = time.time(), runner.OUT / f"{name}-kills"
        shutil.rmtree(folder, ignore_errors=True)
        names = runner.listed("server", which, runner.scope(filters))
        with open(runner.OUT / f"{name}-kills.log", "w") as log:
            words = ["server", "--url", processes.url, *filters, "-o", str(folder)]
            code, _ = runner.suite(which, words, runner.RUN_LIMIT, log)
            if code is None:
                failures.append(f"{name}: not done after {runner.RUN_LIMIT} s")
            verdicts = gate.judge_run(name, folder, names, known[name], rules)
            repeated = 0
            for verdict in verdicts:
                scenario, attempt, where = verdict.scenario, 0, place(folder, verdict.scenario)
                while verdict.problems:
                    # What is logged about a request comes with its end.
                    time.sleep(0.3)
                    why = hit(killer, processes, scenario, *window(where, begun))
                    if why is None or attempt == AGAIN:
                        failures.append(f"{name} {scenario}: {why or 'nothing was killed'}: {verdict.problems}")
                        break
                    again[why] += 1
                    attempt, repeated, begun = attempt + 1, repeated + 1, time.time()
                    where = runner.OUT / f"{name}-kills-{scenario}-{attempt}"
                    # That of an earlier run would be read too.
                    shutil.rmtree(where, ignore_errors=True)
                    runner.suite(which, ["server", "--url", processes.url, *alone(filters, scenario), "-o", str(where)], 60, log)
                    found = gate.read_checks(where).get(scenario, [])
                    verdict = gate.judge(name, scenario, found, known[name].get(scenario), rules)
        print(f"kills: {name}: {len(verdicts)} scenarios, {repeated} run again", flush=True)
    return failures, again


async def talk(processes, seconds, revisions, until=None, killer=None):
    """Lets clients talk for a time, and until `until` is done. Returns their books."""
    load = Load(processes.port, revisions=revisions)
    if killer:
        killer.losses = load.books.losses
        load.books.strict = False
    talking = asyncio.create_task(load.run())
    if killer:
        killer.start()
    begun = time.monotonic()
    while not talking.done() and (time.monotonic() < begun + seconds or until and not until.done()):
        await asyncio.sleep(0.1)
    if killer:
        killer.ended.set()
        await asyncio.to_thread(killer.join)
    load.goes_on = False
    # Requests that are open now have their time.
    await asyncio.wait_for(talking, 60)
    return load.books


def show(name, books):
    """Prints the books. Returns whether they are right."""
    print(f"{name}:", *books.table(), sep="\n  ")
    for words, count in books.details.most_common(12):
        print(f"  {count} x {words}")
    for words, count in collections.Counter(books.failures).most_common(30):
        print(f"  FAIL {count} x {words}")
    if not sum(books.outcomes.values()) or not books.changes["heard"]:
        print("  FAIL nothing was tested")
        return False
    return not books.failures


async def among_kills(processes, seconds, runs, revisions):
    """Clients and suites at once, while processes are killed. Returns whether all is right."""
    killer = Killer(processes, seconds, [])
    suites = asyncio.create_task(asyncio.to_thread(suites_among_kills, processes, killer, runs))
    books = await talk(processes, seconds, revisions, suites, killer)
    failures, again = await suites
    right = show("talk while processes are killed", books)
    print(f"kills: {len(killer.kills)} of processes, {len(killer.outages)} of Redis; scenarios run again: "
          + (", ".join(f"{count} as {why}" for why, count in again.items()) or "none"))
    if killer.error:
        failures.append(f"the killer: {killer.error}")
    if not killer.outages:
        failures.append("Redis was not killed")
    for failure in failures:
        print(f"  FAIL {failure}")
    return right and not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--long", action="store_true", help="ten minutes of kills")
    parser.add_argument("--part", action="append", choices=["suites", "load", "kills"], help="only this")
    parser.add_argument("--seconds", type=float, help="of kills, at least")
    parser.add_argument("--run", action="append", choices=[run[0] for run in runner.SERVER_RUNS], help="only this of the suites")
    parser.add_argument("--revision", action="append", help="only clients of this revision")
    arguments = parser.parse_args()
    runs = runner.chosen(runner.SERVER_RUNS, arguments)
    revisions = arguments.revision or (OLDEST, *LEGACY, MODERN)
    parts = arguments.part or ["suites", "load", "kills"]
    right = True
    with Processes(arguments.server) as processes:
        before = time.monotonic()
        if "suites" in parts:
            words = [sys.executable, str(ROOT / "tests/conformance/runner.py"), "server", "--url", processes.url]
            words += [word for run in arguments.run or [] for word in ("--run", run)]
            right &= subprocess.run(words).returncode == 0
            # Every process has had its share.
            for number in range(processes.count):
                print(f"process {number}: {processes.processor_time(number) * 1000:.0f} ms of processor time")
        if "load" in parts:
            right &= show("talk", asyncio.run(talk(processes, QUIET, revisions)))
        if "kills" in parts:
            seconds = arguments.seconds or (600 if arguments.long else 45)
            right &= asyncio.run(among_kills(processes, seconds, runs, revisions))
            time.sleep(3)
            right &= show("talk after all kills", asyncio.run(talk(processes, QUIET, revisions)))
        print(f"{time.monotonic() - before:.0f} s")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
