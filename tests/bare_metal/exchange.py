#!/usr/bin/env python3
"""Talks to a firmware through its command, as a client does.

    exchange.py [--brief] COMMAND...
    exchange.py --input      prints a session that asks for all there is

COMMAND is an MCP stdio server with the tools of the firmware's thermometer
(examples/firmware/run.sh uart), and perhaps `measure`, which answers late. --brief leaves out what is
about the core more than about a firmware. Every exchange ends in a bounded time.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time

LIMIT = 60  # seconds for each exchange
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
INPUT = 1024  # the longest line that the firmware reads
STATUS = "board://status"
failures = 0


def check(what, good, detail=""):
    global failures
    failures += not good
    detail = str(detail)[:600] if not good else ""
    print(f"{'ok' if good else 'FAILED'}: {what} {detail}".rstrip(), flush=True)


# Messages


def line(message):
    return json.dumps(message).encode() + b"\n"


def notification(method, **params):
    return line({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


def request(id, method, revision=None, **params):
    if revision == MODERN:
        prefix = "io.modelcontextprotocol/"
        params["_meta"] = {prefix + "protocolVersion": MODERN, prefix + "clientCapabilities": {}}
    return line({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})})


def call(id, name, revision=None, **arguments):
    return request(id, "tools/call", revision, name=name, arguments=arguments)


def opening(revision):
    if revision == MODERN:
        return request("open", "server/discover", MODERN)
    client = {"name": "exchange", "version": "1"}
    hello = request("open", "initialize", protocolVersion=revision, capabilities={}, clientInfo=client)
    return hello + notification("notifications/initialized")


def everything(revision):
    """A session that asks for all there is."""
    return (
        opening(revision)
        + request(1, "tools/list", revision)
        + call(2, "read_temperature", revision)
        + call(3, "set_led", revision, on=True)
        + request(4, "resources/read", revision, uri=STATUS)
        + call(5, "set_led", revision, on=False)
        + call(6, "set_led", revision, on="perhaps")
        + call("seven", "history", revision)
        + call(8, "no_such_tool", revision)
        + request(9, "resources/list", revision)
    )


# Exchanges


def start():
    return subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def talk(data):
    """Sends all of it and the end of the input; the messages that came back, the status."""
    server = start()
    try:
        out, errors = server.communicate(data, timeout=LIMIT)
        status = server.returncode
    except subprocess.TimeoutExpired:
        server.kill()
        out, errors = server.communicate()
        status = "time"
    try:
        messages = [json.loads(text) for text in out.split(b"\n")[:-1]]
    except ValueError:
        messages = None
    if messages is None or not (out == b"" or out.endswith(b"\n")) or status != 0:
        check(f"an exchange ends well: {data[:60]}", False, f"{status} {out[-200:]} {errors[-500:]}")
    return messages or []


def results(messages):
    return {m["id"]: m["result"] for m in messages if "result" in m}


def errors(messages):
    return [(m.get("id"), m["error"]["code"]) for m in messages if "error" in m]


def text(result):
    return result["content"][0]["text"]


class Talk:
    """A conversation, a line at a time."""

    def __init__(self):
        self.server = start()
        self.rest = b""

    def send(self, data):
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def receive(self, seconds=LIMIT):
        """The next message; None if there is none in time."""
        end = time.monotonic() + seconds
        out = self.server.stdout.fileno()
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return None
            piece = os.read(out, 65536)
            if not piece:
                return None
            self.rest += piece
        first, _, self.rest = self.rest.partition(b"\n")
        return json.loads(first)

    def end(self):
        """The status after the end of the input."""
        self.server.stdin.close()
        try:
            return self.server.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.server.kill()
            return "time"


def seconds_used(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# What is tried


def revisions():
    for revision in LEGACY + [MODERN]:
        messages = talk(everything(revision))
        found = results(messages)
        missing = {"open", 1, 2, 3, 4, 5, 6, "seven", 9} - set(found)
        check(f"{revision}: every request is answered", not missing, messages)
        if missing:
            continue
        opened = found["open"]
        agreed = opened["supportedVersions"] if revision == MODERN else [opened["protocolVersion"]]
        check(f"{revision}: agreed on", revision in agreed, opened)
        names = [tool["name"] for tool in found[1]["tools"]]
        check(f"{revision}: tools", names[:3] == ["read_temperature", "set_led", "history"], names)
        check(f"{revision}: temperature", 10 < float(text(found[2]).split()[0]) < 40, found[2])
        check(f"{revision}: LED", "on" in text(found[3]) and "off" in text(found[5]), found)
        check(f"{revision}: status", "LED: on" in found[4]["contents"][0]["text"], found[4])
        check(f"{revision}: wrong arguments", found[6]["isError"] is True, found[6])
        history = text(found["seven"])
        rows = [row.split() for row in history.splitlines()]
        good = len(history) == 20_000 and [int(row[1][:-1]) for row in rows] == list(range(1000))
        check(f"{revision}: {len(history)} characters of history", good, history[-100:])
        check(f"{revision}: unknown tool", errors(messages) == [(8, -32602)], errors(messages))
        check(f"{revision}: resources", [r["uri"] for r in found[9]["resources"]] == [STATUS], found[9])
        shaped = all(("resultType" in result) == (revision == MODERN) for result in found.values())
        check(f"{revision}: results are of their revision", shaped, found)


def noise():
    chance = random.Random(2)
    wrong = [
        b"not JSON\n",
        b"\xff\xfe\x00\x80\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"\n',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}\n',
        b"[" * 900 + b"\n",
        b"[]\n",
        b"42\n",
        b"x" * (INPUT - 1) + b"\n",
        b"x" * INPUT + b"\n",
        b"y" * 50_000 + b"\n",
        request("long", "ping", pad="p" * INPUT),
        b"\x04\x04\x04\n",
    ]
    for _ in range(200):
        noise = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 2000)))
        wrong.append(noise.replace(b"\n", b"n").replace(b"\x04\x04", b"") + b"\n")
    data = opening("2025-06-18")
    for number, piece in enumerate(wrong):
        data += piece + request(number, "ping")
    data += b"\n\r\n  \n" + request("last", "ping")[:-1] + b"\r\n"
    messages = talk(data)
    found = results(messages)
    lost = [wrong[number][:60] for number in range(len(wrong)) if number not in found]
    check(f"{len(wrong)} wrong lines lose no message behind them", not lost, lost)
    check("blank lines and carriage returns", "last" in found)
    refused = errors(messages)
    codes = {code for _, code in refused}
    check("wrong lines are answered", len(refused) >= len(wrong) - 2 and codes <= {-32700, -32600, -32601}, refused)


def ends():
    check("no input", talk(b"") == [])
    ping = request(1, "ping")
    for length in range(len(ping)):
        whole = length >= len(ping) - 1
        if length % 7 == 0 or whole:
            found = talk(ping[:length])
            check(f"the input ends after {length} bytes of a ping", len(found) == whole and not errors(found), found)
    found = talk(opening("2025-06-18") + call(1, "history") + call(2, "history") + request(3, "ping")[:-1])
    check("what was asked before the end is answered", set(results(found)) == {"open", 1, 2, 3}, list(results(found)))


def burst():
    began = time.monotonic()
    data = opening("2025-11-25")
    for number in range(300):
        data += call(number, "history") if number % 30 == 29 else request(number, "ping")
    found = results(talk(data))
    took = f"{time.monotonic() - began:.1f} s"
    check(f"300 requests at once, in {took}", set(found) == {"open", *range(300)}, len(found))


def conversation():
    talk = Talk()
    talk.send(opening("2025-06-18"))
    check("answers at once", (talk.receive() or {}).get("id") == "open")
    talk.send(b"\x04")
    time.sleep(0.5)
    check("one EOT is not the end", talk.server.poll() is None)
    talk.send(b"\n")
    check("but no JSON either", (talk.receive() or {}).get("error", {}).get("code") == -32700)

    talk.send(request(1, "resources/subscribe", uri=STATUS))
    check("subscribed", (talk.receive() or {}).get("result") == {})
    talk.send(call(2, "set_led", on=True))
    check("the LED", "on" in text((talk.receive() or {})["result"]))
    update = talk.receive(5) or {}
    check("an update", update.get("params") == {"uri": STATUS}, update)
    talk.send(call(3, "set_led", on=True))
    talk.receive()
    check("no update when nothing changed", talk.receive(0.5) is None)

    for byte in request(4, "ping"):
        talk.send(bytes([byte]))
        time.sleep(0.005)
    check("byte by byte", (talk.receive() or {}).get("id") == 4)

    talk.send(call(5, "history") + request(6, "ping"))
    time.sleep(2)
    slow = talk.receive() or {}
    check("a slow reader", slow.get("id") == 5 and len(text(slow["result"])) == 20_000)
    check("and the message behind", (talk.receive() or {}).get("id") == 6)

    if os.path.exists(f"/proc/{talk.server.pid}/stat"):
        before = seconds_used(talk.server.pid)
        time.sleep(3)
        share = (seconds_used(talk.server.pid) - before) / 3
        check("sleeps when idle", share < 0.25, f"{share:.0%} of a core")
    check("ends with its input", talk.end() == 0)


def listening():
    talk = Talk()
    talk.send(request(1, "subscriptions/listen", MODERN, notifications={"resourceSubscriptions": [STATUS]}))
    first = talk.receive() or {}
    check("listening", first.get("method") == "notifications/subscriptions/acknowledged", first)
    talk.send(call(2, "set_led", MODERN, on=True))
    check("the LED", (talk.receive() or {}).get("id") == 2)
    update = talk.receive(5) or {}
    check("an update", update.get("params", {}).get("uri") == STATUS, update)
    talk.server.stdin.close()
    ended = talk.receive(10) or {}
    check("the end of the input ends it", ended.get("id") == 1 and "result" in ended, ended)
    check("ends with its input", talk.end() == 0)


def late():
    """Answers that come later, with progress; cancelled ones do not come at all."""
    talk = Talk()
    talk.send(opening(LEGACY[-1]))
    talk.receive()
    talk.send(request(1, "tools/call", name="measure", arguments={"samples": 5}, _meta={"progressToken": "p"}))
    talk.send(request(2, "ping"))
    told, answered = [], []
    while 1 not in answered:
        message = talk.receive(10) or {"id": 1, "error": "none in time"}
        if message.get("method") == "notifications/progress":
            told.append(message["params"]["progress"])
        else:
            answered.append(message["id"])
    check("others are answered before the late one", answered == [2, 1], answered)
    check("which tells its progress", len(told) > 1 and told == sorted(set(told)), told)
    check("and has a result", "average" in text(message.get("result", {"content": [{"text": ""}]})), message)

    talk.send(call(3, "measure", samples=1000) + notification("notifications/cancelled", requestId=3))
    talk.send(call(4, "measure", samples=2))
    found = talk.receive(10) or {}
    check("a cancelled one is not answered and holds up nobody", found.get("id") == 4 and "result" in found, found)
    talk.send(call(5, "measure", samples=5))
    talk.server.stdin.close()
    found = talk.receive(10) or {}
    check("the end of the input waits for a late answer", found.get("id") == 5 and "result" in found, found)
    check("ends with its input", talk.end() == 0)


def terminated():
    talk = Talk()
    talk.send(request(1, "ping"))
    talk.receive()
    talk.server.send_signal(signal.SIGTERM)
    try:
        talk.server.wait(10)
        check("ends on SIGTERM", True)
    except subprocess.TimeoutExpired:
        check("ends on SIGTERM", False)
        talk.server.kill()


if sys.argv[1] == "--input":
    subscribe = request(10, "resources/subscribe", uri=STATUS)
    sys.stdout.buffer.write(everything(LEGACY[-1]) + subscribe + everything(MODERN) + b"[" * 900 + b"\n")
    sys.exit()
brief = sys.argv[1] == "--brief"
if brief:
    del sys.argv[1]
    LEGACY = LEGACY[-1:]
parts = [revisions, conversation, listening] if brief else [revisions, noise, ends, burst, conversation, listening, terminated]
tools = talk(opening(MODERN) + request(1, "tools/list", MODERN))
if "measure" in str(tools):
    parts.append(late)
for part in parts:
    try:
        part()
    except Exception as error:
        check(f"{part.__name__}: {error!r}", False)
sys.exit(1 if failures else 0)
