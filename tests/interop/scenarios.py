"""The scenarios: what every client does with every server, and what must come of it.

Each is written once. A driver turns its operations into calls of an SDK, so a
scenario fails when the SDK cannot do with our server what it should, when the
SDK complains of anything meanwhile, or when the bytes on the wire are not what
the revision asks for. The wire is looked at only over stdio.
"""

import asyncio
import json
import os
import re
import time

from harness import LEGACY, MODERN, Failure, short

SCENARIOS = []  # (name, servers, revisions, function)
ALL = ["calc", "sysmon", "firmware", "board"]
EVERY = [*LEGACY, MODERN]

# What a client cannot do, and why. None stands for any.
# (client, server, transport, revision, scenario): reason
SKIPS = {
    ("python-1.30", None, "stdio", None, "shutdown.busy"): (
        "close() of the SDK fails, and kills the server, when a message comes in meanwhile"
    ),
    ("npm-client-2.4", None, None, MODERN, "ping"): "the SDK refuses to send ping under this revision",
}


def skip_reason(client, server, transport, revision, name):
    for (c, s, t, r, n), reason in SKIPS.items():
        if (
            c in (None, client)
            and s in (None, server)
            and t in (None, transport)
            and r in (None, revision)
            and n == name
        ):
            return reason
    return None


def applicable(server, revision):
    return [(n, f) for n, servers, revisions, f in SCENARIOS if server in servers and revision in revisions]


def scenario(name, servers=("calc", "sysmon", "firmware", "board"), revisions=EVERY):
    def register(function):
        SCENARIOS.append((name, list(servers), list(revisions), function))
        return function

    return register


TOOLS = {
    "calc": {"add", "echo"},
    "sysmon": {"uptime", "load", "memory", "disk", "processes", "watch", "kill_hint", "overview"},
    "firmware": {"read_temperature", "set_led", "history"},
    "board": {"read_temperature", "set_led", "history", "measure", "uptime", "show_board"},
}
STRUCTURED = {"uptime", "load", "memory", "disk", "processes"}  # of sysmon, at the least
RESOURCES = {"sys://load", "sys://memory"}
# A call that takes a while and tells how far it is: for a second, and for so long that it has to be cancelled.
WATCH = {
    "sysmon": ("watch", {"seconds": 1, "interval_ms": 200}, {"seconds": 15, "interval_ms": 100}),
    "board": ("measure", {"samples": 5, "interval_ms": 200}, {"samples": 150, "interval_ms": 100}),
}
# What changes by itself.
CHANGES = {"sysmon": "sys://load", "board": "board://temperature"}
TEMPLATE = "proc://{pid}/status"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
META = "io.modelcontextprotocol/"


# Helpers


def text_of(result):
    """The text of a tool result that has one block of text, or more."""
    blocks = result.get("content")
    if not isinstance(blocks, list) or not blocks or any(b.get("type") != "text" for b in blocks):
        raise Failure(f"content is not text: {short(blocks)}")
    text = "".join(b["text"] for b in blocks)
    if not text:
        raise Failure("the text is empty")
    return text


def good(result):
    """The text of a result which is no error."""
    if result.get("isError"):
        raise Failure(f"isError: {short(result)}")
    return text_of(result)


def bad(result):
    """The text of a result which is an error that a model can read."""
    if result.get("isError") is not True:
        raise Failure(f"no isError: {short(result)}")
    if "structuredContent" in result:
        raise Failure(f"structured content beside isError: {short(result)}")
    return text_of(result)


def numbers(value):
    """Every number in a JSON value, or in a text."""
    if isinstance(value, bool):
        return []
    if isinstance(value, (int, float)):
        return [value]
    if isinstance(value, str):
        return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return []


def near(found, wanted, part=0.02, more=0.0):
    return any(abs(n - wanted) <= abs(wanted) * part + more for n in found)


def kib(found, wanted_bytes, part):
    """The amount is there in bytes, KiB, MiB or GiB."""
    return any(near(found, wanted_bytes / unit, part) for unit in (1, 1024, 1024**2, 1024**3))


def meminfo(name):
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise Failure(f"no {name} in /proc/meminfo")


