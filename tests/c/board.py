#!/usr/bin/env python3
"""A session with the C program of the board, in QEMU: board.py QEMU IMAGE"""

import json
import subprocess
import sys


def main():
    qemu, image = sys.argv[1:]
    command = [qemu, "-M", "lm3s6965evb", "-nographic", "-monitor", "none", "-serial", "stdio", "-kernel", image]
    board = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(method, params, number):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        board.stdin.write(json.dumps(message).encode() + b"\n")
        board.stdin.flush()
        return json.loads(board.stdout.readline())

    try:
        for _ in range(2):  # A second client: `reopening`.
            client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
            assert ask("initialize", client, 0)["result"]["serverInfo"]["name"] == "c-board"
            assert ask("tools/list", {}, 1)["result"]["tools"][0]["name"] == "set_level"
            call = {"name": "set_level", "arguments": {"level": 9}}
            assert ask("tools/call", call, 2)["result"] == {"content": [{"type": "text", "text": "done"}], "isError": False}
            assert ask("tools/call", {**call, "arguments": {"level": 101}}, 3)["result"]["isError"]
            assert ask("tools/call", {**call, "name": "none"}, 4)["error"]["code"] == -32602
            assert ask("nonsense", {}, 5)["error"]["code"] == -32601
        print("board.py: all passed")
    finally:
        board.kill()
        board.wait()


if __name__ == "__main__":
    main()
