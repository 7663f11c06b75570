"""Several processes of the conformance server behind nginx (docs/nginx.conf), with a Redis of their own: started, killed,
started anew, ended. All listen on 127.0.0.1, on ports that were free."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT = 20  # seconds


def free_ports(count):
    """Returns ports of this machine that were free."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_for(port):
    """Waits until a program listens."""
    deadline = time.monotonic() + START_LIMIT
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise AssertionError(f"nothing listens at port {port}") from None
            time.sleep(0.02)


class Processes:
    """The processes, for as long as a `with` lasts. `options` are further words for each server; without `fleet` they have no
    Redis, and without `proxy` no nginx."""

    def __init__(self, program, count=3, options=(), fleet=True, proxy=True):
        self.program, self.count, self.options = program, count, list(options)
        self.fleet, self.proxy = fleet, proxy
        self.key = secrets.token_hex(32)
        self.servers, self.redis, self.nginx = [None] * count, None, None
        self.port, self.redis_port, *self.ports = free_ports(2 + count)
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="fleet-"))
        # The workers of an nginx that root starts are of another user.
        self.dir.chmod(0o711)
        try:
            if self.fleet:
                self.start_redis()
            for number in range(self.count):
                self.start(number)
            for number in range(self.count):
                self.wait_joined(number)
            if self.proxy:
                self.start_nginx()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def start_redis(self):
        """Starts a Redis that remembers nothing, and waits for it."""
        words = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.redis_port), "--save", "", "--appendonly", "no",
                 "--dir", str(self.dir)]
        with open(self.dir / "redis.log", "a") as log:
            self.redis = subprocess.Popen(words, stdout=log, stdin=subprocess.DEVNULL)
        wait_for(self.redis_port)

    def start(self, number):
        """Starts a server. It listens a moment later."""
        words = [self.program, "--port", str(self.ports[number]), "--key", self.key, *self.options]
        if self.fleet:
            words += ["--fleet", f"redis://127.0.0.1:{self.redis_port}/", "--process", str(number + 1)]
        with open(self.log(number), "w") as log:
            self.servers[number] = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)

    def log(self, number):
        """Returns the path of what the present process of a server says."""
        return self.dir / f"server-{number}.log"

    def is_joined(self, number):
        """Returns whether a server has said that it is in the fleet, and not since that it is alone."""
        text = self.log(number).read_text()
        return not self.fleet or text.rfind("Joined") > text.rfind("Alone")

    def wait_joined(self, number):
        """Waits until a server listens and is in the fleet."""
        wait_for(self.ports[number])
        deadline = time.monotonic() + START_LIMIT
        while not self.is_joined(number):
            assert time.monotonic() < deadline, f"process {number} has not joined: {self.log(number).read_text()}"
            time.sleep(0.02)

    def processor_time(self, number):
        """Returns the seconds of processor time that a server has had."""
        threads = Path(f"/proc/{self.servers[number].pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def kill(self, number):
        """Kills a server, which learns nothing of it."""
        self.servers[number].kill()
        self.servers[number].wait()

    def kill_redis(self):
        """Kills Redis, with all that it knows."""
        self.redis.kill()
        self.redis.wait()

    def start_nginx(self):
        """Starts nginx with docs/nginx.conf, and a log of each request."""
        text = (ROOT / "docs/nginx.conf").read_text()
        for place, port in zip("ABC", self.ports, strict=True):
            text = text.replace(f"@{place}@", str(port))
        form = "$msec $request_time $status $upstream_addr $upstream_status $http_user_agent"
        logged = f"log_format one '{form}';\n    access_log {self.dir}/access.log one;"
        text = text.replace("access_log off;", logged).replace("@DIR@", str(self.dir)).replace("@PORT@", str(self.port))
        (self.dir / "nginx.conf").write_text(text)
        words = ["nginx", "-p", str(self.dir), "-c", str(self.dir / "nginx.conf"), "-e", str(self.dir / "error.log")]
        self.nginx = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        wait_for(self.port)

    def nginx_errors(self):
        """Returns the lines that nginx has written about errors."""
        path = self.dir / "error.log"
        return path.read_text().splitlines() if path.exists() else []

    def redis_call(self, *words):
        """Returns the answer of Redis to a command: text, number, list or None."""
        with socket.create_connection(("127.0.0.1", self.redis_port), 5) as link, link.makefile("rb") as answer:
            parts = [str(word).encode() for word in words]
            link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            return read_resp(answer)

    def end(self):
        """Ends all, and removes their files."""
        for process in [self.nginx, *self.servers, self.redis]:
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if os.environ.get("FLEET_KEEP"):
            print(f"kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def read_resp(answer):
    """Reads one answer of Redis."""
    line = answer.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:]
    if kind == b"-":
        raise AssertionError(f"Redis: {rest.decode()}")
    if kind == b":":
        return int(rest)
    if kind == b"$":
        if int(rest) < 0:
            return None
        text = answer.read(int(rest) + 2)[:-2]
        return text.decode("utf-8", "replace")
    if kind == b"*":
        return [read_resp(answer) for _ in range(int(rest))]
    return rest.decode()
