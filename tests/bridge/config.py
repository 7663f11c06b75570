#!/usr/bin/env python3
"""The servers of one file like mcp.json behind one front: over stdio line by line in both eras, and over HTTP with the Python SDK."""

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile

from mcp import Client

from hosts import sample
from lost import ASKS, text
from programs import BRIDGE, OLD, Front, Host

FILE = """{
  // A file that a person keeps.
  "mcpServers": {
    "one": {"command": %(python)s, "args": [%(script)s], "env": {"OLD_LOG": "${FOLDER}/one"}},
    "my two": {"command": %(python)s, "args": [%(script)s], "cwd": "/", "env": {"OLD_LOG": "${FOLDER}/two"}},
    "gone": {"command": "/nonexistent/server"},
    "off": {"command": "/nonexistent/other", "disabled": true},
  }
}"""


def write(folder, text=FILE):
    os.environ["FOLDER"] = folder
    path = os.path.join(folder, "mcp.json")
    with open(path, "w") as file:
        file.write(text % {"python": json.dumps(OLD[0]), "script": json.dumps(OLD[1])} if text is FILE else text)
    return path


def names(answer):
    return [tool["name"] for tool in answer["result"]["tools"]]


def heard(folder, server):
    return open(os.path.join(folder, server)).read().split("\n")


def stdio(era, folder, path):
    host = Host(era, "--config", path, "--deny", "one_e*", "--wait", "10", capabilities=ASKS)
    host.open()
    listed = names(host.ask("tools/list"))
    assert "one_odd" in listed and "my_two_odd" in listed and "my_two_exit" in listed, listed
    assert not {"one_exit", "gone_odd", "off_odd"} & set(listed), listed
    assert host.call("one_exit")["error"]["code"] == -32602
    odd = host.call("my_two_odd")["_line"]
    assert '"zeta":9007199254740993,"alpha":1.10e5,"deep":{"b":1,"a":[ 1 , 2 ]}' in odd, odd
    # A question, and its answer.
    said = {"role": "assistant", "content": {"type": "text", "text": "said"}, "model": "m"}
    if era == "modern":
        asked = host.call("one_ask")["result"]
        (key,) = asked["inputRequests"]
        state = asked["requestState"]
        answer = host.ask("tools/call", name="one_ask", requestState=state, inputResponses={key: said})
    else:
        call = host.send("tools/call", name="one_ask")
        asked = host.until(lambda message: message.get("method") == "sampling/createMessage")
        host.say(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}))
        answer = host.answer(call)
        # One that belongs to no request.
        host.ask("resources/subscribe", uri="x://a")
    assert text(answer) == "said", answer
    # Progress, and a cancellation, of one server.
    slow = host.send("tools/call", name="my_two_slow", _meta={"progressToken": "p"})
    host.until(lambda message: message.get("method") == "notifications/progress")
    host.say(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}))
    for _ in range(1000):
        if "heard the end" in heard(folder, "two"):
            break
        host.ask("tools/list")
    assert "heard the end" in heard(folder, "two") and "heard the end" not in heard(folder, "one")
    # One is lost: the other does not notice.
    host.methods()
    with contextlib.suppress(KeyError):
        assert host.call("my_two_exit")["error"]["code"] == -32603
    assert text(host.call("one_log")) == "logged"
    assert text(host.call("my_two_log")) == "logged"
    assert names(host.ask("tools/list")) == listed
    told = host.methods()
    assert era == "modern" or "notifications/tools/list_changed" in told and "notifications/resources/updated" in told, told
    host.close()
    there = [line for line in host.errors if "is there" in line]
    assert len(there) == 3 and sum("gone is not there" in line for line in host.errors) == 1, host.errors


async def http(path):
    front = Front("--config", path, "--wait", "10")
    try:
        for mode in ["legacy", "2026-07-28"]:
            async with Client(front.url, mode=mode, sampling_callback=sample, read_timeout_seconds=20) as host:
                listed = [tool.name for tool in (await host.list_tools()).tools]
                assert len(listed) == 20 and "one_ask" in listed, listed
                for server in ["one", "my_two"]:
                    answer = await host.call_tool(f"{server}_ask", {})
                    assert answer.content[0].text == "from python", answer
        assert front.rests()
    finally:
        front.stop()


def refusals(folder):
    for servers, why in [
        ({"a": {"command": "x"}, "a_b": {"command": "x"}}, 'the servers "a" and "a_b" may have tools of the same name'),
        ({"a": {"args": []}}, "a: it has neither a program nor a URL"),
        ({"a": {"command": "x", "args": "y"}}, "mcp.json: a: args is not an array"),
        ({"a": {"command": "x", "env": {"K": "${input:k}"}}}, "a: env.K has ${input:k}"),
        ({"a": {"url": "ftp://x"}}, "is no address"),
        ({}, "has no server"),
        ({"a": {"command": "x", "disabled": True}}, "has no server"),
    ]:
        # An empty member hides no other.
        path = write(folder, json.dumps({"mcpServers": {}, "servers": servers}))
        told = subprocess.run([BRIDGE, "--config", path], capture_output=True, text=True, timeout=20)
        assert told.returncode == 2 and why in told.stderr, told


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder)
        for era in ["legacy", "modern"]:
            stdio(era, folder, path)
            for server in ["one", "two"]:
                os.unlink(os.path.join(folder, server))
        asyncio.run(http(path))
        refusals(folder)
    print("config.py: three servers of a file behind one front, over stdio and HTTP, in both eras")


if __name__ == "__main__":
    main()
