#!/usr/bin/env python3
"""Fuzzes all targets side by side for long, in equal shares of processor time, from the committed corpora, which are left alone.

    fuzz/hours.py --until 7200                  # until each target has had two hours of processor time, as counted by the kernel
    fuzz/hours.py --stop 17:25 --workers 2      # as much as there is time for
    fuzz/hours.py --table                       # the time that each target has had so far
    fuzz/hours.py --record                      # adds the times of this machine to hours.json, to be committed with the inputs

Programs, new inputs, findings and times are in --work (default: target/fuzzed of the repository), so it can be stopped and begun again, and on another
machine it goes on from the times in hours.json and the committed inputs. The programs are built once, with --build. Each turn takes the target that has
had the least time. A finding ends the turns of its target, and not the run: mend it, build anew (one program copied to bin is enough), and remove it.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

FUZZ = pathlib.Path(__file__).resolve().parent
# The processor time of each target in seconds, of all machines so far.
RECORDED = FUZZ / "hours.json"


def read_times(file):
    return json.loads(file.read_text()) if file.exists() else {}


def write_times(file, seconds):
    file.write_text(json.dumps(seconds, indent=1, sort_keys=True) + "\n")


def targets():
    return re.findall(r'^\[\[bin\]\]\nname = "(.*)"$', (FUZZ / "Cargo.toml").read_text(), re.M)


def build(work):
    host = re.search(r"host: (.*)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    subprocess.run(["cargo", "+nightly", "fuzz", "build", "--features", "libfuzzer", "--target-dir", work / "build"], cwd=FUZZ, check=True)
    (work / "bin").mkdir(exist_ok=True)
    for target in targets():
        # What runs keeps the old program.
        new = work / "bin" / f"{target}.new"
        shutil.copy2(work / "build" / host / "release" / target, new)
        new.rename(work / "bin" / target)


class Hours:
    def __init__(self, work):
        self.work, self.lock, self.busy, self.failed = work, threading.Lock(), set(), set()
        self.file = work / "times.json"
        self.seconds, self.recorded = read_times(self.file), read_times(RECORDED)

    def total(self, name):
        return self.recorded.get(name, 0) + self.seconds.get(name, 0)

    def has_ended(self, name):
        return name in self.failed or any((self.work / "artifacts" / name).glob("*"))

    def take(self, names, until):
        with self.lock:
            free = [name for name in names if name not in self.busy and self.total(name) < until and not self.has_ended(name)]
            if free:
                name = min(free, key=self.total)
                self.busy.add(name)
                return name

    def give(self, name, seconds):
        with self.lock:
            self.busy.discard(name)
            self.seconds[name] = self.seconds.get(name, 0) + seconds
            write_times(self.file, self.seconds)

    def turn(self, name, seconds, max_len):
        """Runs one target; returns its processor time and how it ended."""
        new, found = self.work / "corpus" / name, self.work / "artifacts" / name
        for folder in (new, found):
            folder.mkdir(parents=True, exist_ok=True)
        logs = self.work / "logs"
        logs.mkdir(exist_ok=True)
        # These times go by the clock, also while others have the processor.
        command = [self.work / "bin" / name, f"-artifact_prefix={found}/", f"-max_total_time={seconds}", "-timeout=300", "-report_slow_units=300", f"-max_len={max_len}",
                   "-rss_limit_mb=2048", "-print_final_stats=1", new, FUZZ / "corpus" / name]
        words = FUZZ / "dictionaries" / f"{name}.dict"
        if words.exists():
            command.insert(1, f"-dict={words}")
        with open(logs / f"{name}.log", "ab") as log:
            child = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, preexec_fn=lambda: os.nice(19))
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_utime + used.ru_stime, child.returncode

    def worker(self, names, options, stop):
        while stop is None or datetime.datetime.now() < stop:
            name = self.take(names, options.until)
            if name is None:
                return
            used, code = 0, None
            # A little more than the target lacks, as a program does not have all of its turn as processor time; 10 seconds at least, to read the corpus.
            left = int(min(options.slice, max(10, 1.02 * (options.until - self.total(name)))))
            if stop is not None:
                left = min(left, int((stop - datetime.datetime.now()).total_seconds()) + 1)
            try:
                used, code = self.turn(name, left, options.max_len)
            finally:
                self.give(name, used)
            if code and not self.has_ended(name):
                # Without a finding nothing can be removed, and it would fail again at once.
                self.failed.add(name)
            print(f"{datetime.datetime.now():%H:%M:%S} {name}: {used:.0f} s, exit {code}", flush=True)

    def table(self):
        for name in targets():
            count = lambda kind: sum(1 for _ in (self.work / kind / name).glob("*"))
            print(f"{name:12} {self.total(name):7.0f} s, {count('corpus'):5} new inputs, {count('artifacts')} findings")
        print(f"{'all':12} {sum(map(self.total, targets())):7.0f} s")

    def record(self):
        """Adds the times of this machine to those that are recorded."""
        write_times(RECORDED, {name: round(self.total(name)) for name in targets() if self.total(name)})
        self.recorded, self.seconds = read_times(RECORDED), {}
        write_times(self.file, self.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--work", type=pathlib.Path, default=FUZZ.parent / "target" / "fuzzed")
    parser.add_argument("--build", action="store_true", help="build the programs before; done if there are none")
    parser.add_argument("--until", type=float, default=3600, help="the processor time of each target, in seconds, with that in hours.json (default: 3600)")
    parser.add_argument("--stop", help="the next time of the day at which to end, HH:MM")
    parser.add_argument("--slice", type=int, default=120, help="the longest turn, in seconds (default: 120)")
    parser.add_argument("--workers", type=int, default=2, help="programs at the same time (default: 2)")
    parser.add_argument("--max-len", type=int, default=4096, help="the longest input, in bytes (default: 4096, as the gate)")
    parser.add_argument("--table", action="store_true", help="print the times, and run nothing")
    parser.add_argument("--record", action="store_true", help="add the times to hours.json, and run nothing")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    hours = Hours(options.work)
    if options.record:
        hours.record()
    elif not options.table:
        if options.build or not (options.work / "bin").exists():
            build(options.work)
        try:
            # Where sessions share the processor, being nice counts within one only.
            pathlib.Path("/proc/self/autogroup").write_text("19")
        except OSError:
            pass
        stop = None
        if options.stop:
            hour, minute = map(int, options.stop.split(":"))
            stop = datetime.datetime.now().replace(hour=hour, minute=minute, second=0)
            if stop < datetime.datetime.now():
                stop += datetime.timedelta(days=1)
        names = options.targets or targets()
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            for done in [pool.submit(hours.worker, names, options, stop) for _ in range(options.workers)]:
                done.result()
    hours.table()
    if any((options.work / "artifacts").glob("*/*")):
        sys.exit("there are findings in " + str(options.work / "artifacts"))


if __name__ == "__main__":
    main()
