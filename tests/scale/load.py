"""Clients of all five revisions that talk through a proxy to several processes, and keep books: each request that was accepted
has an answer or an error, and each change is heard by each listener.

A request ends as one of:
  answered   with a result
  refused    with a JSON-RPC error, or with a status of HTTP
  cut        the connection ended, and the stream cannot be resumed: its client knows that it has no answer
  cancelled  by the client itself
  vanished   none of these within `PATIENCE` seconds: a failure, always
`refused` and `cut` are failures too, unless a process or Redis was killed: see `Books.strict`.
"""

import asyncio
import collections
import json
import random
import time

from wire import Cut, send

PATIENCE = 15.0  # seconds until a request without an answer counts as vanished
HEARD = 10.0  # seconds until a change that was not heard counts as missed
SETTLE = 0.3  # seconds until a new listener has to hear everything
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
OLDEST, MODERN = "2024-11-05", "2026-07-28"
WATCHED = "test://watched-resource"
CAPABILITIES = {"sampling": {}, "elicitation": {}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
CHANGES = {
    "test_trigger_tool_change": "notifications/tools/list_changed",
    "test_trigger_prompt_change": "notifications/prompts/list_changed",
    "test_trigger_resource_change": "notifications/resources/updated",
}


class Refused(Exception):
    """An answer that is an error: a status of HTTP, or a code of JSON-RPC."""


class Books:
    """What has become of the requests and changes."""

    def __init__(self):
        self.outcomes = collections.Counter()  # (revision, what, outcome)
        self.changes = collections.Counter()
        self.failures = []
        self.details = collections.Counter()
        # Nothing may fail while nothing is killed.
        self.strict = True
        self.losses = []  # times at which a process or Redis was killed

    def fail(self, words):
        """Notes a failure."""
        self.failures.append(words)

    def end(self, revision, what, outcome, detail=""):
        """Notes the end of a request."""
        self.outcomes[revision, what, outcome] += 1
        if detail:
            self.details[f"{outcome}: {what} {detail}"] += 1
        if outcome == "vanished" or self.strict and outcome in ("refused", "cut"):
            self.fail(f"{revision} {what}: {outcome} {detail}")

    def lost_since(self, when):
        """Returns how many kills there were since a time, and a little before it: what they lost is told later."""
        return sum(lost > when - HEARD for lost in self.losses)

    def table(self):
        """Returns the numbers in lines."""
        kinds = ["answered", "refused", "cut", "cancelled", "vanished"]
        lines = [f"{'':34}" + "".join(f"{kind:>11}" for kind in kinds)]
        for revision, what in sorted({key[:2] for key in self.outcomes}):
            counts = [self.outcomes[revision, what, kind] for kind in kinds]
            lines.append(f"{revision + ' ' + what:34}" + "".join(f"{count or '.':>11}" for count in counts))
        total = [sum(count for key, count in self.outcomes.items() if key[2] == kind) for kind in kinds]
        lines.append(f"{'all':34}" + "".join(f"{count or '.':>11}" for count in total))
        lines.append("changes: " + ", ".join(f"{count} {what}" for what, count in self.changes.items()))
        return lines


def ended(message):
    """Returns the result of a response. Raises `Refused` if it is an error."""
    if error := message.get("error"):
        raise Refused(f"{error['code']} {error['message']}")
    return message["result"]


def reply(request):
    """Returns the answer of a client to a request of the server."""
    if request["method"] == "elicitation/create":
        result = {"action": "accept", "content": {"username": "ann", "email": "ann@example.com"}}
    elif request["method"] == "sampling/createMessage":
        result = {"role": "assistant", "content": {"type": "text", "text": "four"}, "model": "m"}
    else:
        result = {}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class Hearing:
    """A listener: when it heard what, and since when it hears without having read anew."""

    def __init__(self, name):
        self.name, self.heard, self.since = name, [], None

    def note(self, method, params=None):
        """Notes a notification."""
        if method in CHANGES.values():
            self.heard.append((method, time.monotonic()))

    def begin(self):
        """It has read everything, and hears from now on."""
        self.since = time.monotonic()

    def stop(self):
        """It hears nothing for now, and will read everything when it does again."""
        self.since = None


class Client:
    """What the clients of all revisions have in common: `ask` sends a request and returns its result."""

    def __init__(self, load, revision, number):
        self.load, self.port, self.books, self.revision = load, load.port, load.books, revision
        self.name, self.number, self.ids = f"{revision} {number}", number, 0
        # The request that the client has cancelled: its stream is not resumed.
        self.cancelled = None

    def next_id(self):
        """Returns the id of the next request."""
        self.ids += 1
        return self.ids

    async def counted(self, what, work):
        """Does `work`, which is one request, and notes its end. Returns its result, or None."""
        try:
            async with asyncio.timeout(PATIENCE):
                result = await work
        except TimeoutError:
            self.books.end(self.revision, what, "vanished")
        except Refused as error:
            self.books.end(self.revision, what, "refused", str(error))
        except Cut as error:
            self.books.end(self.revision, what, "cut", str(error))
        else:
            self.books.end(self.revision, what, "cancelled" if result == "cancelled" else "answered")
            return result
        return None

    def expect(self, right, words):
        """Notes a failure of what has to be so while nothing is killed."""
        if not right and self.books.strict:
            self.books.fail(f"{self.name}: {words}")

    async def trigger(self, name):
        """Makes a change. Returns the times before and after, None if it is unknown whether it was made."""
        before = time.monotonic()
        result = await self.counted("change", self.ask("tools/call", {"name": name, "arguments": {}}))
        return (before, time.monotonic()) if result else None


class Session(Client):
    """A client of 2025-03-26 to 2025-11-25: a session, which stays at one process. With that process it may be gone: 404, and the
    client begins anew."""

    def __init__(self, load, revision, number):
        super().__init__(load, revision, number)
        self.session, self.is_gone = None, False
        self.hearing = Hearing(self.name)
        load.hearings.append(self.hearing)

    def headers(self):
        """Returns the headers of a request in the session."""
        found = {"Accept": "application/json, text/event-stream"}
        if self.session:
            found["Mcp-Session-Id"] = self.session
        if self.session and self.revision != "2025-03-26":
            found["MCP-Protocol-Version"] = self.revision
        return found

    async def post(self, message):
        """Posts a message, and returns the response."""
        response = await send(self.port, "POST", "/mcp", self.headers(), message)
        self.note_gone(response)
        return response

    def note_gone(self, response):
        """Notes that there is no such session any more."""
        self.is_gone |= response.status == 404

    async def tell(self, message):
        """Posts a notification or a response, again after a status of 5xx or a cut: to repeat it does no harm. Returns the
        last status."""
        deadline = time.monotonic() + 10
        while True:
            try:
                response = await self.post(message)
                await response.body()
                if response.status < 500 or time.monotonic() > deadline:
                    return response.status
                status = response.status
            except Cut:
                status = 0
            if time.monotonic() > deadline:
                return status
            await asyncio.sleep(0.1)

    async def ask(self, method, params, leave=False, hear=None):
        """Sends a request, answers what the server asks meanwhile, resumes the stream if it breaks. With `leave` the client
        hangs up itself after the first event."""
        request = self.next_id()
        response = await self.post({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        if response.status != 200:
            await response.body()
            raise Refused(f"HTTP {response.status}")
        if not response.is_stream:
            return ended(await response.json())
        last = None
        while True:
            why = "the stream ended without an answer"
            try:
                async for identity, _, data in response.events():
                    last = identity or last
                    message = json.loads(data) if data else {}
                    if message.get("id") == request and "method" not in message:
                        return ended(message)
                    if "method" in message and "id" in message:
                        status = await self.tell(reply(message))
                        self.expect(status == 202, f"an answer to the server: {status}")
                    elif "method" in message and hear is not None:
                        hear.append(message["method"])
                    if leave and last:
                        leave = False
                        self.books.changes["streams left and resumed"] += 1
                        break
            except Cut as error:
                why = str(error)
            finally:
                response.close()
            if last is None or request == self.cancelled:
                raise Cut(why)
            response = await self.resume(last, why)

    async def resume(self, last, why):
        """Opens a broken stream again, after the event `last`."""
        while True:
            try:
                response = await send(self.port, "GET", "/mcp", self.headers() | {"Last-Event-ID": last})
            except Cut:
                await asyncio.sleep(0.1)
                continue
            if response.status == 200:
                return response
            self.note_gone(response)
            await response.body()
            if response.status < 500:
                raise Cut(f"{why}, and resumed: HTTP {response.status}")
            await asyncio.sleep(0.1)

    async def open(self):
        """Opens a session. Tries until it has one."""
        info = {"name": "load", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": info}
        while True:
            self.session, self.is_gone, found = None, False, {}

            async def initialize():
                response = await self.post({"jsonrpc": "2.0", "id": self.next_id(), "method": "initialize", "params": params})
                found.update(response.headers)
                if response.status != 200:
                    raise Refused(f"HTTP {response.status}")
                if not response.is_stream:
                    return ended(await response.json())
                async for _, _, data in response.events():
                    if data:
                        response.close()
                        return ended(json.loads(data))
                raise Cut("no answer")

            if await self.counted("initialize", initialize()):
                self.session = found["mcp-session-id"]
                status = await self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
                self.expect(status == 202, f"initialized: {status}")
                return
            await asyncio.sleep(0.2)

    async def close(self):
        """Ends the session: no process serves it any more."""
        response = await send(self.port, "DELETE", "/mcp", self.headers())
        await response.body()
        self.expect(response.status in (200, 202, 204), f"DELETE: {response.status}")
        for _ in range(3):
            response = await self.post({"jsonrpc": "2.0", "id": self.next_id(), "method": "ping"})
            await response.body()
            self.expect(response.status == 404, f"a request after DELETE: {response.status}")

    async def listen(self):
        """Holds the stream of the session open, until it is cancelled."""
        last = None
        while True:
            try:
                more = {"Last-Event-ID": last} if last else {}
                response = await send(self.port, "GET", "/mcp", self.headers() | more)
                if response.status != 200:
                    await response.body()
                    self.expect(response.status >= 500 or last, f"GET: {response.status}")
                    # It reads everything anew, and begins a new stream, or a new session.
                    last = None
                    self.hearing.stop()
                    self.note_gone(response)
                    if self.is_gone:
                        return
                    await asyncio.sleep(0.1)
                    continue
                if self.hearing.since is None:
                    self.hearing.begin()
                async for identity, _, data in response.events():
                    last = identity or last
                    if data:
                        self.hearing.note(json.loads(data).get("method"))
                why = "ended"
            except (Cut, TimeoutError) as error:
                why = str(error)
            self.expect(False, f"the stream of the session is gone: {why}")
            self.books.changes["streams of sessions lost"] += 1
            if not last:
                self.hearing.stop()
            await asyncio.sleep(0.05)

    async def run(self):
        """Opens sessions, one after the other, and talks in each."""
        while self.load.goes_on:
            await self.open()
            subscribed = await self.counted("subscribe", self.ask("resources/subscribe", {"uri": WATCHED}))
            listening = asyncio.create_task(self.listen())
            if subscribed is None:
                self.hearing.name += " (not subscribed)"
            for _ in range(self.load.turns):
                if not self.load.goes_on or self.is_gone:
                    break
                await random.choice(self.talks())()
                await asyncio.sleep(self.load.pause)
            listening.cancel()
            self.hearing.stop()
            await asyncio.gather(listening, return_exceptions=True)
            if self.is_gone:
                self.expect(False, "the session is gone")
                self.books.changes["sessions begun anew"] += 1
                continue
            try:
                await self.close()
            except (Cut, TimeoutError) as error:
                self.expect(False, f"DELETE: {error}")

    def talks(self):
        """Returns what it may do next."""
        return [self.call, self.call, self.call, self.question, self.cancel, self.long, self.polled, self.logs]

    async def call(self):
        """A call that is answered at once."""
        await self.counted("call", self.ask("tools/call", {"name": "test_simple_text", "arguments": {}}))

    async def question(self):
        """A call in which the server asks."""
        if self.revision >= "2025-06-18" and random.random() < 0.7:
            params = {"name": "test_elicitation", "arguments": {"message": "Who are you?"}}
        else:
            params = {"name": "test_sampling", "arguments": {"prompt": "What is 2+2?"}}
        result = await self.counted("question", self.ask("tools/call", params))
        self.expect(result is None or not result.get("isError"), f"question: {result}")

    async def cancel(self):
        """A call that the client cancels."""

        async def work():
            request, params = self.ids + 1, {"name": "slow_compute", "arguments": {"seconds": 2}}
            asking = asyncio.create_task(self.ask("tools/call", params))
            await asyncio.sleep(0.1)
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}
            self.cancelled = request
            await self.tell(message)
            told = time.monotonic()
            try:
                await asking
            except Cut:
                # The stream ends without an answer, at once.
                self.expect(time.monotonic() - told < 1, "a cancel took long")
                return "cancelled"
            self.expect(False, "a cancel had no effect")
            return "answered"

        await self.counted("cancel", work())

    async def long(self):
        """A call with progress whose stream breaks, and is resumed."""
        heard, token = [], random.randrange(1 << 30)
        params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": token}}
        result = await self.counted("resumed", self.ask("tools/call", params, leave=True, hear=heard))
        self.expect(result is None or heard.count("notifications/progress") == 3, f"progress: {heard}")

    async def polled(self):
        """A call whose stream the server closes: the client comes back."""
        await self.counted("polled", self.ask("tools/call", {"name": "test_reconnection", "arguments": {}}))

    async def logs(self):
        """The level of the log, and what is logged."""
        level = random.choice(["debug", "emergency"])
        done = await self.counted("setLevel", self.ask("logging/setLevel", {"level": level}))
        heard = []
        params = {"name": "test_tool_with_logging", "arguments": {}}
        result = await self.counted("logs", self.ask("tools/call", params, hear=heard))
        count, wanted = heard.count("notifications/message"), 3 if level == "debug" else 0
        self.expect(done is None or result is None or count == wanted, f"{count} messages at level {level}")


class Oldest(Client):
    """A client of 2024-11-05: its session is its stream."""

    def __init__(self, load, revision, number):
        super().__init__(load, revision, number)
        self.waiting, self.path, self.notes = {}, None, []
        self.hearing = Hearing(self.name)
        load.hearings.append(self.hearing)

    async def tell(self, message):
        """Posts a message: again after 5xx, as a status says that it was not taken. Returns the last status."""
        deadline = time.monotonic() + 10
        while True:
            response = await send(self.port, "POST", self.path, {}, message)
            await response.body()
            if response.status < 500 or time.monotonic() > deadline:
                return response.status
            await asyncio.sleep(0.1)

    async def ask(self, method, params):
        """Sends a request. Its answer comes on the stream."""
        request = self.next_id()
        answer = self.waiting[request] = asyncio.get_running_loop().create_future()
        try:
            status = await self.tell({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
            if status not in (200, 202):
                raise Refused(f"HTTP {status}")
            return ended(await answer)
        finally:
            self.waiting.pop(request, None)

    async def hold(self, opened):
        """Reads the stream, until it ends."""
        why = "the stream ended"
        try:
            response = await send(self.port, "GET", "/sse", {"Accept": "text/event-stream"})
            if response.status != 200:
                raise Cut(f"HTTP {response.status}")
            async for _, name, data in response.events():
                if name == "endpoint":
                    self.path = data
                    opened.set_result(True)
                    continue
                message = json.loads(data)
                if "method" not in message:
                    waiting = self.waiting.get(message.get("id"))
                    if waiting and not waiting.done():
                        waiting.set_result(message)
                elif "id" in message:
                    self.load.spawn(self.answer(message))
                else:
                    self.notes.append(message["method"])
                    self.hearing.note(message["method"])
        except (Cut, TimeoutError) as error:
            why = str(error)
        finally:
            self.hearing.stop()
            for waiting in [opened, *self.waiting.values()]:
                if not waiting.done():
                    waiting.set_exception(Cut(why))
                    # It may be that it waits for nothing any more.
                    waiting.exception()

    async def answer(self, request):
        """Answers a request of the server."""
        try:
            status = await self.tell(reply(request))
            self.expect(status in (200, 202), f"an answer to the server: {status}")
        except (Cut, TimeoutError) as error:
            self.expect(False, f"an answer to the server: {error}")

    async def run(self):
        """Opens streams, one after the other, and talks on each."""
        while self.load.goes_on:
            self.waiting, self.notes = {}, []
            opened = asyncio.get_running_loop().create_future()
            holding = asyncio.create_task(self.hold(opened))
            try:
                async with asyncio.timeout(PATIENCE):
                    await opened
            except (Cut, TimeoutError) as error:
                self.expect(False, f"GET /sse: {error}")
                holding.cancel()
                await asyncio.gather(holding, return_exceptions=True)
                await asyncio.sleep(0.2)
                continue
            await self.talk(holding)
            self.hearing.stop()
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)

    async def talk(self, holding):
        """Talks on an open stream."""
        info = {"name": "load", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": info}
        if not await self.counted("initialize", self.ask("initialize", params)):
            return
        try:
            await self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except (Cut, TimeoutError):
            return
        if await self.counted("subscribe", self.ask("resources/subscribe", {"uri": WATCHED})) is None:
            return
        self.hearing.begin()
        for _ in range(self.load.turns):
            if not self.load.goes_on or holding.done():
                return
            await random.choice([self.call, self.call, self.question, self.long, self.cancel, self.logs])()
            await asyncio.sleep(self.load.pause)

    async def call(self):
        """A call that is answered at once."""
        await self.counted("call", self.ask("tools/call", {"name": "test_simple_text", "arguments": {}}))

    async def question(self):
        """A call in which the server asks."""
        params = {"name": "test_sampling", "arguments": {"prompt": "What is 2+2?"}}
        await self.counted("question", self.ask("tools/call", params))

    async def long(self):
        """A call with progress."""
        params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": self.ids + 1}}
        self.notes.clear()
        result = await self.counted("progress", self.ask("tools/call", params))
        heard = self.notes.count("notifications/progress")
        self.expect(result is None or heard == 3, f"{heard} of 3 times progress")

    async def logs(self):
        """The level of the log, and what is logged."""
        level = random.choice(["debug", "emergency"])
        done = await self.counted("setLevel", self.ask("logging/setLevel", {"level": level}))
        self.notes.clear()
        result = await self.counted("logs", self.ask("tools/call", {"name": "test_tool_with_logging", "arguments": {}}))
        count, wanted = self.notes.count("notifications/message"), 3 if level == "debug" else 0
        self.expect(done is None or result is None or count == wanted, f"{count} messages at level {level}")

    async def cancel(self):
        """A call that the client cancels. There is no answer then."""

        async def work():
            request, params = self.ids + 1, {"name": "slow_compute", "arguments": {"seconds": 2}}
            asking = asyncio.create_task(self.ask("tools/call", params))
            await asyncio.sleep(0.1)
            await self.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
            done, _ = await asyncio.wait([asking], timeout=2.5)
            if done:
                asking.result()
                self.expect(False, "a cancel had no effect")
                return "answered"
            asking.cancel()
            return "cancelled"

        await self.counted("cancel", work())


class Modern(Client):
    """A client of 2026-07-28: each request stands alone."""

    def __init__(self, load, revision, number):
        super().__init__(load, revision, number)
        self.hearing = Hearing(self.name)
        load.hearings.append(self.hearing)

    async def post(self, method, params, tasks=False):
        """Posts a request, and returns its id and the response."""
        request = self.next_id()
        meta = {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientCapabilities": CAPABILITIES | (TASKS if tasks else {}),
            "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
        }
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": self.revision, "Mcp-Method": method}
        if name := params.get("name") or params.get("taskId"):
            headers["Mcp-Name"] = name
        body = {"jsonrpc": "2.0", "id": request, "method": method, "params": params | {"_meta": meta}}
        return request, await send(self.port, "POST", "/mcp", headers, body)

    async def ask(self, method, params, tasks=False):
        """Sends a request and returns its result."""
        request, response = await self.post(method, params, tasks)
        try:
            if not response.is_stream:
                message = await response.json()
                if not message or response.status >= 500:
                    raise Refused(f"HTTP {response.status}")
                return ended(message)
            async for _, _, data in response.events():
                message = json.loads(data) if data else {}
                if message.get("id") == request and "method" not in message:
                    return ended(message)
            raise Cut("the stream ended without an answer")
        except json.JSONDecodeError:
            raise Refused(f"HTTP {response.status}") from None
        finally:
            response.close()

    async def listen(self):
        """Holds a `subscriptions/listen` open, until it is cancelled."""
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": [WATCHED]}
        while True:
            why = "it ended"
            try:
                _, response = await self.post("subscriptions/listen", {"notifications": wanted})
                if response.status == 200:
                    async for _, _, data in response.events():
                        method = json.loads(data).get("method") if data else None
                        if method == "notifications/subscriptions/acknowledged":
                            # It reads everything now.
                            self.hearing.begin()
                        self.hearing.note(method)
                else:
                    why = f"HTTP {response.status}"
                response.close()
            except (Cut, TimeoutError) as error:
                why = str(error)
            self.hearing.stop()
            self.expect(False, f"the listen is gone: {why}")
            self.books.changes["listens lost"] += 1
            await asyncio.sleep(0.1)

    async def run(self):
        """Talks, beside a listen."""
        listening = asyncio.create_task(self.listen())
        talks = [self.call, self.call, self.call, self.question, self.cancel, self.long, self.task, self.asking_task]
        while self.load.goes_on:
            await random.choice(talks)()
            await asyncio.sleep(self.load.pause)
        listening.cancel()
        self.hearing.stop()
        await asyncio.gather(listening, return_exceptions=True)

    async def call(self):
        """A call that is answered at once."""
        await self.counted("call", self.ask("tools/call", {"name": "test_simple_text", "arguments": {}}))

    async def question(self):
        """A call that needs an answer: the second request goes to any process."""
        params = {"name": "test_elicitation", "arguments": {"message": "Who are you?"}}

        async def work():
            result = await self.ask("tools/call", params)
            answers = {key: reply({"id": 0, **asked})["result"] for key, asked in result["inputRequests"].items()}
            more = {"inputResponses": answers}
            if "requestState" in result:
                more["requestState"] = result["requestState"]
            return await self.ask("tools/call", params | more)

        result = await self.counted("question", work())
        self.expect(result is None or "accept" in json.dumps(result), f"question: {result}")

    async def cancel(self):
        """A call that the client cancels: it hangs up."""

        async def work():
            _, response = await self.post("tools/call", {"name": "slow_compute", "arguments": {"seconds": 2}})
            await asyncio.sleep(0.1)
            response.close()
            return "cancelled"

        await self.counted("cancel", work())

    async def long(self):
        """A call that takes a while."""
        await self.counted("progress", self.ask("tools/call", {"name": "test_tool_with_progress", "arguments": {}}))

    async def task(self):
        """A task that is polled."""
        params = {"name": "slow_compute", "arguments": {"seconds": 1, "label": "load"}}
        await self.follow("task", params)

    async def asking_task(self):
        """A task that asks while it runs."""
        await self.follow("asking task", {"name": "confirm_delete", "arguments": {"filename": "a.txt"}})

    async def follow(self, what, params):
        """Begins a task, and polls it to its end."""

        async def work():
            result = await self.ask("tools/call", params, tasks=True)
            if result["resultType"] != "task":
                # Too much is being done.
                return result
            identity = {"taskId": result["taskId"]}
            while True:
                try:
                    task = await self.ask("tasks/get", identity, tasks=True)
                except Cut:
                    # To poll again does no harm.
                    await asyncio.sleep(0.1)
                    continue
                except Refused as error:
                    # The process of the task is gone, and counts as alive for some seconds.
                    if "HTTP 5" not in str(error) and "try again" not in str(error):
                        raise
                    await asyncio.sleep(0.1)
                    continue
                if task["status"] == "completed":
                    return task["result"]
                if task["status"] in ("failed", "cancelled"):
                    raise Refused(f"{task['status']} {task.get('statusMessage', '')}")
                if task["status"] == "input_required":
                    answers = {key: {"action": "accept", "content": {"confirm": True}} for key in task["inputRequests"]}
                    try:
                        await self.ask("tasks/update", identity | {"inputResponses": answers}, tasks=True)
                    except Cut:
                        continue
                await asyncio.sleep(0.1)

        await self.counted(what, work())


class Load:
    """Clients of all revisions, and a client that makes changes."""

    def __init__(self, port, clients=1, revisions=(OLDEST, *LEGACY, MODERN), pause=0.05, turns=25):
        self.port, self.pause, self.turns = port, pause, turns
        self.books, self.hearings, self.goes_on, self.tasks = Books(), [], True, []
        kinds = {OLDEST: Oldest, MODERN: Modern}
        self.clients = [kinds.get(revision, Session)(self, revision, number)
                        for revision in revisions for number in range(clients)]

    def spawn(self, work):
        """Starts a task that ends with the load, at the latest."""
        task = asyncio.create_task(work)
        self.tasks.append(task)
        task.add_done_callback(self.tasks.remove)

    async def run(self):
        """Runs until `goes_on` is false."""
        guarded = [self.guard(client.run()) for client in [*self.clients, Changer(self)]]
        await asyncio.gather(*guarded)
        for task in list(self.tasks):
            task.cancel()

    async def guard(self, work):
        """A client that fails by itself is a failure, and ends it all."""
        try:
            await work
        except Exception as error:  # noqa: BLE001
            self.books.fail(f"the load client itself: {type(error).__name__}: {error}")
            self.goes_on = False
            raise


class Changer:
    """Makes a change, waits until each listener has heard it, and makes the next one."""

    def __init__(self, load):
        self.load, self.books = load, load.books
        # It makes no listener.
        self.client = Modern(load, MODERN, "changer")
        load.hearings.remove(self.client.hearing)

    async def run(self):
        """Makes changes until the load ends."""
        while self.load.goes_on:
            for name, method in CHANGES.items():
                # What is under way of the change before arrives now, also at listeners that are too new to count.
                await asyncio.sleep(0.15)
                listeners = [(one, one.since) for one in self.load.hearings if one.since]
                losses = len(self.books.losses)
                times = await self.client.trigger(name)
                if times is None:
                    continue
                self.books.changes["made"] += 1
                waits = [self.heard(one, since, name, method, times[0], losses) for one, since in listeners
                         if since < times[0] - SETTLE]
                await asyncio.gather(*waits)

    async def heard(self, listener, since, name, method, made, losses):
        """Waits until a listener has heard a change; once, unless something was lost."""

        def count():
            return sum(kind == method and when >= made for kind, when in listener.heard)

        deadline = made + HEARD
        while not count() and listener.since == since and time.monotonic() < deadline and self.load.goes_on:
            await asyncio.sleep(0.02)
        if not self.load.goes_on:
            return
        if listener.since != since:
            self.books.changes["read anew, as the stream was lost"] += 1
            return
        if not count():
            self.books.changes["missed"] += 1
            self.books.fail(f"{listener.name} has not heard {name} in {HEARD:.0f} s")
            return
        self.books.changes["heard"] += 1
        await asyncio.sleep(0.15)
        more = count() - 1
        if more > 0 and listener.since == since:
            # Lists that may have changed are announced after a loss.
            if self.books.lost_since(made) or len(self.books.losses) > losses:
                self.books.changes["heard once more after a loss"] += more
            else:
                self.books.fail(f"{listener.name} has heard {name} {1 + more} times")
