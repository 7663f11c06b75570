"""A board in QEMU: built, started, spoken to, ended."""

import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RUN = ROOT / "examples/firmware/run.sh"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"

START_SECONDS = 30
BUILD_SECONDS = 900
# The most bytes of what a board says that are looked at.
LOG_BYTES = 1 << 20


def build(name, features=""):
    """The path of an image of its own: the next build would overwrite cargo's."""
    environment = dict(os.environ, FIRMWARE_FEATURES=features)
    environment.pop("FIRMWARE_ELF", None)
    done = subprocess.run(
        [RUN, "build", name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment,
        timeout=BUILD_SECONDS,
    )
    if done.returncode:
        sys.exit(f"firmware: {name} ({features or 'no features'}) does not build")
    image = tempfile.NamedTemporaryFile(prefix=f"{name}-", suffix=".elf", delete=False)
    with image:
        image.write(Path(done.stdout.strip()).read_bytes())
    return image.name


def text_of(said):
    """What a process has written into a file. It does not move the position in the file: the process shares it, and would write there."""
    return os.pread(said.fileno(), LOG_BYTES, 0).decode(errors="replace")


class Check:
    """Counts what holds and what does not."""

    def __init__(self):
        self.passed = self.failed = 0
        self.begun = time.monotonic()

    def __call__(self, what, good, detail=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        words = "" if good else f": {str(detail)[:500]}"
        print(f"{'ok' if good else 'FAIL'} {time.monotonic() - self.begun:6.1f} s  {what}{words}", flush=True)
        return good

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


class Board:
    """The image of `ethernet` in QEMU, with a port of this machine forwarded to it."""

    def __init__(self, image):
        self.image = image

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [RUN, "ethernet", str(self.port)],
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said, env=dict(os.environ, FIRMWARE_ELF=self.image),
        )
        deadline = time.monotonic() + START_SECONDS
        # QEMU takes connections before the board does.
        while "ethernet: ready" not in self.log():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                sys.exit(f"firmware: the board does not start: {self.log()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def log(self):
        return text_of(self.said)

    def starts(self):
        """How often it has started: more than once is a reset."""
        return self.log().count("ethernet: ready")

    def run(self, command, **more):
        """Runs a command that uses the board. Returns its exit code; 1 if the board has ended or started anew meanwhile."""
        code = subprocess.run(command, **more).returncode
        if self.process.poll() is not None or self.starts() != 1:
            print(f"FAIL the board has ended or started anew: {self.log()}")
            return 1
        return code

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def connect(self, seconds=10):
        return socket.create_connection(("127.0.0.1", self.port), seconds)

    def head(self, method, length, headers=(), path="/mcp"):
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Accept: application/json, text/event-stream"]
        if method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return "\r\n".join([*lines, *headers, "", ""]).encode()

    def modern(self, id, method, params=None, token=None):
        """A whole request of 2026-07-28."""
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        if token is not None:
            meta["progressToken"] = token
        params = {**(params or {}), "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        headers = [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
        if name := params.get("name") or params.get("uri"):
            headers.append(f"Mcp-Name: {name}")
        return self.head("POST", len(body), headers) + body

    def ask(self, id, method, params=None, seconds=10, tries=1, busy=0):
        """The result of a request on a connection of its own. The answer `try again` is obeyed up to `busy` times."""
        while True:
            try:
                with self.connect(seconds) as stream:
                    stream.sendall(self.modern(id, method, params))
                    status, _, messages = Reader(stream, seconds).response()
                answer = messages[-1]
                if status == 503 and busy > 0 and answer["error"]["message"].endswith("try again"):
                    busy -= 1
                    time.sleep(0.2)
                    continue
                assert status == 200 and answer["id"] == id, f"{status} {answer}"
                return answer["result"]
            except (OSError, EOFError):
                tries -= 1
                if tries <= 0:
                    raise

    def call(self, id, name, arguments=None, **more):
        return self.ask(id, "tools/call", {"name": name, "arguments": arguments or {}}, **more)

    def uptime(self, **more):
        return int(re.match(r"\d+", self.call("uptime", "uptime", **more)["content"][0]["text"])[0])


class Reader:
    """Reads responses from a connection, of either framing."""

    def __init__(self, stream, seconds=10):
        self.stream, self.bytes, self.deadline = stream, b"", time.monotonic() + seconds
        self.chunks = []

    def more(self):
        left = self.deadline - time.monotonic()
        if left <= 0 or not select.select([self.stream], [], [], left)[0]:
            raise TimeoutError("no answer in time")
        data = self.stream.recv(65536)
        if not data:
            raise EOFError("closed")
        self.bytes += data

    def until(self, mark):
        while mark not in self.bytes:
            self.more()
        found, self.bytes = self.bytes.split(mark, 1)
        return found

    def exactly(self, length):
        while len(self.bytes) < length:
            self.more()
        found, self.bytes = self.bytes[:length], self.bytes[length:]
        return found

    def response_head(self):
        lines = self.until(b"\r\n\r\n").decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        return int(lines[0].split()[1]), headers

    def chunk(self):
        """The next chunk; empty at the end."""
        size = int(self.until(b"\r\n"), 16)
        self.chunks.append(size)
        data = self.exactly(size)
        self.until(b"\r\n")
        return data

    def response(self):
        """Status, headers and the JSON messages of a response."""
        status, headers = self.response_head()
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        else:
            body = self.exactly(int(headers.get("content-length", 0)))
        if headers.get("content-type") == "text/event-stream":
            events = [part for part in body.decode().split("\n\n") if part.strip()]
            data = ["".join(line[6:] for line in event.split("\n") if line.startswith("data: ")) for event in events]
            return status, headers, [json.loads(text) for text in data if text]
        return status, headers, [json.loads(body)] if body else []
