"""The programs of the tests, and a host that writes lines by itself."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = ROOT / os.environ.get("BRIDGE_PROGRAMS", "target/debug")
BRIDGE = os.environ.get("BRIDGE_PROGRAM", str(PROGRAMS / "mcp-bridge"))
SYSMON = str(PROGRAMS / "examples/sysmon")
OLD = [sys.executable, str(HERE / "old_server.py")]

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


class HttpServer:
    """The conformance server. It can be stopped and started at the same port."""

    def __init__(self):
        self.port, self.process = free_port(), None
        self.start()

    def start(self):
        self.process = subprocess.Popen([PROGRAMS / "conformance-server", "--port", str(self.port)])
        for _ in range(200):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise SystemExit("the server does not listen")

    def stop(self):
        self.process.kill()
        self.process.wait()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"


class Front:
    """The bridge as a server."""

    def __init__(self, *arguments, listen="0"):
        self.process = subprocess.Popen(
            [BRIDGE, "--listen", listen, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if "listens at" in line:
                self.url = line.split()[-1]
                break
        else:
            raise AssertionError(self.lines)
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()

    def children(self):
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True)
        return [int(child) for child in found.stdout.split()]

    def rests(self):
        """Whether it takes less than a tenth of the processor."""
        taken = lambda: sum(map(int, Path(f"/proc/{self.process.pid}/stat").read_text().split()[13:15]))
        before = taken()
        time.sleep(1)
        return taken() - before < 10

    def stop(self):
        self.process.kill()
        self.process.wait()


class Relay:
    """A TCP relay that can go silent: the connections of then stay open and carry nothing more, as after a sleep."""

    def __init__(self, port):
        self.listener, self.target, self.dead = socket.create_server(("127.0.0.1", 0)), port, set()
        self.open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"

    def go_silent(self):
        self.dead |= self.open

    def _accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.target))
            pair = (near, far)
            self.open.add(pair)
            for source, sink in [pair, pair[::-1]]:
                threading.Thread(target=self._carry, args=(pair, source, sink), daemon=True).start()

    def _carry(self, pair, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if pair not in self.dead:
                    sink.sendall(data)
            if pair not in self.dead:
                sink.shutdown(socket.SHUT_WR)


class Host:
    """A host of one era over the bridge, line by line."""

    def __init__(self, era, *arguments, capabilities=None):
        self.process = subprocess.Popen(
            [BRIDGE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.modern = era == "modern"
        self.capabilities = capabilities or {}
        self.lines, self.errors, self.seen, self.last = queue.Queue(), [], [], 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def _read_errors(self):
        # The server behind writes there too.
        self.errors.extend(line for line in self.process.stderr if line.startswith("mcp-bridge: "))

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        """Sends a request and returns its id."""
        self.last += 1
        if self.modern:
            terms = META | {"io.modelcontextprotocol/clientCapabilities": self.capabilities}
            params["_meta"] = terms | params.get("_meta", {})
        self.say(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        return self.last

    def answer(self, ident, seconds=10):
        """Waits for the answer, and keeps what comes before it in `seen`."""
        return self.until(lambda message: message.get("id") == ident and "method" not in message, seconds)

    def until(self, which, seconds=10):
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing came; seen {self.seen[-5:]}, errors {self.errors[-5:]}") from None
            message = json.loads(line)
            if which(message):
                message["_line"] = line
                return message
            self.seen.append(message)

    def ask(self, method, seconds=10, **params):
        return self.answer(self.send(method, **params), seconds)

    def call(self, tool, seconds=10, **arguments):
        return self.ask("tools/call", seconds, name=tool, arguments=arguments)

    def open(self):
        if self.modern:
            return self.ask("server/discover")
        opened = self.ask(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities=self.capabilities,
            clientInfo={"name": "lines", "version": "1"},
        )
        self.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return opened

    def methods(self):
        """Returns the methods of the notifications and requests so far, and forgets them."""
        methods = [message.get("method") for message in self.seen]
        self.seen.clear()
        return methods

    def child(self):
        """Returns the process id of the server, which may just be started."""
        for _ in range(200):
            found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
            if found:
                return int(found[0])
            time.sleep(0.02)
        raise AssertionError("there is no child")

    def memory(self):
        """Returns the resident memory in KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(15)
        assert code == 0, (code, self.errors)
