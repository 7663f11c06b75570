#!/usr/bin/env python3
"""The footprint table: how large programs with this crate are, how deep their stack gets, how long they take.

    footprint.py ROWS             prints the table
    footprint.py ROWS --check     fails where docs/footprint.md says something else
    footprint.py ROWS --check-few     the same, where ROWS has few images, and none that runs
    footprint.py ROWS --write     puts it into docs/footprint.md, and its figures where other pages quote them
    footprint.py --quotes         fails where another page quotes a figure that docs/footprint.md does not have; needs no image
    footprint.py --write-quotes   puts the figures of docs/footprint.md where other pages quote them

A quote is a number before a comment with the row and the column: `25,204<!-- tools_raw flash -->`. `--check` looks at them too.

ROWS is a file of lines `key<TAB>image`: which image is which, as tests/bare_metal/footprint.sh built them. Keys are
`TARGET/NAME`; `NAME/report` is an image for QEMU that says how deep its stack was and how long it worked; `NAME/lean` one
of the lean build, which cannot be had everywhere.
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import tokens
from elf import Elf, total

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
PAGE = os.path.join(ROOT, "docs", "footprint.md")
QUOTING = ["README.md", "docs/devices.md"]
BEGIN, END = "<!-- footprint: made by tests/bare_metal/footprint.sh -->", "<!-- /footprint -->"

# What the table may be off by before the check fails: another toolchain moves all figures a little.
TOLERANCE = 0.05

# The column of the lean build, for the first target.
LEAN = "flash, thumbv7m, lean"
TARGETS = ["thumbv7m-none-eabi", "thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"]

# One row is one image. What stands under "adds" is shown as what it adds to the row named there.
ROWS = [
    ("core", "core alone: reads and dispatches", None),
    ("tools_raw", "+ five tools, all revisions: the base of what follows", None),
    ("unbatched", "only revisions without batches (2025-06-18 on)", "tools_raw"),
    ("legacy", "only the era with a handshake (to 2025-11-25)", "tools_raw"),
    ("modern", "only the stateless era (2026-07-28)", "tools_raw"),
    ("tools", "arguments by serde (three types)", "tools_raw"),
    ("tools_derived", "arguments by types that are the schema (the same three, feature `derive`)", "tools_raw"),
    ("formatted", "`format_args!` in a reply", "tools_raw"),
    ("windows", "lists and replies larger than the buffer (feature `windows`)", "tools_raw"),
    ("large", "content of any length, from a source", "windows"),
    ("resources", "a resource", "tools_raw"),
    ("subscriptions", "subscriptions to it", "resources"),
    ("templates", "a family of resources, with completion", "tools_raw"),
    ("prompts", "a prompt, with completion", "tools_raw"),
    ("asks", "questions to the client (feature `ask`)", "tools_raw"),
    ("tasks", "a tool that becomes a task and asks; 4 tasks, 1 KiB of results (`extensions::tasks`)", "tools_raw"),
    ("events", "a button that clients poll for; 16 occurrences, 512 bytes (`extensions::events`)", "tools_raw"),
    ("events_push", "the same, also pushed", "tools_raw"),
    ("skills", "a skill of one file (`extensions::skills`)", "tools_raw"),
    ("apps", "a tool with a page (`extensions::apps`)", "tools_raw"),
    ("http", "HTTP in place of lines: one connection, sessions, event streams (calls of 2026-07-28)", "tools_raw"),
    ("http_tokens", "access tokens, DPoP and scopes checked, 64 proofs kept; signatures by the program's `Verifier`", "http"),
    ("http_es256", "signatures checked in software (feature `es256`)", "http_tokens"),
    ("everything", "all of these but HTTP, log and progress", None),
    ("client", "the other role: a client that calls a tool, both eras", None),
    ("client_http", "HTTP in place of lines: one connection", "client"),
    ("client_dpop", "a token and a DPoP proof in each request; signatures by the program's `Signer`", "client_http"),
    ("client_es256", "signatures made in software (feature `es256`)", "client_dpop"),
]
# Whole programs, with the board's start-up, drivers and main loop.
PROGRAMS = [
    ("tools_raw_terse", "five tools with the feature `terse`: errors without texts"),
    ("tiny", "one tool, one request at a time, 640 bytes of buffers, 2025-06-18 and 2025-11-25"),
    ("tiny_terse", "the same with `terse`"),
    ("uart-tools", "`uart`, its tools only"),
    ("uart", "`uart`, with everything it has"),
    ("interrupts", "`interrupts`, with a late tool, events"),
    ("embassy", "`embassy`: the same, with executor and channels"),
    ("ethernet", "`ethernet`: TCP/IP, HTTP and everything"),
]

# What has to fit, whatever the page says: bytes of flash by program.
BUDGETS = {"tiny_terse": 18_500, "tools_raw_terse": 24_000, "uart-tools": 24 << 10, "ethernet": 256 << 10}

# The numbers of calls with which instructions are measured: few where a signature takes long, or where the table of proofs
# would be full.
COUNTS = {"http_tokens": (10, 30), "http_es256": (5, 15), "client_es256": (5, 15)}


def sizes(path):
    """Bytes of flash and of static RAM."""
    elf = Elf(path)
    return total(elf.flash()), total(elf.ram())


# What the images are asked while their stack is watched.

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def request(id, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def opening():
    client = {"name": "footprint", "version": "1"}
    capabilities = {"elicitation": {}}
    return request("o", "initialize", protocolVersion="2025-11-25", capabilities=capabilities, clientInfo=client) + (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )


def post(message, credentials=None):
    """A message of 2026-07-28 over HTTP."""
    read = json.loads(message)
    head = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": read["method"],
        "Mcp-Name": read["params"].get("name"),
        "Content-Length": len(message),
        **(credentials or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if value)
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + message


def answers(count):
    """What a server says to a client: who it is, and the same answer to each call."""
    hello = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    text = {"resultType": "complete", "content": [{"type": "text", "text": "42"}], "isError": False}
    lines = [{"jsonrpc": "2.0", "id": 1 + n, "result": text if n else hello} for n in range(1 + count)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def web_answers(name, count):
    """The same over HTTP. A server of tokens gives a new nonce with each."""
    lines = answers(count).splitlines()
    nonces = [{"DPoP_Nonce": f"nonce-{number}"} if name != "client_http" else {} for number in range(len(lines))]
    return b"".join(tokens.answer("200 OK", json.loads(line), **nonce) for line, nonce in zip(lines, nonces))


def guarded(name, messages):
    """Messages over HTTP with an access token, each with a proof of its own."""
    sign = tokens.jose.Element if name == "http_tokens" else lambda key: key
    token = tokens.access_token(sign(tokens.ISSUER_KEY))
    return [post(message, tokens.bound(sign(tokens.BOARD_KEY), token, number)) for number, message in enumerate(messages)]


def of_tasks():
    """Two tasks: one that is answered, one that is cancelled."""
    client = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": client}
    first, second = "01" * 16, "02" * 16
    steps = [
        ("tools/call", dict(name="flash")),
        ("subscriptions/listen", dict(notifications={"taskIds": [first, second]})),
        ("tasks/get", dict(taskId=first)),
        ("tasks/update", dict(taskId=first, inputResponses={"sure": {"action": "accept"}})),
        ("tasks/get", dict(taskId=first)),
        ("tools/call", dict(name="flash")),
        ("tasks/cancel", dict(taskId=second)),
        ("tasks/get", dict(taskId=second)),
        ("tasks/get", dict(taskId="none")),
    ]
    return b"".join(request(200 + n, method, _meta=meta, **params) for n, (method, params) in enumerate(steps))


def of_events():
    """The button is pressed more often than the ring holds; polls from the beginning, from a page, with an error."""
    poll = ("events/poll", dict(name="button.pressed"))
    stream = ("events/stream", dict(name="button.pressed"))
    steps = [("events/list", {}), poll, stream] + [("tools/call", dict(name="press"))] * 20
    steps += [
        ("events/poll", dict(name="button.pressed", cursor="1.0")),
        ("events/poll", dict(name="button.pressed", cursor="1.18", maxEvents=1, maxAgeMs=1000)),
        ("events/poll", dict(name="none")),
        ("events/subscribe", dict(name="button.pressed")),
    ]
    return b"".join(request(250 + n, method, _meta=META, **params) for n, (method, params) in enumerate(steps))


def of_skills():
    skill = "skill://led"
    steps = [
        ("skills/list", {}),
        ("skills/get", dict(uri=skill + "/SKILL.md")),
        ("skills/get", dict(uri=skill)),
        ("resources/directory/read", dict(uri=skill)),
        ("resources/read", dict(uri=skill + "/SKILL.md")),
        ("resources/read", dict(uri=skill + "/none.md")),
    ]
    return b"".join(request(300 + n, method, _meta=META, **params) for n, (method, params) in enumerate(steps))


def of_apps():
    """The tool for a client that shows pages and for one that does not, and the page."""
    client = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": client}
    calls = [request(400 + n, "tools/call", _meta=one, name="show_led") for n, one in enumerate([META, meta])]
    return b"".join(calls) + request(402, "resources/read", _meta=META, uri="ui://board/led")


def everything(name):
    if name == "client":
        return answers(20)
    if name.startswith("client_"):
        refusal = tokens.answer("401 Unauthorized", {}, WWW_Authenticate='DPoP error="use_dpop_nonce"', DPoP_Nonce="first")
        return (refusal if name != "client_http" else b"") + web_answers(name, 20)
    calls = [
        ("tools/call", dict(name="add", arguments={"a": 40, "b": 2})),
        ("tools/call", dict(name="add", arguments={"a": "no"})),
        ("tools/call", dict(name="echo", arguments={"text": 'é "quoted" \n'})),
        ("tools/call", dict(name="set_led", arguments={"on": True})),
        ("tools/call", dict(name="formatted")),
        ("tools/call", dict(name="tell")),
        ("tools/call", dict(name="erase")),
        ("tools/call", dict(name="history")),
        ("tools/call", dict(name="read_temperature")),
        ("tools/call", dict(name="nothing")),
        ("resources/read", dict(uri="board://status")),
        ("resources/read", dict(uri="board://pin/\n")),
        ("resources/read", dict(uri="board://pin/4")),
        ("resources/subscribe", dict(uri="board://status")),
        ("prompts/get", dict(name="explain", arguments={"value": "21"})),
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("prompts/list", {}),
        ("no/such/method", {}),
    ]
    complete = dict(ref={"type": "ref/prompt", "name": "explain"}, argument={"name": "value", "value": "t"})
    calls.append(("completion/complete", complete))
    legacy = opening() + b"".join(request(n, method, **params) for n, (method, params) in enumerate(calls))
    modern = [request(100 + n, method, _meta=META, **params) for n, (method, params) in enumerate(calls)]
    if name == "http":
        return post(opening().splitlines()[0]) + b"".join(post(message) for message in modern)
    if name.startswith("http_"):
        # A proof is refused where it comes twice.
        first, *others = guarded(name, [opening().splitlines()[0], *modern])
        return post(modern[0]) + first + first + b"".join(others)
    listen = request("l", "subscriptions/listen", _meta=META, notifications={"resourceSubscriptions": ["board://status"]})
    extension = {"tasks": of_tasks, "events": of_events, "events_push": of_events, "skills": of_skills, "apps": of_apps}.get(name, bytes)()
    return legacy + request("d", "server/discover", _meta=META) + b"".join(modern) + extension + listen + b"[" * 900 + b"\n"


def calls(name, count):
    if name == "core":
        return b"".join(request(n, "ping") for n in range(count))
    if name == "client":
        return answers(count)
    if name.startswith("client_"):
        return web_answers(name, count)
    if name == "modern" or name.startswith("http"):
        arguments = dict(name="add", arguments={"a": 40, "b": 2}, _meta=META)
        messages = [request(n, "tools/call", **arguments) for n in range(count)]
        return b"".join(messages if name == "modern" else map(post, messages) if name == "http" else guarded(name, messages))
    return opening() + b"".join(request(n, "tools/call", name="add", arguments={"a": 40, "b": 2}) for n in range(count))


# One instruction is a nanosecond of the machine's time, which has 20 of them in a tick of its 50 MHz clock.
INSTRUCTIONS_IN_TICK = 20


def run(image, data):
    """What a run says: the most bytes of stack, the ticks of its work."""
    command = (
        "qemu-system-arm -machine lm3s6965evb -nodefaults -display none -monitor none -icount shift=0"
        " -chardev stdio,id=uart0 -serial chardev:uart0 -semihosting-config enable=on,target=native -kernel"
    )
    done = subprocess.run(command.split() + [image], input=data + b"\4\4\4\4", capture_output=True, timeout=120)
    said = dict(re.findall(r"(\w+): +(\d+)", done.stderr.decode()))
    if done.returncode or "stack" not in said:
        sys.exit(f"{image}: status {done.returncode}, {done.stderr.decode()[-300:]}")
    return int(said["stack"]), int(said.get("ticks", 0))


def asked(image, target):
    """The most bytes of stack of `ethernet`, which says it to whoever asks over HTTP, after all else was answered."""
    command = [sys.executable, os.path.join(ROOT, "tests", "firmware", "stack.py"), image]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ, FIRMWARE_TARGET=target))
    if done.returncode:
        sys.exit(f"{image}: {done.stderr[-500:]}")
    return int(done.stdout)


def measured(images, few):
    """Everything: key to flash, RAM, and for those that run stack and instructions for a call, unless there are `few`."""
    found = {}
    for target in TARGETS:
        for name in [row[0] for row in ROWS + PROGRAMS if f"{target}/{row[0]}" in images]:
            flash, ram = sizes(images[f"{target}/{name}"])
            found[f"{target}/{name}"] = {"flash": flash, "ram": ram}
    if few:
        return found
    found["wasm"] = os.path.getsize(images["wasm"])
    for key in [key for key in images if key.endswith("/lean")]:
        found[f"{TARGETS[0]}/{key.removesuffix('/lean')}"]["lean"] = sizes(images[key])[0]
    for name, *_ in ROWS:
        image = images[name + "/report"]
        stack, _ = run(image, everything(name))
        counts = COUNTS.get(name, (50, 150))
        few, many = (run(image, calls(name, count))[1] for count in counts)
        call = (many - few) * INSTRUCTIONS_IN_TICK // (counts[1] - counts[0])
        found[f"{TARGETS[0]}/{name}"].update(stack=stack, call=call)
    for name in ("uart-tools", "uart"):
        found[f"{TARGETS[0]}/{name}"]["stack"] = run(images[name + "/report"], everything(name))[0]
    for target in TARGETS:
        found[f"{target}/ethernet"]["stack"] = asked(images[f"{target}/ethernet"], target)
    return found


def number(value, adds=False):
    return "" if value is None else f"{value:+,}" if adds else f"{value:,}"


def table(found):
    first = TARGETS[0]
    lines = [
        "| bytes | flash, " + " | flash, ".join(t.split("-")[0] for t in TARGETS) + " | static RAM | stack | instructions a call |"
        f" {LEAN} |",
        "|---|" + "---:|" * (len(TARGETS) + 4),
    ]

    def row(title, name, base):
        def figure(target, what):
            value = found.get(f"{target}/{name}", {}).get(what)
            under = found.get(f"{target}/{base}", {}).get(what) if base else 0
            return None if value is None or under is None else value - under

        flash = [number(figure(target, "flash"), bool(base)) for target in TARGETS]
        rest = [number(figure(first, what), bool(base)) for what in ("ram", "stack", "call")]
        rest.append(number(found.get(f"{first}/{name}", {}).get("lean")))
        lines.append(f"| {title} | " + " | ".join(flash + rest) + " |")

    for name, title, base in ROWS:
        row(title, name, base)
    for name, title in PROGRAMS:
        row(title, name, None)
    if "wasm" in found:
        lines.append(f"| `examples/wasm`: a module with four tools | wasm32: {found['wasm']:,} |" + " |" * (len(TARGETS) + 3))
    return "\n".join(lines)


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def figures(text):
    """The figures of a table: row and column to value."""
    cells = {}
    head, _, *rows = text.splitlines()
    names = cells_of(head)[1:]
    for title, *columns in map(cells_of, rows):
        for column, cell in zip(names, columns):
            digits = re.sub(r"[^0-9-]", "", re.sub(r"^.*:", "", cell))
            if digits:
                cells[title, column] = int(digits)
    return cells


def check(now, page, few):
    """Where the page is off: by more than the tolerance, or 100 bytes where that is more."""
    kept = figures(page.split(BEGIN)[1].split(END)[0].strip())
    new, off = figures(now), []
    if few:
        kept = {key: value for key, value in kept.items() if key in new}
    elif not has_lean(new):
        print(f"the column `{LEAN}` was not looked at")
        kept = {key: value for key, value in kept.items() if key[1] != LEAN}
    for key in sorted(set(kept) | set(new), key=str):
        before, after = kept.get(key), new.get(key)
        if before is None or after is None or abs(after - before) > max(100, TOLERANCE * abs(before)):
            off.append(f"{key[0]}, {key[1]}: the page has {before}, now {after}")
    return off


def over_budget(found):
    flash = {name: found[f"{TARGETS[0]}/{name}"]["flash"] for name in BUDGETS}
    return [f"{name}: {flash[name]} bytes, more than {most}" for name, most in BUDGETS.items() if flash[name] > most]


# The columns that other pages quote, each of the first target.
QUOTED = {
    "flash": f"flash, {TARGETS[0].split('-')[0]}",
    "ram": "static RAM",
    "stack": "stack",
    "call": "instructions a call",
    "lean": LEAN,
}


def quotes(write):
    """Where other pages quote another figure than the page has. Writes the right ones if `write`."""
    cells = figures(open(PAGE).read().split(BEGIN)[1].split(END)[0].strip())
    titles = {name: title for name, title, *_ in ROWS + PROGRAMS}
    off, count = [], 0

    def right(match):
        nonlocal count
        count += 1
        name, column = match[2], match[3]
        value = cells.get((titles.get(name), QUOTED.get(column)))
        if value is None:
            sys.exit(f"{page}: the table has no {name} {column}")
        if match[1] != number(value):
            off.append(f"{page}, {name} {column}: it says {match[1]}, docs/footprint.md {number(value)}")
        return f"{number(value)}<!-- {name} {column} -->"

    for page in QUOTING:
        path = os.path.join(ROOT, page)
        text = open(path).read()
        new = re.sub(r"([0-9,]+)<!-- (\w[\w-]*) (\w+) -->", right, text)
        if write and new != text:
            open(path, "w").write(new)
    if not count:
        sys.exit("no page quotes a figure: the search is broken")
    return [] if write else off


def has_lean(cells):
    return any(column == LEAN for _, column in cells)


def main():
    if sys.argv[1] in ("--quotes", "--write-quotes"):
        off = quotes(sys.argv[1] == "--write-quotes")
        print("\n".join(off))
        return 1 if off else 0
    images = dict(line.rstrip("\n").split("\t") for line in open(sys.argv[1]))
    few = "--check-few" in sys.argv
    found = measured(images, few)
    now = table(found)
    if "--write" in sys.argv:
        if not has_lean(figures(now)):
            sys.exit("nothing written: the lean build could not be had, and its column would be lost")
        page = open(PAGE).read()
        head, rest = page.split(BEGIN)
        open(PAGE, "w").write(head + BEGIN + "\n" + now + "\n" + END + rest.split(END)[1])
        quotes(write=True)
    elif few or "--check" in sys.argv:
        off = check(now, open(PAGE).read(), few) + over_budget(found) + quotes(write=False)
        print("\n".join(off))
        print(f"footprint: {len(figures(now))} figures, {len(off)} off by more than {TOLERANCE:.0%} or above a budget")
        return 1 if off else 0
    print(now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
