#!/usr/bin/env python3
"""System calls that fail: the servers and the inspector under strace, which makes some of their calls return an error.

    faults.py FOLDER [PART]    FOLDER, such as target/debug, has inspect, and calc and sysmon in it or in its `examples`;
                               PART of a case's name runs those cases only

What must hold:

- an error that passes (EINTR, EAGAIN, ECONNABORTED, EMFILE for a moment): every answer is as it is without it;
- an error that ends a connection (ECONNRESET, EPIPE): that connection ends and the next one is served;
- an error that ends standard input or output (EIO, EPIPE): the process ends by itself, without a panic, and what it has
  written is whole lines;
- in the end the server has the descriptors that it began with.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

# The first call that fails. The start of a program reads its libraries and looks at its descriptors; faults begin behind that.
FIRST = {"read": 12, "ppoll": 2, "epoll_pwait": 2, "recvfrom": 2, "sendto": 2, "write": 3, "accept4": 3}
PATIENCE = 10

INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "faults", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
REQUESTS = 40

# Calls of the system that both servers make over HTTP, with errors that pass.
PASSING = [
    ("epoll_pwait", "EINTR"), ("recvfrom", "EINTR"), ("recvfrom", "EAGAIN"), ("sendto", "EINTR"), ("sendto", "EAGAIN"),
    ("accept4", "EINTR"), ("accept4", "ECONNABORTED"), ("accept4", "EMFILE"), ("accept4", "ENFILE"), ("accept4", "ENOMEM"),
]
# Errors of a connection. Which call is not known to a driver, so each may have it.
ENDING = [("recvfrom", "ECONNRESET"), ("sendto", "EPIPE"), ("sendto", "ECONNRESET"), ("recvfrom", "ETIMEDOUT")]


def find(folder, name):
    """The program `name` in the folder, or in its `examples`, where cargo puts calc and sysmon."""
    for path in os.path.join(folder, name), os.path.join(folder, "examples", name):
        if os.path.isfile(path):
            return path
    sys.exit(f"faults: no {name} in {folder} or its examples: "
             "cargo build --workspace --example calc --example sysmon --bin inspect")


class Fault:
    """Makes every so-many-th of a system call fail, and knows afterwards whether it did."""

    def __init__(self, call, error, every):
        self.log = tempfile.NamedTemporaryFile(prefix="faults-")
        self.prefix = ["strace", "-f", "-qq", "-o", self.log.name, "-e", f"trace={call}", "-e",
                       f"inject={call}:error={error}:when={FIRST[call]}+{every}"]

    def count(self):
        with open(self.log.name, "rb") as log:
            return log.read().count(b"(INJECTED)")

    def need(self, times=2):
        """A case in which nothing failed has shown nothing."""
        need(self.count() >= times, f"only {self.count()} calls failed: the fault was not there")


def requests():
    return [{"jsonrpc": "2.0", "id": index, "method": "tools/list"} for index in range(1, REQUESTS + 1)]


def lines(messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


class Failed(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Failed(what)


# Standard input and output

def talk(command, pieces, lockstep=False):
    """Sends the pieces one by one, in lockstep after the answer of the piece before; returns what was written, the exit
    code and standard error."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
    answered = threading.Semaphore(0)

    def feed():
        try:
            for piece in pieces:
                child.stdin.write(piece)
                child.stdin.flush()
                if lockstep and b'"id"' in piece:
                    answered.acquire(timeout=PATIENCE)
            child.stdin.close()
        except OSError:
            pass

    threading.Thread(target=feed, daemon=True).start()
    # Not strace alone, which would leave the server.
    timer = threading.Timer(PATIENCE, os.killpg, (child.pid, 9))
    timer.start()
    out = b""
    for line in child.stdout:
        out += line
        answered.release()
    # It has ended: the rest need not wait.
    answered.release(len(pieces))
    err = child.stderr.read()
    code = child.wait()
    timer.cancel()
    need(code != -9, "did not end")
    need(code != 101 and b"panicked" not in err, f"panicked: {err[-300:]!r}")
    return out, code, err


