#!/usr/bin/env python3
"""Clients of examples/fleet, at the URL in `URL`. They add and read notes, hear of a change, answer a question, and resume an event
stream; all of it again after processes in `PROCESSES` were killed, one of them in the midst of calls.

usage: examples/fleet/run.sh tests/scale/example.py
"""

import http.client
import json
import os
import select
import signal
import time
from urllib.parse import urlsplit

URL = urlsplit(os.environ["URL"])
PROCESSES = [int(process) for process in os.environ["PROCESSES"].split()]
NOTES = "notes://all"
PATIENCE = 10  # seconds; comments come on a silent stream every 15


def is_answer(message):
    """Returns whether a message is a response."""
    return "method" not in message


class Stream:
    """An answer that is an event stream, or one JSON body."""

    def __init__(self, response):
        self.response, self.last = response, None

    def messages(self):
        """Yields its messages. The id of the last event is in `last`."""
        if self.response.getheader("Content-Type") == "application/json":
            yield json.loads(self.response.read())
            return
        data = ""
        for line in self.response:
            field, _, value = line.decode().rstrip("\r\n").partition(": ")
            if field == "id":
                self.last = value
            elif field == "data":
                data = value
            elif not field and data:
                message, data = json.loads(data), ""
                yield message

    def wait(self, what):
        """Returns the next message for which `what` is true."""
        for message in self.messages():
            if what(message):
                return message
        raise AssertionError("the stream has ended")


class Gone(Exception):
    """There is no such session any more: the client begins anew."""


class Client:
    """A client of 2025-11-25. Each request has a connection of its own."""

    def __init__(self):
        self.ids = 0
        self.begin()

    def begin(self):
        """Opens a session."""
        self.session = None
        response = self.send("POST", self.request("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "example", "version": "1"}}))
        self.session = response.getheader("Mcp-Session-Id")
        response.read()
        assert self.send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def request(self, method, params):
        """Returns a request with a new id."""
        self.ids += 1
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}

    def send(self, method, message=None, headers=(), wanted=(200, 202, 204)):
        """Sends a request of HTTP, and returns the answer. One that reaches no process, nginx sends to another."""
        fields = {"Accept": "application/json, text/event-stream", **dict(headers)}
        if message:
            fields["Content-Type"] = "application/json"
        if self.session:
            fields |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=PATIENCE)
        connection.request(method, URL.path, json.dumps(message) if message else None, fields)
        response = connection.getresponse()
        if response.status == 404 and 404 not in wanted:
            raise Gone
        assert response.status in wanted, f"{response.status}: {response.read()}"
        return response

    def open(self, method, params):
        """Sends a request, and returns the stream of its answer."""
        return Stream(self.send("POST", self.request(method, params)))

    def ask(self, method, params):
        """Sends a request, and returns its result."""
        return self.open(method, params).wait(is_answer)["result"]

    def call(self, tool, **arguments):
        """Calls a tool, and returns its text."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def notes(self):
        """Returns the notes."""
        return self.ask("resources/read", {"uri": NOTES})["contents"][0]["text"].splitlines()


def kill():
    """Kills the next process, which learns nothing of it, and waits until it is gone. Before that it may take one more request, to
    which nginx answers 502: it sends no POST twice."""
    process = PROCESSES.pop(0)
    ended = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    assert select.select([ended], [], [], PATIENCE)[0], "it does not end"
    os.close(ended)


def hear(client, writer):
    """Subscribes in one session, and changes the notes in another one, which may be at another process."""
    stream = Stream(client.send("GET"))
    client.ask("resources/subscribe", {"uri": NOTES})
    before = time.monotonic()
    writer.call("add", text="heard")
    stream.wait(lambda message: message.get("method") == "notifications/resources/updated")
    stream.response.close()
    return f"a change was heard after {(time.monotonic() - before) * 1000:.0f} ms"


def answer(client):
    """Answers a question."""
    asking = client.open("tools/call", {"name": "clear", "arguments": {}})
    question = asking.wait(lambda message: message.get("method") == "elicitation/create")
    reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"sure": True}}}
    assert client.send("POST", reply).status == 202
    said = asking.wait(is_answer)["result"]
    assert said["content"][0]["text"] == "cleared", said
    assert client.notes() == []
    return "a question was answered"


def resume(client):
    """Loses the stream of a call after its first progress, and resumes it."""
    params = {"name": "count", "arguments": {}, "_meta": {"progressToken": "p"}}
    stream, seen = client.open("tools/call", params), []

    def step(message):
        if message.get("method") == "notifications/progress":
            seen.append(message["params"]["progress"])
        return is_answer(message) or len(seen) == 1

    stream.wait(step)
    stream.response.close()
    stream = Stream(client.send("GET", headers={"Last-Event-ID": stream.last}))
    result = stream.wait(lambda message: step(message) and is_answer(message))["result"]
    assert seen == [1, 2, 3, 4], f"progress {seen}"
    assert "notes" in result["content"][0]["text"], result
    return f"a stream was resumed: {result['content'][0]['text']}"


def lose(clients):
    """Kills a process in the midst of a call of each client: those that were there begin anew."""
    streams, lost = [], 0
    for client in clients:
        client.ask("resources/subscribe", {"uri": NOTES})
        streams.append(client.open("tools/call", {"name": "count", "arguments": {}, "_meta": {"progressToken": "p"}}))
    for stream in streams:
        stream.wait(lambda message: message.get("method") == "notifications/progress")
    kill()
    for client, stream in zip(clients, streams, strict=True):
        try:
            assert "notes" in stream.wait(is_answer)["result"]["content"][0]["text"]
        except (http.client.HTTPException, ConnectionError, AssertionError):
            lost += 1
            client.send("POST", client.request("ping", {}), wanted=[404])
            client.begin()
            client.notes()
    assert 0 < lost < len(clients), lost
    return f"a process was killed: {lost} of {len(clients)} sessions began anew, the others had their answers"


def turn(client, writer):
    """Does all of it once."""
    notes = [f'note {number}, "quoted"\tand ä' for number in range(3)]
    for note in notes:
        writer.call("add", text=note)
    assert client.notes()[-3:] == notes, client.notes()
    print("3 notes were added;", hear(client, writer), flush=True)
    print(resume(client), flush=True)
    print(answer(client), flush=True)


def turn_anew():
    """Does all of it in new sessions. One goes to another process when that of its hash has been started anew, and may be gone."""
    for _ in range(5):
        try:
            return turn(Client(), Client())
        except Gone:
            print("a session began anew", flush=True)
    raise AssertionError("five sessions were gone")


def main():
    client, writer = Client(), Client()
    turn(client, writer)
    # So many that some are at each process.
    print(lose([Client() for _ in range(20)]), flush=True)
    turn_anew()
    kill()
    print("another one was killed", flush=True)
    turn_anew()
    client = Client()
    client.send("DELETE")
    for _ in range(3):
        client.send("POST", client.request("ping", {}), wanted=[404])
    print("a session was ended")


if __name__ == "__main__":
    main()
