#!/usr/bin/env python3
"""A serial port as a host has one: the UART firmware behind a pseudo-terminal, and serial.sh as the stdio server."""

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time

from device import ROOT, RUN, Check, text_of

BRIDGE = ROOT / "examples/firmware/serial.sh"
SECONDS = 20


def qemu(image):
    """The board, and the name of its serial port."""
    said = tempfile.TemporaryFile()
    board = subprocess.Popen(
        ["qemu-system-arm", "-machine", "lm3s6965evb", "-nodefaults", "-display", "none", "-monitor", "none",
         "-serial", "pty", "-semihosting-config", "enable=on,target=native", "-kernel", image],
        stdin=subprocess.DEVNULL, stdout=said, stderr=said,
    )
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and board.poll() is None:
        if found := re.search(r"redirected to (/dev/\S+)", text_of(said)):
            return board, found[1]
        time.sleep(0.02)
    stop(board)
    sys.exit(f"serial: no port: {text_of(said)}")


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def line(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


class Bridge:
    """A client of the bridge, a line at a time."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            [BRIDGE, port, "115200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.rest = b""

    def ask(self, **message):
        self.process.stdin.write(line(message))
        self.process.stdin.flush()
        return self.receive(message.get("id")) if "id" in message else None

    def receive(self, id):
        end = time.monotonic() + SECONDS
        out = self.process.stdout.fileno()
        while True:
            while b"\n" not in self.rest:
                left = end - time.monotonic()
                if left <= 0 or not select.select([out], [], [], left)[0]:
                    return {}
                piece = os.read(out, 65536)
                if not piece:
                    return {}
                self.rest += piece
            first, _, self.rest = self.rest.partition(b"\n")
            message = json.loads(first)
            if message.get("id") == id:
                return message

    def open(self):
        client = {"name": "serial", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        answer = self.ask(id=0, method="initialize", params=params)
        self.ask(method="notifications/initialized")
        return answer.get("result", {}).get("serverInfo", {}).get("name")

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            stop(self.process)
            return "time"


def main():
    check = Check()
    image = subprocess.run([RUN, "build", "uart"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    board, port = qemu(image.stdout.strip())
    bridge = None
    try:
        bridge = Bridge(port)
        check("opens", bridge.open() == "firmware")
        answer = bridge.ask(id=1, method="tools/call", params={"name": "set_led", "arguments": {"on": True}})
        check("a call", "The LED is on" in str(answer), answer)
        answer = bridge.ask(id=2, method="tools/call", params={"name": "history"})
        text = answer.get("result", {}).get("content", [{}])[0].get("text", "")
        check("20,000 characters", len(text) == 20_000, len(text))
        # Half a message, and away.
        bridge.process.stdin.write(b'{"jsonrpc":"2.0","id":3,"meth')
        check("ends with its input", bridge.end() == 0)

        bridge = Bridge(port)
        check("the next client is not disturbed by half a message", bridge.open() == "firmware")
        time.sleep(2.5)
        check("a silent line is no end", "result" in bridge.ask(id=4, method="ping"))
        bridge.process.terminate()
        check("ends on SIGTERM", bridge.process.wait(SECONDS) in (-15, 143))

        bridge = Bridge(port)
        check("and again", bridge.open() == "firmware")
        stop(board)
        try:
            check("a board that has gone is told", bridge.process.wait(SECONDS) == 1)
        except subprocess.TimeoutExpired:
            check("a board that has gone is told", False)
        done = subprocess.run([BRIDGE, "/dev/no-such-port"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS)
        check("a port that is not there", done.returncode == 2 and b"usage" in done.stderr, done)
    finally:
        if bridge:
            stop(bridge.process)
        stop(board)
    return check.end()


sys.exit(main())
