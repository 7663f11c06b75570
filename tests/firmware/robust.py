#!/usr/bin/env python3
"""What a board meets in the world: it comes back to serving, always, without a reset."""

import hashlib
import json
import random
import socket
import struct
import subprocess
import sys
import threading
import time

from device import LEGACY, MODERN, ROOT, RUN, Board, Check, Reader, build

WINDOW = 1024
SOCKETS = 7
HISTORY = 2500 * 20
PANEL = ROOT / "examples/firmware/ethernet/src/panel.html"
MANUAL = ROOT / "examples/firmware/ethernet/manual"

check = Check()
dice = random.Random(5)


def reset(stream):
    """Vanishes: the other end gets no FIN but a reset."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def history_of(result):
    return result["contents"][0]["text"] if "contents" in result else result["content"][0]["text"]


def serves(board, what, seconds=10):
    """It answers a new client in a bounded time."""
    begun = time.monotonic()
    try:
        result = board.call("serves", "read_temperature", seconds=seconds)
        good, detail = "degrees" in result["content"][0]["text"], result
    except Exception as error:
        good, detail = False, repr(error)
    return check(f"{what}: it serves, after {time.monotonic() - begun:.2f} s", good, detail)


def windows(board):
    for method, params in [("tools/list", {}), ("resources/read", {"uri": "board://history"})]:
        with board.connect() as stream:
            stream.sendall(board.modern(1, method, params))
            reader = Reader(stream, 20)
            status, headers, messages = reader.response()
        size = sum(reader.chunks)
        good = status == 200 and "result" in messages[-1] and size > WINDOW
        check(f"{method}: {size} bytes in {len(reader.chunks)} windows", good and max(reader.chunks) <= WINDOW, reader.chunks[:9])
    text = history_of(messages[-1]["result"])
    lines = text.splitlines()
    good = len(text) == HISTORY and all(line.startswith(f"minute {at:04}: ") for at, line in enumerate(lines))
    check(f"{len(text)} characters, each where it belongs", good, text[:200])
    with board.connect() as stream:
        stream.sendall(board.modern(1, "resources/read", {"uri": "ui://board/panel"}))
        reader = Reader(stream, 20)
        contents = reader.response()[2][-1]["result"]["contents"][0]
    good = contents["text"] == PANEL.read_text() and contents["_meta"]["ui"] == {"prefersBorder": True}
    check(f"the panel, {len(contents['text'])} characters", good and max(reader.chunks) <= WINDOW, contents)


def manual(board):
    """The skill that the board ships: the entry, and each file, larger than the window or not, with its digest."""
    [entry] = board.ask(1, "skills/list")["skills"]
    check("skills/get is the entry of skills/list", board.ask(2, "skills/get", {"uri": entry["uri"]})["skill"] == entry, entry)
    base = entry["uri"].removesuffix("SKILL.md")
    files = {str(path.relative_to(MANUAL)): path.read_bytes() for path in MANUAL.rglob("*.md")}
    check("the manual has all files", {file["uri"] for file in entry["resources"]} == {base + path for path in files}, entry)
    for file in entry["resources"]:
        with board.connect() as stream:
            stream.sendall(board.modern(3, "resources/read", {"uri": file["uri"]}))
            reader = Reader(stream, 20)
            text = reader.response()[2][-1]["result"]["contents"][0]["text"].encode()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        good = text == files[file["uri"].removeprefix(base)] and (len(text), digest) == (file["size"], file["digest"])
        check(f"{file['uri']}: {len(text)} bytes in {len(reader.chunks)} windows", good and max(reader.chunks, default=0) <= WINDOW, text[:200])
    check("a file is larger than the window", max(map(len, files.values())) > WINDOW)


def too_large(board):
    with board.connect() as other, board.connect() as stream:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * 20_000}}).encode()
        stream.sendall(board.head("POST", len(body)))
        status, _, _ = Reader(stream).response()
        check("a body of 20 KB is refused with 413 before it is sent", status == 413, status)
        other.sendall(board.modern(2, "tools/list"))
        check("and another connection lives on", Reader(other).response()[0] == 200)
    with board.connect() as stream:
        stream.sendall(board.head("POST", 2, [f"X-{n}: {'y' * 90}" for n in range(40)]) + b"{}")
        status, _, _ = Reader(stream).response()
        check("a head of 4 KB is refused with 431", status == 431, status)
    with board.connect() as stream:
        stream.sendall(board.head("POST", 9) + b"{\"jsonrpc")
        status, _, messages = Reader(stream).response()
        check("what is no JSON gets an error", status == 400 and messages[0]["error"]["code"] == -32700, messages)
        stream.sendall(board.modern(3, "tools/list"))
        check("and the same connection lives on", Reader(stream).response()[0] == 200)
    serves(board, "too large")


def vanishing(board):
    request = board.modern(1, "resources/read", {"uri": "board://history"})
    for _ in range(60):
        stream = board.connect()
        stream.sendall(request[: dice.randrange(len(request))])
        (reset if dice.random() < 0.5 else socket.socket.close)(stream)
    serves(board, "60 clients vanish in their requests")
    for _ in range(30):
        stream = board.connect()
        stream.sendall(request)
        stream.recv(1 + dice.randrange(3000))
        (reset if dice.random() < 0.5 else socket.socket.close)(stream)
    serves(board, "30 clients vanish in their answers")
    for at in range(20):
        stream = board.connect()
        stream.sendall(board.modern(at, "tools/call", {"name": "measure", "arguments": {"samples": 1000}}))
        reset(stream) if at % 2 else stream.close()
    time.sleep(0.5)
    result = board.call(1, "measure", {"samples": 3, "interval_ms": 10})
    check("what they had measured is cancelled", not result["isError"], result)


def crowd(board):
    idle = [board.connect() for _ in range(3 * SOCKETS)]
    serves(board, f"{len(idle)} connections that say nothing")
    for stream in idle:
        stream.close()
    answered = []

    # The list goes out in windows, and the log has room for five of them at a time.
    def client(number):
        for at in range(5):
            answered.append("tools" in board.ask(f"{number}-{at}", "tools/list", seconds=20, busy=50))

    crowd = [threading.Thread(target=client, args=(at,)) for at in range(3 * SOCKETS)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    check(f"{len(crowd)} clients at once, {SOCKETS} sockets: all are answered", answered == [True] * 5 * len(crowd), len(answered))
    listens = []
    for at in range(2 * SOCKETS):
        stream = board.connect()
        stream.sendall(board.modern(at, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["board://status"]}}))
        listens.append(stream)
        time.sleep(0.05)
    serves(board, f"{len(listens)} clients listen")
    for stream in listens:
        stream.close()
    serves(board, "they have gone")


def slow_readers(board):
    slow = []
    for at in range(3):
        stream = socket.socket()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stream.connect(("127.0.0.1", board.port))
        stream.sendall(board.modern(at, "resources/read", {"uri": "board://history"}))
        slow.append(stream)
    longest = 0
    for at in range(40):
        begun = time.monotonic()
        board.call(at, "read_temperature", seconds=20)
        longest = max(longest, time.monotonic() - begun)
        for stream in slow:
            stream.recv(64)
    check(f"40 requests beside three slow readers, {longest:.2f} s at the most", longest < 3)
    whole = 0
    for stream in slow:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        stream.settimeout(20)
        data = b""
        while b"\r\n0\r\n\r\n" not in data[-16:]:
            part = stream.recv(65536)
            if not part:
                break
            data += part
        whole += b"minute 2499" in data
        stream.close()
    check("and they read on to the end", whole == len(slow), whole)
    dead = [board.connect() for _ in range(3)]
    for stream in dead:
        stream.sendall(board.modern(1, "resources/read", {"uri": "board://history"}))
    serves(board, "three clients that never read")
    for stream in dead:
        reset(stream)


def flood(board):
    wrong, counted = [], []

    def client(number):
        stream, reader = None, None
        for at in range(250):
            id = f"{number}-{at}"
            for _ in range(3):
                try:
                    if stream is None:
                        stream = board.connect(20)
                        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    reader = Reader(stream, 20)
                    stream.sendall(board.modern(id, "tools/call", {"name": "read_temperature"}))
                    status, headers, messages = reader.response()
                    if status != 200 or messages[-1].get("id") != id:
                        wrong.append((status, messages))
                    counted.append(id)
                    if headers.get("connection") == "close":
                        stream = stream.close()
                    break
                except EOFError:
                    stream = stream.close()
            else:
                wrong.append((id, "three times closed"))

    begun = time.monotonic()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(counted) / (time.monotonic() - begun)
    check(f"2000 requests of eight clients, {rate:.0f} a second", not wrong and len(counted) == 2000, (len(counted), wrong[:3]))
    with board.connect(30) as stream:
        many = b"".join(board.modern(at, "tools/call", {"name": "uptime"}) for at in range(200))
        sender = threading.Thread(target=lambda: stream.sendall(many))
        sender.start()
        reader, ids = Reader(stream, 30), []
        try:
            for _ in range(200):
                ids.append(reader.response()[2][-1]["id"])
        except (EOFError, OSError, TimeoutError) as error:
            print(f"       {error!r}")
        sender.join()
    check("200 requests sent ahead on one connection", ids == list(range(200)), len(ids))


def garbage(board):
    samples = [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/0.9\r\n\r\n", b"POST /mcp HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
               b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 700, b"A" * 5000]
    for at in range(120):
        data = samples[at] if at < len(samples) else dice.randbytes(dice.randrange(1, 3000))
        with board.connect() as stream:
            try:
                stream.sendall(data)
                if at % 3 == 0:
                    stream.shutdown(socket.SHUT_WR)
                    stream.settimeout(5)
                    stream.recv(1000)
            except OSError:
                pass
    serves(board, "120 connections with garbage")
    good = board.modern(1, "tools/call", {"name": "set_led", "arguments": {"on": True}})
    refused = 0
    for at in range(200):
        bad = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        with board.connect() as stream:
            stream.sendall(bad)
            stream.shutdown(socket.SHUT_WR)
            try:
                refused += Reader(stream, 5).response()[0] != 200
            except (EOFError, OSError, TimeoutError, ValueError, IndexError):
                refused += 1
    serves(board, f"200 damaged requests, {refused} refused")


def sessions(board):
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "crowd", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()

    def open_one():
        with board.connect() as stream:
            stream.sendall(board.head("POST", len(body)) + body)
            status, headers, _ = Reader(stream).response()
            return status, headers.get("mcp-session-id")

    opened = [open_one() for _ in range(60)]
    ids = {id for status, id in opened if status == 200}
    refused = sum(status == 503 for status, _ in opened)
    check(f"60 sessions that nobody ends: {len(ids)} opened, {refused} told to try again", len(ids) + refused == 60, opened[-3:])
    time.sleep(0.6)
    status, session = open_one()
    check("there is room for another one after a moment", status == 200 and session, status)
    call = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    with board.connect() as stream:
        stream.sendall(board.head("POST", len(call), [f"Mcp-Session-Id: {session}", f"MCP-Protocol-Version: {LEGACY}"]) + call)
        check("which serves", Reader(stream).response()[0] == 200)


def ethernet():
    with Board(build("ethernet")) as board:
        before, begun = board.uptime(), time.monotonic()
        for part in (windows, manual, too_large, vanishing, crowd, slow_readers, flood, garbage, sessions):
            try:
                part(board)
            except Exception as error:
                check(f"{part.__name__}: {error!r}", False)
            if board.process.poll() is not None:
                check("QEMU has ended", False, board.log()[-500:])
                return
        real, told = time.monotonic() - begun, board.uptime(seconds=20) - before
        # An emulator that has to wait for a processor misses ticks: on a busy machine, more than half of them were seen missing.
        check(f"up for {told} s of {real:.0f}", real / 10 < told < real + 3, (told, real))
        status = board.ask("status", "resources/read", {"uri": "board://status"})["contents"][0]["text"]
        check("never reset: " + " ".join(status.split()), board.starts() == 1, board.log())


def watchdog():
    """What a hang would look like: the board starts again by itself."""
    with Board(build("ethernet", "hang")) as board:
        deadline = time.monotonic() + 40
        while board.starts() < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        check("a main loop that hangs is reset by the watchdog", board.starts() >= 2, board.log())


def serial():
    """The UART: garbage at any time, lost bytes."""
    server = subprocess.Popen(
        [RUN, "uart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=None
    )
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    timer = threading.Timer(90, server.kill)
    timer.start()
    answers, broken = {}, []

    def read():
        for line in server.stdout:
            try:
                message = json.loads(line)
                answers[str(message.get("id"))] = message
            except ValueError:
                broken.append(line)

    reader = threading.Thread(target=read)
    reader.start()
    wanted = 0
    for at in range(400):
        message = {"jsonrpc": "2.0", "id": f"good-{at}", "method": "tools/list", "params": {"_meta": meta}}
        damaged = bytearray(json.dumps({**message, "id": f"bad-{at}"}).encode() + b"\n")
        kind = at % 4
        if kind == 0:  # bytes are lost, perhaps the newline
            for _ in range(dice.randrange(1, 20)):
                del damaged[dice.randrange(len(damaged))]
        elif kind == 1:  # bytes are damaged
            for _ in range(dice.randrange(1, 20)):
                damaged[dice.randrange(len(damaged))] = dice.choice(b"\x00\xff\n\r\"{}[]\\x\x80")
        elif kind == 2:  # noise, without the four EOTs that end the input
            damaged = bytearray(dice.randbytes(dice.randrange(1, 3000)).replace(b"\x04", b""))
        else:  # the line breaks off
            del damaged[dice.randrange(len(damaged)) :]
        server.stdin.write(bytes(damaged) + b"\n" + json.dumps(message).encode() + b"\n")
        wanted += 1
    server.stdin.close()
    reader.join()
    timer.cancel()
    status = server.wait()
    found = sum(f"good-{at}" in answers for at in range(400))
    check(f"UART: of {wanted} messages behind garbage {found} are answered", found == wanted, found)
    check("UART: each line is JSON, and it ends well", not broken and status == 0, (broken[:2], status))


def main():
    serial()
    ethernet()
    watchdog()
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