async def structured(t, name, arguments):
    """Calls a sysmon tool after the tools were listed, so that the client checks
    the result against the output schema; gives its data, from the text where the
    revision has no structured content."""
    await t.do("list_all", what="tools")
    result = await t.call(name, arguments)
    text = good(result)
    if t.wire:
        request = t.wire.requests("tools/call")[-1]
        result = t.wire.answer(request)["result"]
    try:
        from_text = json.loads(text)
    except ValueError:
        from_text = None
    if not t.at_least("2025-06-18"):
        t.expect("structuredContent" not in result, f"{t.revision} has no structuredContent, but it was sent")
        return text if from_text is None else from_text
    t.expect("structuredContent" in result, f"no structuredContent: {short(result)}")
    data = result["structuredContent"]
    t.expect(isinstance(data, dict), f"structuredContent is no object: {short(data)}")
    t.expect(from_text == data, f"the text {short(text)} does not say what structuredContent says: {short(data)}")
    return data


def instance(schema):
    """Content that fits the schema of an elicitation."""
    content = {}
    for name, field in schema["properties"].items():
        kind = field["type"]
        if "enum" in field:
            content[name] = field["enum"][0]
        elif "oneOf" in field:
            content[name] = field["oneOf"][0]["const"]
        elif kind == "boolean":
            content[name] = True
        elif kind in ("integer", "number"):
            content[name] = field.get("minimum", 1)
        elif kind == "string":
            content[name] = "x" * max(field.get("minLength", 0), 4)
        else:
            raise Failure(f"a field of type {kind!r} in an elicitation")
    return content


# Opening


