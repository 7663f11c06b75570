#!/usr/bin/env python3
"""What the scenarios `events-*` and `events-client-*` of branches of the official suite ask, written anew from the text of SEP-3415:
events.py SERVER CLIENT PORT.

The suite's branches still have the errors and the capability of the draft before it. The server's tools move it, so each side of a
rule can be asked for.
"""

import base64
import concurrent.futures
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

from serving import serving

REVISION = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/events"
ID = "io.modelcontextprotocol/subscriptionId"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
}
INVALID_PARAMS, NOT_FOUND, FORBIDDEN, EXHAUSTED, UNSUPPORTED, CALLBACK = -32602, -32023, -32024, -32025, -32026, -32027
REASONS = ["connection_refused", "timeout", "tls_error", "http_4xx", "http_5xx", "challenge_failed"]
# No step comes near it.
PATIENCE = 30
BELL, WEATHER = "bell.rung", "weather.changed"


def equal(found, expected, *why):
    assert found == expected, (*why, "found", found, "expected", expected)


def is_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).tzinfo is not None


class Site:
    """A server over HTTP, asked in the words of the text alone."""

    def __init__(self, url):
        self.url, self.number = url, 0

    def request(self, method, params, user=None):
        self.number += 1
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
        headers |= {"Mcp-Name": params["name"]} if method == "tools/call" else {}
        headers |= {"Authorization": f"Bearer {user}"} if user else {}
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params | {"_meta": META}}
        return urllib.request.Request(self.url, json.dumps(body).encode(), headers)

    def answer(self, method, params, user=None):
        try:
            with urllib.request.urlopen(self.request(method, params, user), timeout=PATIENCE) as response:
                body = response.read().decode()
        except urllib.error.HTTPError as error:
            body = error.read().decode()
        lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:")]
        return json.loads(lines[-1] if lines else body)

    def ask(self, method, params=None, user=None):
        answer = self.answer(method, params or {}, user)
        assert "result" in answer, (method, params, answer)
        equal(answer["result"]["resultType"], "complete", method)
        return answer["result"]

    def refused(self, code, method, params, user=None):
        answer = self.answer(method, params, user)
        equal(answer.get("error", {}).get("code"), code, method, params, answer)
        return answer["error"].get("data")

    def tool(self, name, **arguments):
        self.ask("tools/call", {"name": name, "arguments": arguments})

    def ring(self, **arguments):
        self.tool("ring", **arguments)

    def poll(self, cursor=None, name=BELL, **params):
        return self.ask("events/poll", {"name": name, "cursor": cursor} | params)


