#!/usr/bin/env python3
"""Our client against tasks of rmcp: rmcp_tasks.py INSPECT RMCP. See tasks.sh and README.md."""

import os
import pty
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

LIMIT = 60


def check(name, found, wanted):
    assert found == wanted, f"{name}: found {found!r}, wanted {wanted!r}"
    print(f"pass  inspect {name}", flush=True)


class Kitchen:
    """A server, as `inspect` is given it."""

    def __init__(self, inspect, name, target):
        self.inspect, self.name, self.target = inspect, name, target

    def command(self, *words):
        return [self.inspect, "--no-color", *words, *self.target]

    def check(self, name, found, wanted):
        check(f"{self.name} {name}", found, wanted)

    def run(self, *words):
        """Returns the exit code, and what is written."""
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        return done.returncode, done.stdout, done.stderr

    def interrupt(self, tool):
        """Calls a tool, and presses Ctrl-C while the task runs."""
        process = subprocess.Popen(
            self.command("call", tool), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        shown = ""
        for line in process.stderr:
            shown += line
            if line.startswith("task working"):
                break
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=LIMIT)
        return process.returncode, out, shown + rest

    def ask(self, answers, *words):
        """Runs it on a terminal; types the answer to each question when it is asked. Returns the exit code and the screen."""
        master, slave = pty.openpty()
        process = subprocess.Popen(self.command(*words), stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        screen = ""
        answers = dict(answers)
        while True:
            try:
                read = os.read(master, 4096)
            except OSError:  # The other end is closed.
                break
            screen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", screen + read.decode(errors="replace"))
            for question in [key for key in answers if re.search(re.escape(key) + r".*> $", screen, re.S)]:
                os.write(master, answers.pop(question).encode() + b"\n")
        os.close(master)
        return process.wait(LIMIT), screen.replace("\r\n", "\n")


def last(text):
    return text.rstrip("\n").rpartition("\n")[2]


def both(kitchen):
    """The same in both revisions."""
    code, out, err = kitchen.run("call", "brew", "cups=2")
    kitchen.check("a task", (code, out), (0, "2 cups of coffee\n"))
    kitchen.check("its status", ("answers later: task " in err, last(err)[:14]), (True, "task completed"))
    code, out, _ = kitchen.run("call", "break")
    kitchen.check("a tool that fails", (code, "The machine is broken" in out), (1, True))
    code, _, err = kitchen.run("call", "fail")
    kitchen.check("a task that fails", (code, "the task failed: " in err, "on fire" in err), (4, True, True))
    code, _, err = kitchen.interrupt("run")
    kitchen.check("cancelled", (code, last(err)), (130, "inspect: the task was cancelled"))


def modern(kitchen):
    both(kitchen)
    code, out, _ = kitchen.interrupt("stubborn")
    kitchen.check("finished after the cancellation", (code, out), (0, "done anyway\n"))
    code, screen = kitchen.ask({"take milk?": "yes", "take sugar?": "no"}, "call", "order")
    kitchen.check("two questions", (code, last(screen)), (0, "milk true, sugar false"))
    code, out, _ = kitchen.run("--root", "/tmp", "call", "roots")
    kitchen.check("a question without a user", (code, out), (0, "file:///tmp\n"))
    code, out, _ = kitchen.run("--revision", "2025-11-25", "call", "brew", "cups=3")
    kitchen.check("a task in 2025-11-25", (code, out), (0, "3 cups of coffee\n"))
    code, out, _ = kitchen.run("--revision", "2025-11-25", "call", "break")
    kitchen.check("a tool that fails in 2025-11-25", (code, "The machine is broken" in out), (1, True))


def known(kitchen):
    """Tasks by their ids, each from a connection of its own."""
    code, _, err = kitchen.run("--timeout", "1", "call", "run")
    task = re.search("task ([0-9a-f-]{36})", err)[1]
    kitchen.check("given up", (code, "inspect tasks follow ID" in err), (5, True))
    code, out, _ = kitchen.run("tasks", "get", task)
    wanted = [f"{task}  working", "is kept for 600 s", "poll every 0.1 s"]
    kitchen.check("seen again", (code, [line for line in wanted if line not in out]), (0, []))
    kitchen.check("cancelled by its id", kitchen.run("tasks", "cancel", task)[0], 0)
    code, _, err = kitchen.run("tasks", "follow", task)
    kitchen.check("followed to its end", (code, last(err)), (4, "inspect: the task was cancelled"))
    code, _, err = kitchen.run("tasks", "get", "unknown")
    kitchen.check("unknown", (code, "-32602" in err), (4, True))


def legacy(kitchen):
    both(kitchen)
    code, screen = kitchen.ask({"take milk?": "yes"}, "call", "order")
    kitchen.check("a question", (code, last(screen)), (0, "milk true"))


def serve(inspect, rmcp, mode, walk):
    server = subprocess.Popen([rmcp, mode, "http", "0"], stdout=subprocess.PIPE, text=True)
    try:
        kitchen = Kitchen(inspect, f"{mode} http", [server.stdout.readline().strip()])
        walk(kitchen)
        if walk is modern:
            known(kitchen)
    finally:
        server.kill()
        server.wait()


def main(inspect, rmcp):
    # They wait most of the time, so they run side by side.
    runs = []
    with ThreadPoolExecutor() as pool:
        # Over stdio rmcp 2 ends at `server/discover`, and is started again.
        for mode, walk in [("tasks", modern), ("tasks-2", legacy)]:
            target = ["--", rmcp, mode, "stdio"]
            runs.append(pool.submit(walk, Kitchen(inspect, f"{mode} stdio", target)))
            runs.append(pool.submit(serve, inspect, rmcp, mode, walk))
    for run in runs:
        run.result()


main(*sys.argv[1:])