def answers(out):
    need(out.endswith(b"\n") or not out, "the last line is not whole")
    found = {}
    for line in out.splitlines():
        message = json.loads(line)
        if "id" in message:
            need(message["id"] not in found, f"id {message['id']} is answered twice")
            found[message["id"]] = message
    return found


def stdio_passing(server, call, error):
    """All answers are there and the same."""
    conversation = [lines([INITIALIZE]), lines([INITIALIZED])] + [lines([request]) for request in requests()]
    usual = answers(talk(server, conversation, True)[0])
    fault = Fault(call, error, 3)
    found = answers(talk(fault.prefix + server, conversation, True)[0])
    fault.need()
    need(found == usual, f"{len(found)} answers of {len(usual)}")
    need(len(found) == REQUESTS + 1, "answers are missing without a fault, too")


def stdio_bytes(server):
    """Short reads: a byte at a time."""
    conversation = lines([INITIALIZE, INITIALIZED] + requests()[:5])
    found = answers(talk(server, [bytes([byte]) for byte in conversation])[0])
    need(len(found) == 6, f"{len(found)} answers")


def stdio_small_pipe(server):
    """Partial writes: an answer larger than a full pipe, and a reader that is slow."""
    child = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    fcntl_setpipe_sz = 1031
    __import__("fcntl").fcntl(child.stdout, fcntl_setpipe_sz, 4096)
    sent = lines([INITIALIZE, INITIALIZED] + requests())
    threading.Thread(target=lambda: (child.stdin.write(sent), child.stdin.close()), daemon=True).start()
    out = b""
    while piece := os.read(child.stdout.fileno(), 509):
        out += piece
        time.sleep(0.0005)
    child.wait(PATIENCE)
    need(len(answers(out)) == REQUESTS + 1, f"{len(answers(out))} answers")


def stdio_ending(server, call, error):
    """Ends by itself; whole lines."""
    conversation = [lines([INITIALIZE]), lines([INITIALIZED])] + [lines([request]) for request in requests()]
    fault = Fault(call, error, 1)
    out, _, _ = talk(fault.prefix + server, conversation, True)
    fault.need(1)
    need(len(answers(out)) < REQUESTS, "it goes on as if nothing had failed")


# HTTP

class Server:
    def __init__(self, name, folder, prefix=(), stderr=subprocess.PIPE):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        at = str(self.port) if name == "calc" else f"127.0.0.1:{self.port}"
        self.child = subprocess.Popen([*prefix, find(folder, name), "--http", at],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        end = time.time() + PATIENCE
        # An answer, not only a connection: the kernel accepts from `listen` on, before the server has opened its other descriptors.
        while not self.answers():
            need(time.time() < end and self.child.poll() is None, "does not listen")
            time.sleep(0.05)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.settimeout(PATIENCE)
                connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return bool(connection.recv(1))
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Not strace alone, which would leave the server.
        for child in self.processes():
            os.kill(child, 9)
        self.child.kill()
        error = self.child.stderr.read() if self.child.stderr else b""
        self.child.wait()
        if b"panicked" in error:
            raise Failed(f"panicked: {error[-300:]!r}")

    def processes(self):
        path = f"/proc/{self.child.pid}/task/{self.child.pid}/children"
        return [int(pid) for pid in open(path).read().split()]

    def descriptors(self):
        pid = (self.processes() or [self.child.pid])[0]
        return len(os.listdir(f"/proc/{pid}/fd"))

    def idle_descriptors(self):
        """How many there are once connections that end are closed: the same number five times."""
        found = [self.descriptors()]
        while len(found) < 100 and (len(found) < 5 or len(set(found[-5:])) > 1):
            time.sleep(0.05)
            found.append(self.descriptors())
        return found[-1]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)


