"""A server for the scripts beside this one."""

import contextlib
import socket
import subprocess
import time


@contextlib.contextmanager
def serving(port, *command):
    """Starts a server at this port, and gives the URL of its endpoint once it listens. Ends it at the end."""
    process = subprocess.Popen(command)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", int(port)), timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()