class Stream:
    """An open request; what comes is read by a thread."""

    def __init__(self, site, method, params, user=None):
        self.response = urllib.request.urlopen(site.request(method, params, user), timeout=PATIENCE)
        self.id, self.heard = site.number, queue.Queue()
        equal(self.response.headers.get_content_type(), "text/event-stream")
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.response:
                if line.startswith(b"data:") and line[5:].strip():
                    self.heard.put(json.loads(line[5:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.heard.put(None)

    def next(self, *skipped):
        """Returns the next message, without those of these methods."""
        while True:
            message = self.heard.get(timeout=PATIENCE)
            if message is None or message.get("method") not in skipped:
                break
        if message and "method" in message:
            equal(message["params"]["_meta"][ID], self.id, message)
            assert message["method"].startswith("notifications/"), message
        return message

    def told(self, kind, *skipped):
        message = self.next(*skipped)
        equal(message and message["method"], f"notifications/events/{kind}", message)
        return message["params"]

    def close(self):
        # A read is under way: the socket is ended below it.
        self.response.fp.raw._sock.shutdown(2)


BEAT = "notifications/events/heartbeat"


def discovery(site, plain):
    declared = site.ask("server/discover")["capabilities"]
    equal((declared["extensions"][EXTENSION], "events" in declared), ({"listChanged": True}, False))
    entries = site.ask("events/list")["events"]
    equal([entry["name"] for entry in entries], [BELL, WEATHER])
    for entry in entries:
        assert entry["description"] and entry["delivery"] and set(entry["delivery"]) <= {"poll", "push", "webhook"}, entry
        equal((entry["inputSchema"]["type"], entry["payloadSchema"]["type"]), ("object", "object"))
    site.refused(INVALID_PARAMS, "events/list", {"cursor": "no such page"})
    delivery = {"mode": "webhook", "url": "https://receiver.example/hooks", "secret": secret()}
    for method in ["poll", "stream", "subscribe", "unsubscribe"]:
        data = site.refused(NOT_FOUND, f"events/{method}", {"name": "no.such", "delivery": delivery}, "ann")
        equal(data, {"kind": "event"}, method)
        plain.refused(-32601, f"events/{method}", {"name": BELL, "delivery": delivery})
    plain.refused(-32601, "events/list", {})
    assert EXTENSION not in plain.ask("server/discover")["capabilities"].get("extensions", {})


def changes(site):
    """Event types come and go."""
    changed = Stream(site, "subscriptions/listen", {"notifications": {"eventsListChanged": True}})
    equal(changed.next()["params"]["notifications"], {"eventsListChanged": True})
    stream = Stream(site, "events/stream", {"name": BELL})
    cursor = stream.told("active")["cursor"]
    for has_bell, listed in [(False, [WEATHER]), (True, [BELL, WEATHER])]:
        site.tool("mount", now=has_bell)
        equal(changed.next()["method"], "notifications/events/list_changed")
        equal([entry["name"] for entry in site.ask("events/list")["events"]], listed)
        if not has_bell:
            equal(site.refused(NOT_FOUND, "events/poll", {"name": BELL, "cursor": cursor}), {"kind": "event"})
    error = stream.told("terminated", BEAT)["error"]
    equal((error["code"], error["data"]), (NOT_FOUND, {"kind": "event"}))
    changed.close()


def poll(site):
    first = site.poll()
    equal((first["events"], first["truncated"], first["hasMore"], type(first["cursor"])), ([], False, False, str))
    assert first["nextPollMs"] > 0
    equal(site.ask("events/poll", {"name": BELL})["events"], [])
    # What came before is not replayed, and `maxAgeMs` means nothing without a cursor.
    site.ring(id="first", door=2)
    equal((site.poll()["events"], site.poll(maxAgeMs=60_000)["truncated"]), ([], False))
    found = site.poll(first["cursor"])
    [event] = found["events"]
    equal((event["eventId"], event["name"], event["data"]), ("first", BELL, {"door": 2}))
    assert is_time(event["timestamp"]) and found["cursor"] != first["cursor"], found
    # The server remembers nothing.
    equal(site.poll(first["cursor"]), found)
    quiet = site.poll(found["cursor"])
    equal((quiet["events"], type(quiet["cursor"]), quiet["truncated"]), ([], str, False))
    # Arguments choose.
    equal(site.poll(first["cursor"], arguments={"door": 3})["events"], [])
    equal(len(site.poll(first["cursor"], arguments={"door": 2})["events"]), 1)
    # Batches.
    for door in range(5):
        site.ring(door=door)
    cursor, batches = found["cursor"], []
    while True:
        part = site.poll(cursor, maxEvents=2)
        batches.append([event["data"]["door"] for event in part["events"]])
        cursor = part["cursor"]
        if not part["hasMore"]:
            break
    equal(batches, [[0, 1], [2, 3], [4]])
    equal(len({event["eventId"] for event in site.poll(found["cursor"])["events"]}), 5)
    # What is too old, and what the server does not have any more.
    site.ring(door=7, age=3_600_000)
    site.ring(door=8)
    young = site.poll(cursor, maxAgeMs=60_000)
    equal(([event["data"]["door"] for event in young["events"]], young["truncated"]), ([8], True))
    for _ in range(9):
        site.ring()
    for lost in [first["cursor"], "no cursor of this server"]:
        gap = site.poll(lost)
        equal((gap["truncated"], gap["cursor"] != lost), (True, True))
        equal(site.poll(gap["cursor"])["truncated"], False)
    # Without replay.
    for params in [{}, {"maxAgeMs": 1}]:
        still = site.poll(name=WEATHER, **params)
        equal((still.get("cursor"), still["truncated"]), (None, False))
    for params in [{"arguments": {"door": "two"}}, {"arguments": []}, {"cursor": 7}, {"maxEvents": 0}, {"maxAgeMs": "old"}]:
        site.refused(INVALID_PARAMS, "events/poll", {"name": BELL} | params)
    site.refused(INVALID_PARAMS, "events/poll", {})
    site.tool("shut", now=True)
    site.refused(FORBIDDEN, "events/poll", {"name": BELL, "cursor": cursor})
    site.tool("shut", now=False)


def push(site):
    streams = [Stream(site, "events/stream", {"name": BELL, "arguments": {"door": door}}) for door in [1, 2]]
    for stream in streams:
        active = stream.told("active")
        equal((active["truncated"], type(active["cursor"])), (False, str))
    site.ring(door=2, id="second")
    event = streams[1].told("event", BEAT)
    equal((event["eventId"], event["name"], event["data"]), ("second", BELL, {"door": 2}))
    assert is_time(event["timestamp"]) and event["cursor"] != active["cursor"], event
    # A heartbeat moves the cursor of the one that heard nothing.
    beats = [streams[0].told("heartbeat")["cursor"] for _ in range(3)]
    assert event["cursor"] in beats, (event, beats)
    # From a cursor, also one that is not there any more.
    again = Stream(site, "events/stream", {"name": BELL, "cursor": active["cursor"]})
    equal((again.told("active")["truncated"], again.told("event", BEAT)["eventId"]), (False, "second"))
    lost = Stream(site, "events/stream", {"name": BELL, "cursor": "no cursor of this server"})
    fresh = lost.told("active")
    equal((fresh["truncated"], type(fresh["cursor"])), (True, str))
    weather = Stream(site, "events/stream", {"name": WEATHER})
    equal(weather.told("active").get("cursor"), None)
    equal(weather.told("heartbeat").get("cursor"), None)
    for params, code in [({"name": "no.such"}, NOT_FOUND), ({"name": BELL, "arguments": {"door": "x"}}, INVALID_PARAMS)]:
        site.refused(code, "events/stream", params)
    # The streams of a user have a limit, which those that are cancelled do not count to.
    for _ in range(3):
        held = [Stream(site, "events/stream", {"name": BELL}, "bob") for _ in range(8)]
        [stream.told("active") for stream in held]
        equal(site.refused(EXHAUSTED, "events/stream", {"name": BELL}, "bob")["limit"], "subscriptions")
        [stream.close() for stream in held]
        wait(lambda: "error" not in opened(site))
    # Who may not hear it any more is told, and nothing comes after the end.
    site.tool("shut", now=True)
    error = again.told("terminated", BEAT)["error"]
    equal((error["code"], type(error["message"])), (FORBIDDEN, str))
    end = again.next()
    equal((end["id"], end["result"]["resultType"], end["result"]["_meta"][ID]), (again.id, "complete", again.id))
    equal(again.next(), None)
    site.refused(FORBIDDEN, "events/stream", {"name": BELL})
    site.tool("shut", now=False)


def opened(site):
    """Opens a stream of bob, and cancels it. Returns the answer if there was no stream."""
    try:
        stream = Stream(site, "events/stream", {"name": BELL}, "bob")
    except AssertionError:
        return {"error": True}
    stream.close()
    return {}


def wait(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, holds
        time.sleep(0.05)


def secret():
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


class Receiver:
    """The address of webhooks: what comes for each path, and what it answers, `(status, body)` for each delivery."""

    def __init__(self):
        self.heard, self.answers, self.connections = {}, {}, 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                delivery = {"headers": self.headers, "body": body, "json": json.loads(body), "at": time.monotonic()}
                of_path = receiver.heard.setdefault(self.path, [])
                of_path.append(delivery)
                answer = receiver.answers.get(self.path, receiver.agree)
                status, answer = answer(delivery)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def verify_request(self, *_):
                receiver.connections += 1
                return True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def agree(delivery):
        return 200, json.dumps({"challenge": delivery["json"].get("challenge")}).encode()

    def of(self, path):
        return [delivery for delivery in self.heard.get(path, []) if delivery["json"].get("type") != "verification"]

    def challenges(self, path):
        return len(self.heard.get(path, [])) - len(self.of(path))

    def next(self, path, number):
        """Waits for this delivery, without challenges."""
        wait(lambda: len(self.of(path)) > number)
        return self.of(path)[number]


def signatures(delivery):
    return delivery["headers"]["webhook-signature"].split(" ")


def signature(secret, delivery):
    signed = f"{delivery['headers']['webhook-id']}.{delivery['headers']['webhook-timestamp']}.".encode() + delivery["body"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def verify(delivery, secret, subscription):
    headers = delivery["headers"]
    equal((headers.get_content_type(), headers["X-MCP-Subscription-Id"]), ("application/json", subscription))
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60 and len(delivery["body"]) <= 256 << 10, headers
    equal(signatures(delivery), [signature(secret, delivery)])
    body = delivery["json"]
    if "type" in body:
        assert re.fullmatch(f"msg_{body['type']}_[0-9A-Za-z_-]{{16,}}", headers["webhook-id"]), headers["webhook-id"]
    else:
        equal((headers["webhook-id"], is_time(body["timestamp"])), (body["eventId"], True))


class Hooks:
    """The subscriptions of users at a server, with one secret."""

    def __init__(self, site, receiver):
        self.site, self.receiver, self.secret = site, receiver, secret()

    def params(self, path, arguments=None, **params):
        delivery = {"mode": "webhook", "url": self.receiver.url + path, "secret": self.secret}
        return {"name": BELL, "arguments": arguments or {}, "delivery": delivery, "cursor": None} | params

    def subscribe(self, path, arguments=None, user="ann", **params):
        return self.site.ask("events/subscribe", self.params(path, arguments, **params), user)

    def unsubscribe(self, path, arguments=None, user="ann"):
        params = self.params(path, arguments)
        equal(set(self.site.ask("events/unsubscribe", params, user)) - {"_meta"}, {"resultType"})


def webhook_refusals(site, receiver):
    """What a server of the world refuses: it does not connect to this machine."""
    url = receiver.url.replace("http:", "https:") + "/hooks"
    params = {"name": BELL, "delivery": {"mode": "webhook", "url": url, "secret": secret()}}

    def refused(code, user="ann", **delivery):
        return site.refused(code, "events/subscribe", params | {"delivery": params["delivery"] | delivery}, user)

    refused(FORBIDDEN, user=None)
    site.refused(FORBIDDEN, "events/unsubscribe", params)
    for wrong in ["http://receiver.example/", "ftp://receiver.example/", "https://", "receiver.example", "", 7, None]:
        refused(INVALID_PARAMS, url=wrong)
    short, long = (base64.b64encode(os.urandom(length)).decode() for length in (23, 65))
    for wrong in ["", "whsec_", f"whsec_{short}", f"whsec_{long}", secret().removeprefix("whsec_"), "whsec_ä", 7, None]:
        refused(INVALID_PARAMS, secret=wrong)
    site.refused(INVALID_PARAMS, "events/subscribe", params | {"arguments": {"door": "x"}}, "ann")
    site.refused(INVALID_PARAMS, "events/subscribe", {"name": BELL}, "ann")
    for local in [url, url.replace("127.0.0.1", "localhost"), "https://10.0.0.1/", "https://169.254.169.254/", "https://[::1]/"]:
        assert refused(CALLBACK, url=local)["reason"] in REASONS, local
    equal(site.refused(NOT_FOUND, "events/unsubscribe", params, "ann"), {"kind": "subscription"})
    equal(receiver.connections, 0, "the server has connected to this machine")


def until(result):
    end = datetime.datetime.fromisoformat(result["refreshBefore"].replace("Z", "+00:00"))
    return end.timestamp() - time.time()


def webhook(hooks):
    """Subscriptions, without what they deliver."""
    site, receiver = hooks.site, hooks.receiver
    for ttl, granted in [({"ttlMs": 120_000}, 120), ({"ttlMs": 1}, 60), ({"ttlMs": 10**15}, 600), ({"ttlMs": None}, 600), ({}, 600)]:
        first = hooks.subscribe("/keys", **ttl)
        assert granted - 20 < until(first) <= granted + 1, (ttl, first)
        equal((type(first["cursor"]), first["truncated"]), (str, False))
    # One challenge for each user and URL; the id is that of the subscription.
    equal((receiver.challenges("/keys"), first["id"]), (1, hooks.subscribe("/keys")["id"]))
    verify(receiver.heard["/keys"][0], hooks.secret, first["id"])
    other = hooks.subscribe("/keys", {"door": 1, "x": {"a": 1, "b": [1, 2]}})
    equal(hooks.subscribe("/keys", {"x": {"b": [1, 2], "a": 1}, "door": 1})["id"], other["id"])
    equal(receiver.challenges("/keys"), 1)
    bob = hooks.subscribe("/keys", user="bob")
    equal((receiver.challenges("/keys"), len({first["id"], other["id"], bob["id"]})), (2, 3))
    assert hooks.subscribe("/keys?2")["id"] not in [first["id"], other["id"], bob["id"]]
    # `id` is no input, and nobody ends the subscription of another.
    for user, params in [("cid", hooks.params("/keys")), ("ann", hooks.params("/none", id=first["id"]))]:
        equal(site.refused(NOT_FOUND, "events/unsubscribe", params | {"id": first["id"]}, user), {"kind": "subscription"})
    hooks.unsubscribe("/keys?2")
    site.refused(NOT_FOUND, "events/unsubscribe", hooks.params("/keys?2"), "ann")
    hooks.unsubscribe("/keys", {"x": {"b": [1, 2], "a": 1}, "door": 1})
    hooks.unsubscribe("/keys")
    hooks.unsubscribe("/keys", user="bob")
    equal(len(receiver.of("/keys")), 0)
    # Addresses that do not agree, and one that is not there.
    for number, answer in enumerate([(200, b'{"challenge":"leaked"}'), (200, b"leaked"), (404, b"leaked"), (302, b""), (500, b"")]):
        path = f"/no{number}"
        receiver.answers[path] = lambda _, answer=answer: answer
        found = site.answer("events/subscribe", hooks.params(path), "ann")
        equal((found["error"]["code"], found["error"]["data"]), (CALLBACK, {"reason": "challenge_failed"}))
        assert "leaked" not in json.dumps(found), found
        equal(len(receiver.heard[path]), 1)
    nowhere = hooks.params("/") | {"delivery": {"mode": "webhook", "url": "http://127.0.0.1:9/", "secret": hooks.secret}}
    equal(site.refused(CALLBACK, "events/subscribe", nowhere, "ann"), {"reason": "connection_refused"})
    equal("/elsewhere" in receiver.heard, False)


def once(status, body=b""):
    """Answers the first delivery so, and takes the others."""
    first = []

    def answer(delivery):
        if "type" not in delivery["json"] and not first:
            first.append(delivery)
            return status, body
        return Receiver.agree(delivery)

    return answer


def delivery(hooks):
    site, receiver = hooks.site, hooks.receiver
    door = {"door": 41}
    result = hooks.subscribe("/told", door)
    site.ring(door=40)
    site.ring(door=41, id="e1")
    told = receiver.next("/told", 0)
    verify(told, hooks.secret, result["id"])
    equal((told["json"]["eventId"], told["json"]["name"], told["json"]["data"]), ("e1", BELL, door))
    equal((receiver.challenges("/told"), type(told["json"]["cursor"])), (1, str))
    assert receiver.heard["/told"][0]["json"]["type"] == "verification"
    # Those that the endpoint does not want come once, and the next one comes.
    for status in [410, 413]:
        path = f"/once{status}"
        receiver.answers[path] = once(status)
        hooks.subscribe(path, door)
        site.ring(door=41)
        site.ring(door=41)
        ids = [receiver.next(path, number)["json"]["eventId"] for number in range(2)]
        equal(len(set(ids)), 2)
        hooks.unsubscribe(path, door)
    # A change of the secret: both sign.
    old, hooks.secret = hooks.secret, secret()
    cursor = hooks.subscribe("/told", door)["cursor"]
    before = len(receiver.of("/told"))
    site.ring(door=41)
    both = receiver.next("/told", before)
    equal(signatures(both), [signature(hooks.secret, both), signature(old, both)])
    # After the end nothing comes; a later subscription goes on from a cursor.
    cursor = both["json"]["cursor"]
    hooks.unsubscribe("/told", door)
    site.ring(door=41, id="meanwhile")
    time.sleep(0.5)
    equal(len(receiver.of("/told")), before + 1)
    again = hooks.subscribe("/told", door, cursor=cursor)
    equal((again["truncated"], again["id"]), (False, result["id"]))
    equal(receiver.next("/told", before + 1)["json"]["eventId"], "meanwhile")
    equal(hooks.subscribe("/told", door, cursor=again["cursor"])["deliveryStatus"]["active"], True)
    # Occurrences that the ring loses while one is on its way: the endpoint hears of a gap.
    free = threading.Event()
    receiver.answers["/gap"] = lambda told: (free.wait(PATIENCE) if "eventId" in told["json"] else None, Receiver.agree(told))[1]
    gap_id = hooks.subscribe("/gap", {"door": 43})["id"]
    for _ in range(10):
        site.ring(door=43)
    receiver.next("/gap", 0)
    free.set()
    gap = receiver.next("/gap", 1)
    equal((gap["json"]["type"], type(gap["json"]["cursor"])), ("gap", str))
    verify(gap, hooks.secret, gap_id)
    assert "eventId" in receiver.next("/gap", 2)["json"]
    # Far from the beginning of the ring: `truncated`.
    equal(hooks.subscribe("/lost", door, cursor="no cursor of this server")["truncated"], True)


def retries(hooks):
    """One that fails comes again later, with a new signature; the subscription says what happened, in one word."""
    site, receiver = hooks.site, hooks.receiver
    cases = {"/r500": (500, "http_5xx"), "/r404": (404, "http_4xx"), "/r302": (302, "http_5xx")}
    for path, (status, _) in cases.items():
        receiver.answers[path] = once(status, b"leaked")
        hooks.subscribe(path, {"door": 51})
    site.ring(door=51, id="retried")
    for path, (_, reason) in cases.items():
        receiver.next(path, 0)
        # A subscription that is renewed is tried at once: it says only once that it failed.
        states = []
        wait(lambda: states.append(state(hooks, path)) or "failedSince" in states[-1])
        found = states[-1]
        equal((found["active"], found["lastError"], "leaked" in json.dumps(found)), (True, reason, False))
    for path in cases:
        first, second = receiver.next(path, 0), receiver.next(path, 1)
        equal((second["body"], second["headers"]["webhook-id"]), (first["body"], "retried"))
        equal(signatures(second), [signature(hooks.secret, second)])
        wait(lambda: state(hooks, path)["lastError"] is None)
        assert is_time(state(hooks, path)["lastDeliveryAt"])
    equal("/elsewhere" in receiver.heard, False)


def state(hooks, path):
    return hooks.subscribe(path, {"door": 51})["deliveryStatus"]


def termination(hooks):
    site, receiver = hooks.site, hooks.receiver
    ended = hooks.subscribe("/end", {"door": 61})
    site.tool("shut", now=True)
    told = receiver.next("/end", 0)
    equal((told["json"]["type"], told["json"]["error"]["code"]), ("terminated", FORBIDDEN))
    verify(told, hooks.secret, ended["id"])
    site.refused(FORBIDDEN, "events/subscribe", hooks.params("/end", {"door": 61}), "ann")
    site.tool("shut", now=False)


def serve(server, port, *options):
    return serving(port, server, "--port", str(port), *options)


def ask_server(server, port):
    with serve(server, port, "--events", "public") as url, serve(server, port + 1) as plain:
        site = Site(url)
        for name, scenario in [("discovery", lambda: discovery(site, Site(plain))), ("poll", lambda: poll(site)),
                               ("push", lambda: push(site)), ("changes", lambda: changes(site)),
                               ("webhook refusals", lambda: webhook_refusals(site, Receiver()))]:
            scenario()
            print("pass  events  server ", name)


def ask_webhooks(server, port):
    with serve(server, port + 2, "--events", "loopback") as url:
        for name, scenario in [("webhook", webhook), ("delivery", delivery), ("retries", retries), ("termination", termination)]:
            scenario(Hooks(Site(url), Receiver()))
            print("pass  events  server ", name)


TICKS, CURSORLESS = "conformance.ticks", "conformance.cursorless"


class Host:
    """A server that the client is started with: `answer` gets each request with its number for this method and event type."""

    def __init__(self, mode, settings, answer):
        self.mode, self.settings, self.answer, self.asked = mode, settings, answer, []
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "id" in message:
                    host.serve(self, message)
                else:
                    self.answer_with(202, b"")

            def answer_with(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def open(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True

            def tell(self, message):
                self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0'} | message)}\n\n".encode())
                self.wfile.flush()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, connection, message):
        method, params = message["method"], message.get("params", {})
        name = params.get("name")
        number = len(self.of(method, name))
        self.asked.append({"method": method, "params": params, "at": time.monotonic()})
        if method == "server/discover":
            extensions = {} if self.settings is None else {"extensions": {EXTENSION: self.settings}}
            result = {"supportedVersions": [REVISION], "capabilities": {"tools": {}} | extensions, "ttlMs": 0, "cacheScope": "private"}
        elif method == "events/list":
            kinds = {"delivery": [self.mode], "inputSchema": {"type": "object"}, "payloadSchema": {"type": "object"}}
            result = {"events": [{"name": name, "description": "For tests"} | kinds for name in (TICKS, CURSORLESS)]}
        else:
            result = self.answer(connection, message["id"], method, params, number)
        if result is not None:
            answer = result if "error" in result else {"result": {"resultType": "complete"} | result}
            connection.answer_with(200, json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer).encode())

    def of(self, method, name=None):
        return [asked for asked in self.asked if asked["method"] == method and name in (None, asked["params"].get("name"))]

    def run(self, client, seconds):
        """Runs the client for this time, and returns the lines that it has printed of events."""
        told = {"MCP_CONFORMANCE_SCENARIO": f"events-client-{self.mode}", "MCP_CONFORMANCE_PROTOCOL_VERSION": REVISION}
        told["MCP_CONFORMANCE_CONTEXT"] = json.dumps({"durationMs": int(seconds * 1000)})
        command = [*client, f"http://127.0.0.1:{self.server.server_port}/mcp"]
        done = subprocess.run(command, env=os.environ | told, timeout=PATIENCE, capture_output=True, text=True)
        self.server.shutdown()
        equal(done.returncode, 0, done.stdout, done.stderr)
        return [line for line in done.stdout.splitlines() if line.split(" ")[0] in ("event", "gap", "ended")]


def occurrence(name, number, cursor=None):
    event = {"eventId": f"{name}-{number}", "name": name, "timestamp": "2026-07-28T09:30:00Z", "data": {}}
    return event | ({"cursor": cursor} if cursor else {})


def cursors(asked):
    return [request["params"].get("cursor") for request in asked]


def client_without(client):
    host = Host("poll", None, lambda *_: {"error": {"code": -32601, "message": "Method not found"}})
    equal(host.run(client, 1), [])
    equal([asked["method"] for asked in host.asked if asked["method"] != "server/discover"], [])


def client_poll(client):
    changed = threading.Event()
    # The answers to the polls of the type with replay, and the longest and shortest time to the next poll in seconds.
    steps = [
        ({"events": [], "cursor": "t0", "hasMore": False, "nextPollMs": 1}, 0.9, 2),
        ({"events": [occurrence(TICKS, 1)], "cursor": "t1", "hasMore": True, "nextPollMs": 5000}, 0, 1),
        ({"events": [occurrence(TICKS, 1), occurrence(TICKS, 2)], "cursor": "t2", "nextPollMs": 2000}, 1.8, 4),
        ({"error": {"code": -32603, "message": "UpstreamError"}}, 0, 4),
        ({"events": [], "cursor": "fresh", "truncated": True, "nextPollMs": 0}, 0.9, 2),
        ({"error": {"code": NOT_FOUND, "message": "NotFound", "data": {"kind": "event"}}}, 0, 0),
    ]

    def answer(connection, number, method, params, count):
        if method == "subscriptions/listen":
            connection.open()
            wanted, meta = params["notifications"], {"_meta": {ID: number}}
            connection.tell({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": wanted} | meta})
            if wanted.get("eventsListChanged"):
                time.sleep(0.5)
                connection.tell({"method": "notifications/events/list_changed", "params": meta})
                changed.set()
            time.sleep(PAST)
            return None
        equal(method, "events/poll")
        if params["name"] == TICKS:
            return steps[count][0]
        if count == 0:
            return {"events": [occurrence(CURSORLESS, 1)], "cursor": None, "hasMore": False, "nextPollMs": 1000}
        return {"events": [], "hasMore": False, "nextPollMs": 1000, "truncated": True}

    host = Host("poll", {"listChanged": True}, answer)
    heard = host.run(client, PAST)
    polls = host.of("events/poll", TICKS)
    equal(cursors(polls), [None, "t0", "t1", "t2", "t2", "fresh"])
    for number, (before, after) in enumerate(zip(polls, polls[1:])):
        shortest, longest = steps[number][1:]
        assert shortest <= after["at"] - before["at"] <= longest, (number, after["at"] - before["at"])
    ticks = [line for line in heard if TICKS in line]
    equal(ticks, [f"event {TICKS} {TICKS}-1", f"event {TICKS} {TICKS}-2", f"gap {TICKS}", f"ended {TICKS} {NOT_FOUND}"])
    # Nothing is kept of `null` and of what is absent, and there is no gap where there is no replay.
    assert len(host.of("events/poll", CURSORLESS)) >= 3
    equal(set(cursors(host.of("events/poll", CURSORLESS))), {None})
    equal([line for line in heard if CURSORLESS in line], [f"event {CURSORLESS} {CURSORLESS}-1"])
    assert changed.is_set() and len(host.of("events/list")) == 2, host.asked


# The time for which the clients run, in seconds.
PAST = 9


def client_push(client):
    def answer(connection, number, method, params, count):
        equal(method, "events/stream")
        name, meta = params["name"], {"_meta": {ID: number}}
        at = (lambda cursor: {"cursor": cursor}) if name == TICKS else (lambda _: {"cursor": None} if count == 0 else {})

        def tell(kind, members):
            connection.tell({"method": f"notifications/events/{kind}", "params": members | meta})

        connection.open()
        tell("active", at(f"p{count}") | {"truncated": False})
        if count == 0:
            tell("event", occurrence(name, 1) | at("p1"))
            tell("event", occurrence(name, 1) | at("p2"))
            tell("heartbeat", at("beaten"))
            # The connection is lost.
        elif count == 1:
            tell("error", {"error": {"code": -32603, "message": "UpstreamError"}})
            tell("active", at("fresh") | {"truncated": True})
            tell("event", occurrence(name, 2) | at("p4"))
            # The server ends the stream.
            connection.tell({"id": number, "result": {"resultType": "complete"} | meta})
        else:
            tell("terminated", {"error": {"code": FORBIDDEN, "message": "Forbidden"}})
            time.sleep(1)

    host = Host("push", {}, answer)
    heard = host.run(client, PAST)
    equal(cursors(host.of("events/stream", TICKS)), [None, "beaten", "p4"])
    equal(cursors(host.of("events/stream", CURSORLESS)), [None, None, None])
    for name, gap in [(TICKS, [f"gap {TICKS}"]), (CURSORLESS, [])]:
        expected = [f"event {name} {name}-1", *gap, f"event {name} {name}-2", f"ended {name} {FORBIDDEN}"]
        equal([line for line in heard if name in line], expected)


def client_webhook(client):
    ends = {TICKS: [], CURSORLESS: []}

    def answer(connection, number, method, params, count):
        equal(method, "events/subscribe")
        ends[params["name"]].append(time.monotonic() + 3)
        end = datetime.datetime.fromtimestamp(time.time() + 3, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        cursor = f"w{count}" if params["name"] == TICKS else None
        return {"id": f"sub_{params['name']}", "refreshBefore": end, "cursor": cursor, "truncated": False}

    host = Host("webhook", {}, answer)
    host.run(client, PAST)
    for name, of_name in ends.items():
        asked = host.of("events/subscribe", name)
        assert len(asked) >= 3 and all(again["at"] < end for again, end in zip(asked[1:], of_name)), asked
        equal(len({json.dumps([part["params"].get("arguments", {}), part["params"]["delivery"]]) for part in asked}), 1)
        where = asked[0]["params"]["delivery"]
        key = base64.b64decode(where["secret"].removeprefix("whsec_"), validate=True)
        assert where["mode"] == "webhook" and where["url"].startswith("https://") and 24 <= len(key) <= 64, where
        expected = [None] + [f"w{number}" for number in range(len(asked) - 1)] if name == TICKS else [None] * len(asked)
        equal(cursors(asked), expected)


def failed(scenario):
    try:
        scenario()
    except Exception:  # All scenarios are to be heard of.
        return traceback.format_exc()


def main(server, client, port):
    scenarios = [lambda: ask_server(server, int(port)), lambda: ask_webhooks(server, int(port))]
    for options in [[], ["--smol"]]:
        for scenario in [client_without, client_poll, client_push, client_webhook]:
            def run(scenario=scenario, options=options):
                scenario([client, *options])
                print("pass  events ", scenario.__name__.replace("_", " "), *options)
            scenarios.append(run)
    # They wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool:
        failures = [failure for failure in pool.map(failed, scenarios) if failure]
    sys.exit("\n".join(failures) or 0)


main(*sys.argv[1:])