def post(connection, message, headers=()):
    connection.request("POST", "/mcp", json.dumps(message), {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream", **dict(headers)})
    response = connection.getresponse()
    body = response.read()
    return response, json.loads(body) if body else None


def session(server):
    connection = server.connect()
    response, _ = post(connection, INITIALIZE)
    headers = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
    post(connection, INITIALIZED, headers)
    return connection, headers


def http_passing(name, folder, call, error):
    with Server(name, folder) as plain:
        connection, headers = session(plain)
        usual = [post(connection, request, headers)[1] for request in requests()]
    fault = Fault(call, error, 3)
    with Server(name, folder, fault.prefix) as server:
        before = server.idle_descriptors()
        for _ in range(10):
            connection, headers = session(server)
            found = [post(connection, request, headers)[1] for request in requests()]
            connection.close()
            need(found == usual, "the answers differ")
        fault.need()
        settle(server, before)


def http_ending(name, folder, call, error):
    """Some connections break; others are served, and each answer that comes is right."""
    with Server(name, folder, Fault(call, error, 9).prefix) as server:
        before, served, broken = server.idle_descriptors(), 0, 0
        for _ in range(40):
            connection = None
            try:
                connection, headers = session(server)
                for request in requests()[:8]:
                    response, answer = post(connection, request, headers)
                    need(response.status == 200 and answer["id"] == request["id"], "a wrong answer")
                    served += 1
            except (OSError, http.client.HTTPException, TypeError):
                broken += 1
            finally:
                if connection:
                    connection.close()
        need(broken > 0, "nothing failed: the fault was not there")
        need(served > 20, f"only {served} answers")
        settle(server, before)


def settle(server, before):
    end = time.time() + 20
    while server.descriptors() > before and time.time() < end:
        time.sleep(0.2)
    need(server.descriptors() <= before, f"{before} descriptors before, {server.descriptors()} now")


# The client

def inspect_passing(folder, call, error, at):
    command = [find(folder, "inspect"), "--timeout", "20", "--json", "tools", *at]
    usual = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    need(usual.returncode == 0, f"fails without a fault: {usual.stderr[-300:]!r}")
    fault = Fault(call, error, 2)
    found = subprocess.run(fault.prefix + command, capture_output=True, timeout=PATIENCE)
    fault.need(1)
    need(found.returncode == 0, f"{found.returncode}: {found.stderr[-300:]!r}")
    need(json.loads(found.stdout)["tools"] == json.loads(usual.stdout)["tools"], "the tools differ")


# Full disks

def full(command, stream, code):
    """Ends with this code, without a panic, where standard output or standard error is a full disk."""
    with open("/dev/full", "wb") as disk:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: disk}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=PATIENCE, **streams)
    need(done.returncode == code, f"ends with {done.returncode}, not {code}")


def full_output(server):
    """A server ends by itself and says why, although its client keeps standard input open."""
    with open("/dev/full", "wb") as disk:
        child = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=disk, stderr=subprocess.PIPE)
    try:
        child.stdin.write(lines([INITIALIZE]))
        child.stdin.flush()
        code = child.wait(PATIENCE)
        error = child.stderr.read()
        need(code == 1 and (b"os error 28" in error or b"code: 28" in error), f"ends with {code}: {error[-300:]!r}")
    finally:
        child.kill()
        child.wait()


def full_log(folder):
    """A server serves on when what it says of itself cannot be written."""
    with open("/dev/full", "wb") as disk, Server("sysmon", folder, stderr=disk) as server:
        connection, headers = session(server)
        need(post(connection, requests()[0], headers)[0].status == 200, "no answer")


def full_file(folder, call, when):
    """A file of a host that cannot be written stays as it was, and nothing is left beside it."""
    with tempfile.TemporaryDirectory(prefix="faults-") as home:
        file = os.path.join(home, ".cursor", "mcp.json")
        os.mkdir(os.path.dirname(file))
        with open(file, "w") as out:
            out.write("{}")
        command = [find(folder, "inspect"), "install", "calc", "cursor", "--write", "--", find(folder, "calc")]
        with tempfile.NamedTemporaryFile(prefix="faults-") as log:
            fault = ["strace", "-f", "-qq", "-o", log.name, "-e", f"trace={call}", "-e", f"inject={call}:error=ENOSPC:when={when}"]
            done = subprocess.run(fault + command, capture_output=True, timeout=PATIENCE, env={**os.environ, "HOME": home})
            need(b"(INJECTED)" in log.read(), "no call failed")
        need(done.returncode == 2 and b"is not changed" in done.stderr, f"{done.returncode}: {done.stderr[-300:]!r}")
        with open(file) as text:
            need(text.read() == "{}" and os.listdir(os.path.dirname(file)) == ["mcp.json"], os.listdir(os.path.dirname(file)))