@scenario("connect")
async def connect(t):
    info = await t.connect()
    server = info["serverInfo"]
    t.expect(server and server.get("name") and server.get("version"), f"server info: {short(server)}")
    if t.server != "firmware":
        t.equal(server["name"], t.server, "the name of the server")
    capabilities = info["capabilities"]
    t.expect("tools" in capabilities, f"capabilities: {short(capabilities)}")
    if t.server == "sysmon":
        t.expect(capabilities.get("resources", {}).get("subscribe") is True, f"capabilities: {short(capabilities)}")
        wanted = {"prompts", "logging"} | ({"completions"} if t.at_least("2025-03-26") else set())
        t.expect(wanted <= set(capabilities), f"capabilities: {short(capabilities)}")
        t.expect(info["instructions"], "no instructions")
    await t.close()  # so that all of it is in the log
    if t.wire and t.modern:
        t.equal(t.wire.requests("initialize"), [], "requests to initialize")
        # The TypeScript client asks a first process, and uses a second one.
        asked = [m for _, m in t.wire.messages("in", True) if m.get("method") == "server/discover"]
        t.expect(len(asked) == 1, f"{len(asked)} requests to discover")
        answers = [m for _, m in t.wire.messages("out", True) if m.get("id") == asked[0]["id"]]
        result = answers[0]["result"]
        t.expect(MODERN in result["supportedVersions"], f"supportedVersions: {result['supportedVersions']}")
        t.expect(result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private"), short(result))
        t.equal(info.get("instructions"), result.get("instructions"), "instructions")
    elif t.wire:
        requests = t.wire.requests("initialize")
        t.equal([r["params"]["protocolVersion"] for r in requests], [t.revision], "the revision that was offered")
        result = t.wire.answer(requests[0])["result"]
        t.equal(result["protocolVersion"], t.revision, "the revision that was answered")
        t.equal(info.get("instructions"), result.get("instructions"), "instructions")
        t.equal(len(t.wire.notifications("notifications/initialized", "in")), 1, "notifications/initialized")
        if not t.at_least("2025-06-18"):
            t.expect("title" not in result["serverInfo"], f"a title under {t.revision}")


@scenario("connect.pinned", revisions=[MODERN])
async def connect_pinned(t):
    """The client is told the revision, and the Python one asks nothing before it calls."""
    await t.connect(pinned=True)
    await call_something(t)
    if t.wire and t.client.startswith("python"):
        first = t.wire.messages("in")[0][1]
        t.equal(first["method"], "tools/call", "the first request")


async def call_something(t):
    """A call which shows that the connection serves."""
    if t.server == "calc":
        t.equal(good(await t.call("add", {"a": 20, "b": 22})), "42", "20 + 22")
    elif t.server == "sysmon":
        good(await t.call("uptime"))
    else:
        good(await t.call("read_temperature"))


@scenario("ping")
async def ping(t):
    await t.connect()
    if t.modern:
        await t.refused(-32601, "ping")  # there is no such method any more
        await call_something(t)
        return
    t.equal(await t.do("ping"), {}, "the answer to ping")
    if t.wire:
        t.equal(t.wire.answer(t.wire.requests("ping")[0])["result"], {}, "the answer to ping")


# Lists


@scenario("tools.list")
async def tools_list(t):
    await t.connect()
    tools = (await t.do("list_all", what="tools"))["items"]
    names = [tool["name"] for tool in tools]
    t.equal(len(names), len(set(names)), "different names")
    t.expect(TOOLS[t.server] <= set(names), f"tools: {names}")
    for tool in tools:
        t.expect(tool.get("description"), f"no description of {tool['name']}")
        t.equal(tool["inputSchema"]["type"], "object", f"the input schema's type of {tool['name']}")
    by_name = {tool["name"]: tool for tool in tools}
    if t.server == "calc":
        schema = by_name["add"]["inputSchema"]
        t.equal({n: p["type"] for n, p in schema["properties"].items()}, {"a": "integer", "b": "integer"}, "add takes")
        t.equal(sorted(schema["required"]), ["a", "b"], "add requires")
    if t.server == "sysmon" and t.at_least("2025-06-18"):
        lacking = [n for n in STRUCTURED if "outputSchema" not in by_name[n]]
        t.expect(not lacking, f"no outputSchema: {lacking}")
    if t.wire:
        requests = t.wire.requests("tools/list")
        t.equal(len(requests), 1, "requests for the only page")
        result = t.wire.answer(requests[0])["result"]
        t.expect("nextCursor" not in result, "a cursor, though no page size was set")
        for tool in result["tools"]:
            carried = {"name", "description", "inputSchema"}
            carried |= {"annotations"} if t.at_least("2025-03-26") else set()
            carried |= {"title", "outputSchema", "_meta"} if t.at_least("2025-06-18") else set()
            carried |= {"icons", "execution"} if t.at_least("2025-11-25") else set()
            t.expect(set(tool) <= carried, f"{t.revision} has no {sorted(set(tool) - carried)} in a tool")
        if t.modern:
            t.expect(result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private"), "no caching members")


@scenario("tools.list.paged", servers=["sysmon"])
async def tools_list_paged(t):
    await t.connect()
    whole = (await t.do("list_all", what="tools"))["items"]
    await t.close()
    await t.connect("--page-size", "3")
    listed = await t.do("list_all", what="tools")
    t.equal([i["name"] for i in listed["items"]], [i["name"] for i in whole], "the tools of all pages")
    t.expect(listed["pages"] in (None, -(-len(whole) // 3)), f"{listed['pages']} pages")
    if t.wire:
        pages = [(r, t.wire.answer(r)["result"]) for r in t.wire.requests("tools/list")]
        t.equal([len(p["tools"]) for _, p in pages][:-1], [3] * (len(pages) - 1), "tools on a full page")
        t.expect(len(pages) == -(-len(whole) // 3), f"{len(pages)} pages")
        t.expect("nextCursor" not in pages[-1][1], "a cursor on the last page")
        for (_, page), (request, _) in zip(pages, pages[1:]):
            t.equal(request["params"]["cursor"], page["nextCursor"], "the cursor")
    await t.refused(-32602, "list", what="tools", cursor="no such cursor")


@scenario("resources.list", servers=["sysmon"])
async def resources_list(t):
    await t.connect()
    resources = (await t.do("list_all", what="resources"))["items"]
    uris = [r["uri"] for r in resources]
    t.equal(len(uris), len(set(uris)), "different URIs")
    t.expect(RESOURCES <= set(uris), f"resources: {uris}")
    t.expect(all(r.get("name") for r in resources), "a resource without a name")
    templates = (await t.do("list_all", what="resourceTemplates"))["items"]
    t.expect(TEMPLATE in [i["uriTemplate"] for i in templates], f"templates: {short(templates)}")
    t.expect(all(i.get("name") for i in templates), "a template without a name")


@scenario("prompts.list", servers=["sysmon"])
async def prompts_list(t):
    await t.connect()
    prompts = {p["name"]: p for p in (await t.do("list_all", what="prompts"))["items"]}
    t.expect("diagnose" in prompts, f"prompts: {list(prompts)}")
    arguments = {a["name"]: a for a in prompts["diagnose"]["arguments"]}
    t.expect("symptom" in arguments, f"arguments: {list(arguments)}")
    t.equal(arguments["symptom"].get("required"), True, "the symptom is required")


# Calls


@scenario("call.add", servers=["calc"])
async def call_add(t):
    await t.connect()
    for a, b in [(2, 3), (-7, 7), (2147483648, 2147483648), (-9007199254740991, 1)]:
        t.equal(good(await t.call("add", {"a": a, "b": b})), str(a + b), f"{a} + {b}")


@scenario("call.echo", servers=["calc"])
async def call_echo(t):
    await t.connect()
    for text in ["hello", "tab\t quote\" back\\ line\n", "é 漢 \U0001f600 \u2028 \u007f \u0001", "</script>\\u0041"]:
        t.equal(good(await t.call("echo", {"text": text})), text, "the echo")


@scenario("call.uptime", servers=["sysmon"])
async def call_uptime(t):
    await t.connect()
    data = await structured(t, "uptime", {})
    with open("/proc/uptime") as file:
        now = float(file.read().split()[0])
    t.expect(near(numbers(data), now, 0, 15), f"up for {now} s, but it says {short(data)}")


@scenario("call.load", servers=["sysmon"])
async def call_load(t):
    await t.connect()
    data = await structured(t, "load", {})
    found = numbers(data)
    with open("/proc/loadavg") as file:
        now = [float(n) for n in file.read().split()[:3]]
    # The average over a quarter of an hour hardly moves meanwhile.
    t.expect(len(found) >= 3 and near(found, now[2], 0.05, 0.1), f"load {now}, but it says {short(data)}")


@scenario("call.memory", servers=["sysmon"])
async def call_memory(t):
    await t.connect()
    data = await structured(t, "memory", {})
    total = meminfo("MemTotal")
    t.expect(kib(numbers(data), total, 0.02), f"{total} bytes of memory, but it says {short(data)}")


@scenario("call.disk", servers=["sysmon"])
async def call_disk(t):
    await t.connect()
    data = await structured(t, "disk", {"path": "/"})
    disk = os.statvfs("/")
    total = disk.f_blocks * disk.f_frsize
    t.expect(kib(numbers(data), total, 0.02), f"{total} bytes of disk, but it says {short(data)}")
    bad(await t.call("disk", {"path": "/no/such/place"}))


@scenario("call.processes", servers=["sysmon"])
async def call_processes(t):
    await t.connect()
    # A process may end before it is looked for, but hardly each time.
    for _ in range(3):
        data = await structured(t, "processes", {"limit": 2})
        if not t.at_least("2025-06-18"):
            return
        lists = [v for v in data.values() if isinstance(v, list)]
        t.expect(len(lists) == 1 and len(lists[0]) == 2, f"two processes asked, but it says {short(data)}")
        gone = [process for process in lists[0] if not os.path.isdir(f"/proc/{process['pid']}")]
        if not gone:
            return
    t.expect(False, f"no such processes: {gone}")


@scenario("call.temperature", servers=["firmware", "board"])
async def call_temperature(t):
    await t.connect()
    text = good(await t.call("read_temperature"))
    t.expect(any(-60 <= n <= 150 for n in numbers(text)), f"a temperature: {text!r}")


@scenario("call.led", servers=["firmware", "board"])
async def call_led(t):
    await t.connect()
    on = good(await t.call("set_led", {"on": True}))
    off = good(await t.call("set_led", {"on": False}))
    t.expect(on != off, f"on and off both say {on!r}")


WRONG = {
    "calc": [("add", {"a": "two", "b": 3}), ("add", {"a": 1}), ("echo", {}), ("echo", {"text": 7}), ("add", {"a": 1.5, "b": 1})],
    "sysmon": [("disk", {"path": 7}), ("disk", {}), ("processes", {"limit": "ten"}), ("watch", {"seconds": "x"})],
    "firmware": [("set_led", {"on": "perhaps"}), ("set_led", {})],
    "board": [("set_led", {"on": "perhaps"}), ("measure", {"samples": "many"}), ("measure", {"samples": 0})],
}


@scenario("call.wrong_arguments")
async def wrong_arguments(t):
    await t.connect()
    for name, arguments in WRONG[t.server]:
        try:
            bad(await t.call(name, arguments))
        except Failure as error:
            raise Failure(f"{name} {arguments}: {error}") from None
    await call_something(t)


@scenario("call.unknown_tool")
async def unknown_tool(t):
    await t.connect()
    error = await t.refused(-32602, "call_tool", name="no_such_tool", arguments={})
    t.expect(error.get("message"), "no message")
    await call_something(t)


@scenario("call.large", servers=["calc", "firmware", "board"])
async def call_large(t):
    await t.connect()
    if t.server == "calc":
        text = "".join(f"{i} \"é\"\n" for i in range(10_000))  # 100 KB and many escapes
        answer = good(await t.call("echo", {"text": text}))
        t.expect(answer == text, f"{len(answer)} characters came back of {len(text)}")
    else:
        text = good(await t.call("history"))
        t.expect(15_000 <= len(text) <= 60_000, f"{len(text)} characters of history")
        t.expect(len(numbers(text)) > 500, "no numbers in the history")
        t.equal(good(await t.call("history"))[:200], text[:200], "the second history")
    await call_something(t)


@scenario("call.two_at_once")
async def two_at_once(t):
    await t.connect()
    if t.server == "calc":
        started = [t.start("call_tool", name="echo", arguments={"text": f"number {i}"})[1] for i in range(20)]
        for i, future in enumerate(started):
            kind, result = await t.outcome(future)
            t.equal(kind, "ok", "the outcome")
            t.equal(good(result), f"number {i}", "the echo")
    elif t.server == "sysmon":
        _, slow = t.start("call_tool", name="watch", arguments={"seconds": 2, "interval_ms": 500})
        _, fast = t.start("call_tool", name="uptime", arguments={})
        slow, fast = await slow, await fast
        t.expect("ok" in slow and "ok" in fast, f"{short(slow)} {short(fast)}")
        t.expect(fast["at"] < slow["at"], "the short call waited for the long one")
        now = float(open("/proc/uptime").read().split()[0])
        t.expect(near(numbers(good(fast["ok"])), now, 0, 15), "the answers were mixed up")
    else:
        _, first = t.start("call_tool", name="history", arguments={})
        _, second = t.start("call_tool", name="read_temperature", arguments={})
        first, second = await first, await second
        t.expect("ok" in first and "ok" in second, f"{short(first)} {short(second)}")
        t.expect(len(good(first["ok"])) > 10_000 > len(good(second["ok"])), "the answers were mixed up")


# A long call


@scenario("watch.progress", servers=["sysmon", "board"])
async def watch_progress(t):
    await t.connect()
    name, arguments, _ = WATCH[t.server]
    number, future = t.start("call_tool", name=name, arguments=arguments, progress=True)
    kind, result = await t.outcome(future)
    t.equal(kind, "ok", f"the outcome ({short(result)})")
    steps = [e for e in t.events("progress") if e["target"] == number]
    # A busy machine takes fewer samples in the same time: the server says how many. `board` takes as many as were asked for.
    samples = json.loads(good(result))["looks"] if t.server == "sysmon" else arguments["samples"]
    lost = 1 if t.client.startswith("npm") else 0
    t.expect(0 < samples and samples - lost <= len(steps) <= samples, f"{len(steps)} steps of progress for {samples} samples")
    values = [s["progress"] for s in steps]
    t.expect(all(a < b for a, b in zip(values, values[1:])), f"progress does not increase: {values}")
    for step in steps:
        t.expect(step.get("total") is None or step["progress"] <= step["total"], f"beyond the total: {short(step)}")
    if t.wire:
        request = t.wire.requests("tools/call")[-1]
        token = request["params"]["_meta"]["progressToken"]
        sent = t.wire.notifications("notifications/progress")
        t.equal(len(sent), samples, "the steps of progress on the wire")
        for message in sent:
            t.equal(message["params"]["progressToken"], token, "the token")
            if t.revision == "2024-11-05":
                t.expect("message" not in message["params"], f"a message under {t.revision}")
        answer = t.wire.answer(request)
        out = [m for _, m in t.wire.messages("out")]
        t.expect(out.index(answer) > out.index(sent[-1]), "progress after the answer")


@scenario("watch.no_token", servers=["sysmon", "board"])
async def watch_no_token(t):
    """Nobody asked for progress, so there is none."""
    await t.connect()
    name, arguments, _ = WATCH[t.server]
    good(await t.call(name, arguments))
    t.equal(t.events("progress"), [], "progress")
    if t.wire:
        t.equal(t.wire.notifications("notifications/progress"), [], "progress")


@scenario("watch.cancel", servers=["sysmon", "board"])
async def watch_cancel(t):
    await t.connect()
    name, _, arguments = WATCH[t.server]
    number, future = t.start("call_tool", name=name, arguments=arguments, progress=True)
    await t.event("progress", lambda e: e["target"] == number)
    await t.do("cancel", target=number)
    kind, value = await t.outcome(future)
    t.expect(kind == "error" and value["kind"] == "cancelled", f"the cancelled call gave {short(value)}")
    good(await t.call("uptime"))
    await asyncio.sleep(1)
    good(await t.call("uptime"))
    if t.wire:
        request = next(r for r in t.wire.requests("tools/call") if r["params"]["name"] == "watch")
        cancels = [(at, m) for at, m in t.wire.messages("in") if m.get("method") == "notifications/cancelled"]
        t.equal([m["params"]["requestId"] for _, m in cancels], [request["id"]], "what was cancelled")
        t.equal(t.wire.answer(request), None, "the answer to a cancelled call")
        late = [
            m
            for at, m in t.wire.messages("out")
            if m.get("method") in ("notifications/progress", "notifications/message") and at > cancels[0][0] + 0.8
        ]
        t.equal(late, [], "what came after the cancel")


@scenario("watch.log", servers=["sysmon"])
async def watch_log(t):
    await t.connect()
    arguments = {"seconds": 1, "interval_ms": 200}

    def check(events):
        t.expect(events, "no log messages")
        for event in events:
            t.expect(event["params"]["level"] in LEVELS, f"level: {short(event)}")
            t.expect(event["params"].get("data") is not None, f"no data: {short(event)}")

    if t.modern:
        good(await t.call("watch", arguments))
        await asyncio.sleep(0.2)
        t.equal(t.events("log"), [], "log messages that nobody asked for")
        good(await t.call("watch", arguments, log_level="debug"))
        check(t.events("log"))
        before = len(t.events("log"))
        good(await t.call("watch", arguments, log_level="emergency"))
        await asyncio.sleep(0.2)
        t.equal(len(t.events("log")), before, "log messages after one for emergencies alone")
        if t.wire:
            asked = [r["params"]["_meta"].get(META + "logLevel") for r in t.wire.requests("tools/call")]
            t.equal(asked, [None, "debug", "emergency"], "the levels asked for")
        return
    t.equal(await t.do("set_level", level="debug"), {}, "the answer to setLevel")
    good(await t.call("watch", arguments))
    check(t.events("log"))
    await t.do("set_level", level="emergency")
    before = len(t.events("log"))
    good(await t.call("watch", arguments))
    await asyncio.sleep(0.2)
    t.equal(len(t.events("log")), before, "log messages after a level for emergencies alone")


# Resources


@scenario("resources.read", servers=["sysmon"])
async def resources_read(t):
    await t.connect()
    for uri in sorted(RESOURCES):
        contents = (await t.do("read", uri=uri))["contents"]
        t.equal([c["uri"] for c in contents], [uri], "the URI of the contents")
        t.expect(numbers(contents[0]["text"]), f"no numbers in {short(contents)}")
    total = meminfo("MemTotal")
    text = (await t.do("read", uri="sys://memory"))["contents"][0]["text"]
    t.expect(kib(numbers(text), total, 0.02), f"{total} bytes of memory, but it says {text!r}")
    if t.wire and t.modern:
        result = t.wire.answer(t.wire.requests("resources/read")[0])["result"]
        t.expect(result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private"), "no caching members")


@scenario("resources.template", servers=["sysmon"])
async def resources_template(t):
    await t.connect()
    uri = f"proc://{os.getpid()}/status"
    contents = (await t.do("read", uri=uri))["contents"]
    t.equal([c["uri"] for c in contents], [uri], "the URI of the contents")
    t.expect(os.getpid() in numbers(contents[0]["text"]), f"not the status of {os.getpid()}: {short(contents)}")


@scenario("resources.unknown", servers=["sysmon"])
async def resources_unknown(t):
    await t.connect()
    code = -32602 if t.modern else -32002
    # This SDK knows either code, by the URI in the data, and tells the newer one.
    told = -32602 if t.client == "npm-client-2.4" else code
    for uri in ["sys://nothing", "proc://999999999/status", "other://x"]:
        error = await t.refused(code, "read", told=told, uri=uri)
        t.equal((error.get("data") or {}).get("uri"), uri, "data.uri")
    await t.do("read", uri="sys://load")


@scenario("resources.subscribe", servers=["sysmon", "board"])
async def resources_subscribe(t):
    await t.connect()
    uri = CHANGES[t.server]

    def updates():
        return [m["params"] for m in t.wire.notifications("notifications/resources/updated")]

    if t.modern:
        stream = await t.do("listen", uris=[uri])
        t.equal(stream["honored"].get("resourceSubscriptions"), [uri], "what the server will tell of")
    else:
        await asyncio.sleep(1.5)
        t.equal(t.events("updated"), [], "updates before the subscription")
        t.equal(await t.do("subscribe", uri=uri), {}, "the answer to subscribe")
    await t.event("updated", lambda e: e["uri"] == uri)
    await t.do("read", uri=uri)
    first = len(t.events("updated"))
    await t.event("updated", lambda e: e in t.driver.events and len(t.events("updated")) > first)
    t.equal({e["uri"] for e in t.events("updated")}, {uri}, "what was updated")
    if t.modern:
        await t.do("unlisten", key=stream["key"])
    else:
        t.equal(await t.do("unsubscribe", uri=uri), {}, "the answer to unsubscribe")
    await asyncio.sleep(0.3)
    count, seen = len(t.events("updated")), len(updates()) if t.wire else 0
    await asyncio.sleep(2.2)
    t.equal(len(t.events("updated")), count, "updates after the end of the subscription")
    good(await t.call("uptime"))
    if t.wire:
        t.equal(len(updates()), seen, "updates on the wire after the end of the subscription")
        t.equal({u["uri"] for u in updates()}, {uri}, "what was updated")
        if t.modern:
            request = t.wire.requests("subscriptions/listen")[0]
            for method in ("notifications/subscriptions/acknowledged", "notifications/resources/updated"):
                for message in t.wire.notifications(method):
                    t.equal(message["params"]["_meta"][META + "subscriptionId"], request["id"], "subscriptionId")
            methods = [m["method"] for _, m in t.wire.messages("out") if "method" in m]
            t.equal(methods[0], "notifications/subscriptions/acknowledged", "the first on the stream")
            t.equal(t.wire.answer(request), None, "the answer to a listen that the client ended")


# The rest


@scenario("complete", servers=["sysmon"])
async def complete(t):
    await t.connect()
    ref = {"type": "ref/resource", "uri": TEMPLATE}

    async def values(typed):
        completion = (await t.do("complete", ref=ref, argument={"name": "pid", "value": typed}))["completion"]
        t.expect(len(completion["values"]) <= 100, f"{len(completion['values'])} values")
        t.expect(all(v.isdigit() and v.startswith(typed) for v in completion["values"]), f"{typed!r}: {short(completion)}")
        return completion["values"]

    t.expect(await values(""), "no process at all")
    mine = str(os.getpid())
    t.expect(mine in await values(mine), "the process that runs this is not there")
    t.equal(await values("999999999"), [], "processes that do not exist")
    await t.refused(-32602, "complete", ref={"type": "ref/prompt", "name": "no_such"}, argument={"name": "x", "value": ""})


@scenario("prompts.get", servers=["sysmon"])
async def prompts_get(t):
    await t.connect()
    symptom = "the \"disk\" is slow é"
    prompt = await t.do("get_prompt", name="diagnose", arguments={"symptom": symptom})
    t.expect(prompt["messages"], "no messages")
    t.expect(all(m["role"] in ("user", "assistant") for m in prompt["messages"]), short(prompt))
    texts = [m["content"]["text"] for m in prompt["messages"] if m["content"]["type"] == "text"]
    t.expect(any(symptom in text for text in texts), f"the symptom is not in {short(texts)}")
    await t.refused(-32602, "get_prompt", name="diagnose", arguments={})
    await t.refused(-32602, "get_prompt", name="no_such_prompt", arguments={})


async def ask(t, answer):
    """Calls kill_hint and answers its question; gives the result."""
    before = len(t.events("question"))
    _, future = t.start("call_tool", name="kill_hint", arguments={"pid": os.getpid()})
    asked = asyncio.ensure_future(t.event("question", lambda e: int(e["key"]) == before))
    await asyncio.wait([future, asked], return_when=asyncio.FIRST_COMPLETED)
    if not asked.done():
        asked.cancel()
        raise Failure(f"it did not ask, but answered {short((await future))}")
    params = (await asked)["params"]
    t.expect(params.get("message"), f"a question without words: {short(params)}")
    schema = params["requestedSchema"]
    t.equal(schema["type"], "object", "the type of the schema")
    t.expect(isinstance(schema.get("properties"), dict), f"schema: {short(schema)}")
    reply = {"action": answer}
    if answer == "accept":
        reply["content"] = instance(schema)
    await t.do("answer", key=str(before), answer=reply)
    kind, result = await t.outcome(future)
    t.equal(kind, "ok", f"the outcome after {answer} ({short(result)})")
    t.equal(len(t.events("question")), before + 1, "questions")
    return result


@scenario("elicitation", servers=["sysmon"])
async def elicitation(t):
    await t.connect()
    if not t.at_least("2025-06-18"):
        bad(await t.call("kill_hint", {"pid": os.getpid()}))
        t.equal(t.events("question"), [], f"questions under {t.revision}")
        if t.wire:
            t.equal(t.wire.requests("elicitation/create", "out"), [], f"questions under {t.revision}")
        return
    accepted = good(await ask(t, "accept"))
    declined = text_of(await ask(t, "decline"))
    t.expect(accepted != declined, f"accept and decline both say {accepted!r}")
    again = good(await ask(t, "accept"))
    t.equal(again, accepted, "the text after accepting again")
    if t.wire and t.modern:
        calls = t.wire.requests("tools/call")
        t.equal(len(calls), 6, "calls, each with its second round")
        for first, second in zip(calls[::2], calls[1::2]):
            result = t.wire.answer(first)["result"]
            t.equal(result["resultType"], "input_required", "resultType")
            questions = result["inputRequests"]
            t.equal([q["method"] for q in questions.values()], ["elicitation/create"], "questions")
            t.equal(sorted(second["params"]["inputResponses"]), sorted(questions), "what was answered")
            t.equal(second["params"].get("requestState"), result.get("requestState"), "requestState")
            t.equal(t.wire.answer(second)["result"]["resultType"], "complete", "resultType")
    elif t.wire:
        t.equal(len(t.wire.requests("elicitation/create", "out")), 3, "questions on the wire")
        if not t.at_least("2025-11-25"):
            for request in t.wire.requests("elicitation/create", "out"):
                t.expect("mode" not in request["params"], f"{t.revision} has no mode")


@scenario("elicitation.undeclared", servers=["sysmon"])
async def elicitation_undeclared(t):
    """A client that cannot be asked is told so, and is not asked."""
    await t.connect(elicitation=False)
    if t.modern:
        error = await t.refused(-32021, "call_tool", name="kill_hint", arguments={"pid": os.getpid()})
        t.expect("elicitation" in error["data"]["requiredCapabilities"], f"data: {short(error)}")
    else:
        bad(await t.call("kill_hint", {"pid": os.getpid()}))
    if t.wire:
        t.equal(t.wire.requests("elicitation/create", "out"), [], "questions")
    good(await t.call("uptime"))


# The end


@scenario("shutdown")
async def shutdown(t):
    """Exit code, the time it took and no signal: Context.left() looks at them. Over HTTP: the server stays."""
    await t.connect()
    await call_something(t)
    await t.close()
    if t.transport != "stdio":
        await t.connect()
        await call_something(t)


@scenario("shutdown.busy", servers=["sysmon"])
async def shutdown_busy(t):
    """stdin closes while a call runs and a subscription is open."""
    await t.connect()
    if t.modern:
        await t.do("listen", uris=["sys://load"])
    else:
        await t.do("subscribe", uri="sys://load")
    number, future = t.start("call_tool", name="watch", arguments={"seconds": 15, "interval_ms": 100}, progress=True)
    await t.event("progress", lambda e: e["target"] == number)
    began = time.monotonic()
    await t.close()
    t.expect(time.monotonic() - began < 6, "the client took long to close")
    kind, value = await t.outcome(future)
    t.equal(kind, "error", "the outcome of the call that was cut off")
