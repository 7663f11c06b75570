#!/usr/bin/env python3
"""System calls that fail: the servers and the inspector under strace, which makes some of their calls return an error.

    faults.py FOLDER [PART]    FOLDER has calc, sysmon and inspect; PART of a name runs some only

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

# Start-up reads libraries and maps memory; faults begin behind that.
AFTER_START = 12
PATIENCE = 30

INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "faults", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
REQUESTS = 40

# Calls of the system that the servers make for reading, writing and waiting, with errors that pass.
PASSING = [
    ("read", "EINTR"), ("write", "EINTR"), ("recvfrom", "EINTR"), ("sendto", "EINTR"), ("poll", "EINTR"),
    ("epoll_pwait", "EINTR"), ("recvfrom", "EAGAIN"), ("sendto", "EAGAIN"), ("accept4", "ECONNABORTED"), ("accept4", "EINTR"),
    ("accept4", "EMFILE"),
]
# Errors of a connection. Which call is not known to a driver, so each may have it.
ENDING = [("recvfrom", "ECONNRESET"), ("sendto", "EPIPE"), ("sendto", "ECONNRESET"), ("recvfrom", "ETIMEDOUT")]


def strace(call, error, every, command):
    return ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e",
            f"inject={call}:error={error}:when={AFTER_START}+{every}", *command]


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

def talk(command, pieces, expect_end=False):
    """Sends the pieces one by one; returns the lines of the answer, the exit code and standard error."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def feed():
        try:
            for piece in pieces:
                child.stdin.write(piece)
                child.stdin.flush()
            child.stdin.close()
        except (BrokenPipeError, OSError):
            pass

    threading.Thread(target=feed, daemon=True).start()
    timer = threading.Timer(PATIENCE, child.kill)
    timer.start()
    out = child.stdout.read()
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
    usual = answers(talk(server, conversation)[0])
    found = answers(talk(strace(call, error, 3, server), conversation)[0])
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
    out, _, _ = talk(strace(call, error, 1, server), conversation)
    answers(out)


# HTTP

class Server:
    def __init__(self, name, folder, prefix=()):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        at = str(self.port) if name == "calc" else f"127.0.0.1:{self.port}"
        self.child = subprocess.Popen([*prefix, os.path.join(folder, name), "--http", at],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.time() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                need(time.time() < end and self.child.poll() is None, "does not listen")
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Not strace alone, which would leave the server.
        for child in self.processes():
            os.kill(child, 9)
        self.child.kill()
        error = self.child.stderr.read()
        self.child.wait()
        if b"panicked" in error:
            raise Failed(f"panicked: {error[-300:]!r}")

    def processes(self):
        path = f"/proc/{self.child.pid}/task/{self.child.pid}/children"
        return [int(pid) for pid in open(path).read().split()]

    def descriptors(self):
        pid = (self.processes() or [self.child.pid])[0]
        return len(os.listdir(f"/proc/{pid}/fd"))

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
    with Server(name, folder, strace(call, error, 3, [])) as server:
        before = server.descriptors()
        found = []
        for _ in range(4):
            connection, headers = session(server)
            found = [post(connection, request, headers)[1] for request in requests()]
            connection.close()
        need(found == usual, "the answers differ")
        settle(server, before)


def http_ending(name, folder, call, error):
    """Some connections break; others are served, and each answer that comes is right."""
    with Server(name, folder, strace(call, error, 9, [])) as server:
        before, served, broken = server.descriptors(), 0, 0
        for _ in range(40):
            try:
                connection, headers = session(server)
                for request in requests()[:8]:
                    response, answer = post(connection, request, headers)
                    need(response.status == 200 and answer["id"] == request["id"], "a wrong answer")
                    served += 1
            except (OSError, http.client.HTTPException, TypeError):
                broken += 1
            finally:
                connection.close()
        need(broken > 0, "nothing failed: the fault was not there")
        need(served > 40, f"only {served} answers")
        settle(server, before)


def settle(server, before):
    end = time.time() + 20
    while server.descriptors() > before and time.time() < end:
        time.sleep(0.2)
    need(server.descriptors() <= before, f"{before} descriptors before, {server.descriptors()} now")


# The client

def inspect_passing(folder, call, error, at):
    command = [os.path.join(folder, "inspect"), "--timeout", "20", "--json", "tools", *at]
    usual = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    need(usual.returncode == 0, f"fails without a fault: {usual.stderr[-300:]!r}")
    found = subprocess.run(strace(call, error, 3, command), capture_output=True, timeout=PATIENCE)
    need(found.returncode == 0, f"{found.returncode}: {found.stderr[-300:]!r}")
    need(json.loads(found.stdout)["tools"] == json.loads(usual.stdout)["tools"], "the tools differ")


def cases(folder):
    for name in "calc", "sysmon":
        server = [os.path.join(folder, name)]
        for call, error in ("read", "EINTR"), ("write", "EINTR"), ("poll", "EINTR"), ("epoll_pwait", "EINTR"):
            yield f"{name} stdio {call} {error}", lambda s=server, c=call, e=error: stdio_passing(s, c, e)
        yield f"{name} stdio byte by byte", lambda s=server: stdio_bytes(s)
        yield f"{name} stdio small pipe", lambda s=server: stdio_small_pipe(s)
        for call, error in ("read", "EIO"), ("write", "EPIPE"), ("write", "EIO"), ("write", "ENOSPC"):
            yield f"{name} stdio {call} {error}", lambda s=server, c=call, e=error: stdio_ending(s, c, e)
        for call, error in PASSING:
            yield f"{name} http {call} {error}", lambda n=name, c=call, e=error: http_passing(n, folder, c, e)
        for call, error in ENDING:
            yield f"{name} http {call} {error}", lambda n=name, c=call, e=error: http_ending(n, folder, c, e)
    for call, error in ("read", "EINTR"), ("write", "EINTR"), ("poll", "EINTR"):
        at = ["--", os.path.join(folder, "calc")]
        yield f"inspect stdio {call} {error}", lambda c=call, e=error, a=at: inspect_passing(folder, c, e, a)
    for call, error in ("recvfrom", "EINTR"), ("sendto", "EINTR"), ("poll", "EINTR"):
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
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
