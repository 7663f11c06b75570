#!/usr/bin/env python3
"""Boards tell of their button, and `inspect` hears each press by a stream: over a serial line through the bridge, of one host, of two at
once, and after the board was unplugged; and over TCP.

usage: tests/bridge/events.py INTERRUPTS_IMAGE ETHERNET_IMAGE"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

from board import Board, monitor
from programs import BRIDGE, PROGRAMS, ROOT

sys.path.insert(0, str(ROOT / "tests/firmware"))
import device

INSPECT = str(PROGRAMS / "examples/inspect")
# A poll would come each five seconds.
PUSHED = 2.5


class Listener:
    """`inspect events button.pressed` at a server."""

    def __init__(self, *server):
        command = [INSPECT, "--json", "events", "button.pressed", *server]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(json.loads(line)) for line in self.process.stdout], daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def hear(self, seconds=PUSHED):
        """The number of a press, which its id ends with."""
        with contextlib.suppress(queue.Empty):
            return int(self.lines.get(timeout=seconds)["eventId"].split(".")[1])


def begin(press, listeners):
    """Presses until all hear it, at most a minute. Returns the number of the last press."""
    heard, last = [None] * len(listeners), None
    for _ in range(60):
        press()
        heard = [listener.hear(1) for listener in listeners]
        if None not in heard:
            break
    # What is still on its way.
    while late := [number for listener in listeners if (number := listener.hear(1)) is not None]:
        heard += late
    assert None not in heard[: len(listeners)], heard
    return max(number for number in heard if number is not None)


def presses(what, press, *listeners):
    """Each of ten presses is heard once by all of them, at once and in its order."""
    last, took, missed = begin(press, listeners), [], 0
    for number in range(last + 1, last + 11):
        begun = time.monotonic()
        press()
        heard = [listener.hear() for listener in listeners]
        # A board on a busy machine may see a key only when it is up again. The board counts: had an event been lost, the next number
        # would be missing.
        if heard == [None] * len(listeners) and not missed:
            missed, begun = 1, time.monotonic()
            press()
            heard = [listener.hear() for listener in listeners]
        took.append(time.monotonic() - begun)
        if heard != [number] * len(listeners):
            late = [listener.hear(6) for listener in listeners]
            raise AssertionError(f"{what}: {heard} in place of {number}, then {late}; presses that nobody heard: {missed}")
    print(f"events.py: {what}: ten presses, each heard after {max(took):.2f} s at most", flush=True)


def serial(image):
    with tempfile.TemporaryDirectory() as folder:
        board = Board(image, folder)
        try:
            line = ["--wait", "20", f"serial:{board.port}"]
            with Listener("--", BRIDGE, *line) as host:
                presses("UART through the bridge", board.press, host)
                board.unplug()
                time.sleep(0.3)
                board.plug_in()
                presses("UART, unplugged and plugged in", board.press, host)
            front = subprocess.Popen([BRIDGE, "--listen", "0", *line], stderr=subprocess.PIPE, text=True)
            try:
                url = next(said for said in front.stderr if "listens at" in said).split()[-1]
                with Listener(url) as one, Listener(url) as other:
                    presses("UART through the bridge, two hosts over HTTP", board.press, one, other)
            finally:
                front.terminate()
                front.wait()
        finally:
            board.process.kill()
            board.process.wait()


def tcp(image):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "monitor")
        os.environ["FIRMWARE_QEMU"] = f"-monitor unix:{path},server,nowait"
        with device.Board(image) as board, Listener(board.url) as host:
            presses("TCP", lambda: monitor(path, "sendkey ctrl 40"), host)


if __name__ == "__main__":
    serial(sys.argv[1])
    tcp(sys.argv[2])
