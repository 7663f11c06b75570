#!/usr/bin/env python3
"""A day of the board's time: its clock runs 240 times as fast, and the 32 bits below it wrap after 40 of its minutes."""

import argparse
import json
import sys
import time

from device import LEGACY, Board, Check, Reader, build

PACE = 240
WRAP = 40 * 60
# How many times as long as on an idle machine it may take.
SLOWEST = 6

check = Check()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=370, help="of ours, on an idle machine; a day takes 360")
    seconds = parser.parse_args().seconds
    with Board(build("ethernet", "fast-clock")) as board:
        begun, last, asked, backwards = time.monotonic(), 0, 0, []
        first = told = board.uptime(tries=3)
        measured = sessions = heard = 0
        # An emulator that has to wait for a processor misses ticks of the clock: a busy machine takes longer.
        while told - first < seconds * PACE and time.monotonic() - begun < SLOWEST * seconds:
            told = board.uptime(tries=3)
            asked += 1
            if told < last:
                backwards.append((last, told))
            last = told
            if asked % 20 == 0:
                # A quarter of an hour of its time, across the wrap as well.
                result = board.call(asked, "measure", {"samples": 20, "interval_ms": 45_000}, tries=3)
                measured += "mean of 20" in result["content"][0]["text"]
                sessions += session(board)
            if asked % 50 == 0:
                heard += listen(board)
            time.sleep(0.05)
        real, told = time.monotonic() - begun, board.uptime(tries=3) - first
        check(f"{asked} requests in {told / 3600:.1f} hours of its time", asked > 0)
        check("its time never went back", not backwards, backwards[:3])
        good = told > WRAP and real / SLOWEST < told / PACE < real + 2
        check("and ran as fast as it should, across the wrap", good, (told / PACE, real))
        check(f"{measured} measurements of a quarter of an hour each", measured == asked // 20, (measured, asked // 20))
        check(f"{sessions} sessions, each ended", sessions == asked // 20, sessions)
        check(f"{heard} listens heard that they were alive", heard == asked // 50, heard)
        check("never reset", board.starts() == 1 and board.process.poll() is None, board.log())
    return check.end()


def session(board):
    """Opens a session, calls in it, ends it."""
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "day", "version": "1"}}
    words = {"Mcp-Session-Id": None, "MCP-Protocol-Version": LEGACY}

    def say(method, message=None):
        body = json.dumps(message).encode() if message else b""
        headers = [f"{name}: {value}" for name, value in words.items() if words["Mcp-Session-Id"]]
        for _ in range(3):
            try:
                with board.connect() as stream:
                    stream.sendall(board.head(method, len(body), headers) + body)
                    return Reader(stream).response()
            except EOFError:
                continue
        raise EOFError(method)

    _, headers, _ = say("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    words["Mcp-Session-Id"] = headers["mcp-session-id"]
    status, _, _ = say("POST", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    gone, _, _ = say("DELETE")
    return (status, gone) == (200, 204)


def listen(board):
    """Listens for what is told to whoever only listens: that it is alive."""
    for _ in range(3):
        with board.connect() as stream:
            stream.sendall(board.modern(1, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["board://status"]}}))
            reader = Reader(stream, 10)
            try:
                reader.response_head()
                seen = b""
                while b"\n:\n" not in b"\n" + seen:
                    seen += reader.chunk()
                return True
            except EOFError:
                continue
    return False


if __name__ == "__main__":
    sys.exit(main())
