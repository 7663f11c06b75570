#!/usr/bin/env python3
"""Talks to a firmware through its command, as a client does.

    bare-metal-exchange.py COMMAND...

COMMAND is a stdio server (examples/firmware/run.sh uart). For now an echo.
"""

import os
import random
import signal
import subprocess
import sys
import time

LIMIT = 60  # seconds for each exchange
failures = 0


def check(what, good, detail=""):
    global failures
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {what} {detail}".rstrip(), flush=True)


def start():
    return subprocess.Popen(
        sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def talk(data):
    server = start()
    try:
        out, errors = server.communicate(data, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        server.kill()
        out, errors = server.communicate()
        return out, "time", errors
    return out, server.returncode, errors


def seconds_used(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


out, status, errors = talk(b"one\ntwo\n")
check("two lines", (out, status) == (b"one\ntwo\n", 0), f"{out} {status} {errors}")

out, status, errors = talk(b"")
check("no input", (out, status) == (b"", 0), f"{out} {status}")

# All bytes but the mark of the end, in lines of all lengths.
chance = random.Random(2)
lines = []
while sum(map(len, lines)) < 200_000:
    line = bytes(chance.randrange(256) for _ in range(chance.randrange(1000)))
    lines.append(line.replace(b"\x04\x04\x04\x04", b"") + b"\n")
burst = b"".join(lines)
began = time.monotonic()
out, status, errors = talk(burst)
check(f"{len(burst)} bytes at once", (out, status) == (burst, 0), f"{len(out)} {status} {time.monotonic() - began:.1f} s")

server = start()
server.stdin.write(b"\x04")
server.stdin.flush()
time.sleep(1)
check("one EOT is not the end", server.poll() is None)
server.stdin.write(b"after\n")
server.stdin.flush()
check("answers at once", server.stdout.readline() == b"\x04after\n")
if os.path.exists(f"/proc/{server.pid}/stat"):
    before = seconds_used(server.pid)
    time.sleep(3)
    share = (seconds_used(server.pid) - before) / 3
    check("sleeps when idle", share < 0.25, f"{share:.0%} of a core")
server.stdin.close()
try:
    check("ends with its input", server.wait(LIMIT) == 0)
except subprocess.TimeoutExpired:
    check("ends with its input", False)
    server.kill()

server = start()
server.stdin.write(b"up\n")
server.stdin.flush()
server.stdout.readline()
server.send_signal(signal.SIGTERM)
try:
    server.wait(10)
    check("ends on SIGTERM", True)
except subprocess.TimeoutExpired:
    check("ends on SIGTERM", False)
    server.kill()

sys.exit(1 if failures else 0)