def full_cases(folder):
    inspect, calc, sysmon = (find(folder, name) for name in ("inspect", "calc", "sysmon"))
    asks = [inspect, "--trace", "tools", "--", calc]
    # What was asked for is on standard output. What is said besides does not change the result.
    for name, command, stream, code in (
        ("inspect stdout", asks, "stdout", 6), ("inspect stderr", asks, "stderr", 0),
        ("inspect --json stdout", [inspect, "--json", *asks[1:]], "stdout", 6),
        ("inspect trace stdout", [inspect, "trace", *asks[2:]], "stdout", 6),
        ("inspect --help stdout", [inspect, "--help"], "stdout", 6),
        ("inspect usage stderr", [inspect, "--wrong"], "stderr", 2),
        ("sysmon --help stdout", [sysmon, "--help"], "stdout", 1), ("sysmon usage stderr", [sysmon, "--wrong"], "stderr", 2),
    ):
        yield f"full: {name}", lambda c=command, s=stream, e=code: full(c, s, e)
    # The text, the copy of the old one, and the name.
    for call, when in ("fsync", 1), ("copy_file_range", 1), ("fsync", 2), ("rename", 1):
        yield f"full: inspect install {call} {when}", lambda c=call, w=when: full_file(folder, c, w)
    for server in calc, sysmon:
        yield f"full: {os.path.basename(server)} stdio stdout", lambda s=server: full_output(s)
    yield "full: sysmon http stderr", lambda: full_log(folder)


def cases(folder):
    yield from full_cases(folder)
    for name in "calc", "sysmon":
        server = [find(folder, name)]
        # Of sysmon not `write`, which also wakes its threads through an eventfd. There the system has no EINTR.
        for call, error in [("read", "EINTR"), ("write", "EINTR")][:2 if name == "calc" else 1]:
            yield f"{name} stdio {call} {error}", lambda s=server, c=call, e=error: stdio_passing(s, c, e)
        yield f"{name} stdio byte by byte", lambda s=server: stdio_bytes(s)
        yield f"{name} stdio small pipe", lambda s=server: stdio_small_pipe(s)
        for call, error in [("read", "EIO"), ("write", "EPIPE"), ("write", "EIO"), ("write", "ENOSPC")][:4 if name == "calc" else 1]:
            yield f"{name} stdio {call} {error}", lambda s=server, c=call, e=error: stdio_ending(s, c, e)
        for call, error in PASSING:
            yield f"{name} http {call} {error}", lambda n=name, c=call, e=error: http_passing(n, folder, c, e)
        for call, error in ENDING:
            yield f"{name} http {call} {error}", lambda n=name, c=call, e=error: http_ending(n, folder, c, e)
    for call, error in ("write", "EINTR"), ("ppoll", "EINTR"):
        at = ["--", find(folder, "calc")]
        yield f"inspect stdio {call} {error}", lambda c=call, e=error, a=at: inspect_passing(folder, c, e, a)
    for call, error in ("recvfrom", "EINTR"), ("sendto", "EINTR"), ("ppoll", "EINTR"):
        def over_http(call=call, error=error):
            with Server("calc", folder) as server:
                inspect_passing(folder, call, error, [f"http://127.0.0.1:{server.port}/mcp"])
        yield f"inspect http {call} {error}", over_http


def main():
    folder = os.path.abspath(sys.argv[1])
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    passed, failed = 0, 0
    for name, case in cases(folder):
        if part not in name:
            continue
        try:
            case()
            passed += 1
        except (Failed, OSError, http.client.HTTPException, subprocess.TimeoutExpired, json.JSONDecodeError, KeyError, TypeError) as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
