#!/usr/bin/env python3
"""A wire tap: runs a stdio server as a child and writes down what passes.

    tap.py LOG COMMAND [ARGUMENT...]

The client SDK starts this program in place of the server, so that its own
transport is used as it is. One JSON object a line is appended to LOG:

    {"tap": PID, "t": SECONDS, "ev": "start", "pid": PID}   the server runs
    {..., "ev": "in" | "out", "line": TEXT}                 one line each way
    {..., "ev": "eof"}                                      the client closed stdin
    {..., "ev": "term"}                                     the client sent SIGTERM
    {..., "ev": "exit", "code": CODE}                       the server ended

"in" and "out" are seen from the server. A server that outlives the client is
ended here, by its process group, and an untimely end of the tap itself is
left to the runner, which reads the process ids from the log.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

GRACE = 6.0  # seconds for the server to leave after its stdin closed


def main() -> int:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    me = os.getpid()

    def note(ev: str, **more: object) -> None:
        record = {"tap": me, "t": time.monotonic(), "ev": ev, **more}
        os.write(log, json.dumps(record).encode() + b"\n")

    try:
        child = subprocess.Popen(
            sys.argv[2:],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        note("failed", error=str(error))
        print(f"tap: {error}", file=sys.stderr)
        return 127
    note("start", pid=child.pid)

    def end_group(sig: int) -> None:
        try:
            os.killpg(child.pid, sig)
        except ProcessLookupError:
            pass

    def on_term(_sig: int, _frame: object) -> None:
        note("term")
        end_group(signal.SIGTERM)

    signal.signal(signal.SIGTERM, on_term)

    leaving = threading.Event()

    def forward_in() -> None:
        # Lines are noted before they are passed on, so that the log never shows
        # an answer ahead of its question.
        rest = b""
        while chunk := os.read(0, 65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                note("in", line=line.decode("utf-8", "backslashreplace"))
            try:
                view = memoryview(chunk)
                while view:
                    view = view[child.stdin.write(view) :]
            except (BrokenPipeError, OSError):
                break
        if rest:
            note("in", line=rest.decode("utf-8", "backslashreplace"), unfinished=True)
        note("eof")
        try:
            child.stdin.close()
        except OSError:
            pass
        leaving.set()

    threading.Thread(target=forward_in, daemon=True).start()

    def watch_end() -> None:
        # A server that closed its stdout and stays, or that ignores the end of
        # its stdin, is given the grace time from then on.
        leaving.wait()
        deadline = time.monotonic() + GRACE
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if child.poll() is None:
            note("killed")
            end_group(signal.SIGKILL)

    def pump_out() -> None:
        rest = b""
        while chunk := child.stdout.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                try:
                    note("out", line=line.decode("utf-8"))
                except UnicodeDecodeError:
                    note("out", line=line.decode("utf-8", "backslashreplace"), utf8=False)
            try:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(1, view) :]
            except (BrokenPipeError, OSError):
                break
        if rest:
            note("out", line=rest.decode("utf-8", "backslashreplace"), unfinished=True)
        try:
            os.close(1)
        except OSError:
            pass
        leaving.set()

    forward_out = threading.Thread(target=pump_out, daemon=True)
    forward_out.start()
    threading.Thread(target=watch_end, daemon=True).start()
    code = child.wait()
    forward_out.join(1.0)
    note("exit", code=code)
    end_group(signal.SIGKILL)  # whatever the server left behind
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    sys.exit(main())
