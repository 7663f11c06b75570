#!/usr/bin/env python3
"""A board on a serial line: the firmware `uart` in QEMU behind a pseudo terminal, unplugged, plugged in, and reset behind an open
port.

usage: tests/bridge/board.py IMAGE"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from programs import Host


def monitor(path, command):
    """Gives a command to QEMU's monitor."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(path)
        monitor.sendall(f"{command}\n".encode())
        time.sleep(0.2)


class Board:
    """A board whose line is always at the same path, while it is plugged in."""

    def __init__(self, image, folder):
        self.image, self.port, self.monitor = image, os.path.join(folder, "tty"), os.path.join(folder, "monitor")
        self.plug_in()

    def plug_in(self):
        command = ["qemu-system-arm", "-machine", "lm3s6965evb", "-nodefaults", "-display", "none"]
        command += ["-semihosting-config", "enable=on,target=native", "-monitor", f"unix:{self.monitor},server,nowait"]
        command += ["-chardev", "pty,id=u", "-serial", "chardev:u", "-kernel", self.image]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line = re.search(r"/dev/pts/\d+", self.process.stdout.readline())[0]
        os.symlink(self.line, self.port)

    def unplug(self):
        os.unlink(self.port)
        self.process.kill()
        self.process.wait()

    def reset(self):
        monitor(self.monitor, "system_reset")

    def press(self):
        monitor(self.monitor, "sendkey ctrl 40")


def knows(host, board):
    """Waits until the bridge has closed the line of a board that is not there any more."""
    for _ in range(500):
        # One that closes meanwhile is seen the next time.
        with contextlib.suppress(FileNotFoundError):
            files = Path(f"/proc/{host.process.pid}/fd").iterdir()
            if not any(os.readlink(file).startswith(board.line) for file in files):
                return
        time.sleep(0.02)
    raise AssertionError("the bridge keeps the line open")


def talk(board, host_era, server_era):
    host = Host(host_era, "--wait", "10", "--era", server_era, "--baud", "57600", f"serial:{board.port}")
    host.open()
    tools = [tool["name"] for tool in host.ask("tools/list")["result"]["tools"]]
    call = lambda: host.send("tools/call", name=tools[0], arguments={})
    answered = lambda ident: "code" not in str(host.answer(ident).get("error", ""))
    assert answered(call())
    with open(board.port, "rb", buffering=0, opener=lambda path, _: os.open(path, os.O_RDONLY | os.O_NOCTTY)) as line:
        assert termios.tcgetattr(line)[4:6] == [termios.B57600] * 2
    board.unplug()
    # A call before the bridge knows is lost, and says so. This one waits.
    knows(host, board)
    waits = call()
    time.sleep(0.3)
    begun = time.monotonic()
    board.plug_in()
    assert answered(waits)
    back = time.monotonic() - begun
    told = host.methods()
    assert host_era == "modern" or "notifications/tools/list_changed" in told, told
    # The port stays open, and the board has forgotten its session.
    board.reset()
    after = host.answer(call())
    assert "Not opened" not in str(after), after
    begun = time.monotonic()
    for _ in range(100):
        host.answer(call())
    each = (time.monotonic() - begun) * 10
    host.close()
    print(f"board.py: host {host_era}, board {server_era}: back after {back:.2f} s, a call takes {each:.1f} ms")


def main():
    with tempfile.TemporaryDirectory() as folder:
        board = Board(sys.argv[1], folder)
        try:
            for host_era in ["legacy", "modern"]:
                for server_era in ["legacy", "modern"]:
                    talk(board, host_era, server_era)
        finally:
            board.process.kill()
            board.process.wait()


if __name__ == "__main__":
    main()
