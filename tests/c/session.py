#!/usr/bin/env python3
"""Sessions with the C example `server`, in each revision and with its input cut at each byte: session.py PROGRAM"""

import json
import subprocess
import sys

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def lines(revision):
    """The messages of a session, and what each answer must contain."""
    asked = [
        ("tools/list", {}, ['"name":"set_level"', '"name":"status"', '"name":"fade"']),
        ("tools/call", {"name": "set_level", "arguments": {"level": 40}}, ['"text":"done"', '"isError":false']),
        ("tools/call", {"name": "set_level", "arguments": {"level": "x"}}, ['"isError":true']),
        ("tools/call", {"name": "set_level"}, ['"isError":true']),
        ("tools/call", {"name": "status"}, ['{\\"level\\":40}']),
        ("tools/call", {"name": "none"}, ['"error"', "-32602"]),
        ("resources/list", {}, ["lamp://manual", "lamp://level"]),
        ("resources/templates/list", {}, ["lamp://scenes/{name}"]),
        ("resources/read", {"uri": "lamp://manual"}, ["from 0 to 100"]),
        ("resources/read", {"uri": "lamp://level"}, ['"text":"40"']),
        ("resources/read", {"uri": "lamp://scenes/party"}, ['The scene \\"party\\"']),
        ("resources/read", {"uri": "lamp://scenes/" + "x" * 60}, ['"error"']),
        ("resources/read", {"uri": "lamp://none"}, ['"error"']),
        ("prompts/list", {}, ['"name":"cosy"']),
        ("prompts/get", {"name": "cosy", "arguments": {"room": "k\u00fcche \"1\""}}, ['k\u00fcche \\"1\\" cosy']),
        ("prompts/get", {"name": "cosy"}, ["living room"]),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "cosy"}, "argument": {"name": "room", "value": "ki"}},
         ['"values":["kitchen","kids\' room"]']),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "lamp://scenes/{name}"}, "argument": {"name": "name", "value": ""}},
         ['"values":[]']),
        ("tools/call", {"name": "fade"}, ['"text":"faded"']),
        ("nonsense", {}, ["-32601"]),
    ]
    messages, expected = [], {}
    if revision != MODERN:
        client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        messages.append({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
        expected[0] = [revision, '"name":"lamp"']
        messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number, (method, params, found) in enumerate(asked, 1):
        params = {**params, "_meta": META} if revision == MODERN else params
        messages.append({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        expected[number] = found
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages).encode(), expected


def check(output, expected, what):
    answers = {message["id"]: message for message in map(json.loads, output.splitlines()) if "id" in message}
    if sorted(answers) != sorted(expected):
        sys.exit(f"{what}: answers to {sorted(answers)}")
    for number, parts in expected.items():
        text = json.dumps(answers[number], ensure_ascii=False, separators=(",", ":"))
        for part in parts:
            if part not in text:
                sys.exit(f"{what}: no {part} in {text}")


def run(program, pieces):
    server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for piece in pieces:
        server.stdin.write(piece)
        server.stdin.flush()
    output, errors = server.communicate(timeout=60)
    if server.returncode or errors:
        sys.exit(f"the server ended with {server.returncode}: {errors.decode()}")
    return output


def cancels(program):
    """A call that is cancelled has no answer, and the next one has."""
    text, _ = lines("2025-11-25")
    first = b"".join(line + b"\n" for line in text.splitlines()[:2])
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fade"}}\n'
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}\n'
    subscribe = b'{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"lamp://level"}}\n'
    output = run(program, [first + subscribe + call % 5 + cancel + call % 6])
    ids = [json.loads(line).get("id") for line in output.splitlines()]
    if ids != [0, 4, 6, None] or b'"uri":"lamp://level"' not in output:
        sys.exit(f"cancelled: {output.decode()}")


def asks(program):
    """A tool asks the user, in both eras, and gets the answer; a client that cannot be asked gets an error."""
    schema = '"requestedSchema":{"type":"object"'
    for answer, told in [({"action": "accept", "content": {"sure": True}}, "off"), ({"action": "decline"}, "the user does not want it")]:
        for capabilities in [{"elicitation": {}}, {}]:
            client = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "0"}}
            messages = [{"id": 0, "method": "initialize", "params": client}, {"method": "notifications/initialized"}]
            messages += [{"id": 1, "method": "tools/call", "params": {"name": "reset"}}, {"id": 1, "result": answer}]
            text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
            output = run(program, [text.encode()]).decode()
            parts = [schema, f'"text":"{told}"'] if capabilities else ['"isError":true']
            if not all(part in output for part in parts):
                sys.exit(f"asks: {output}")
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        call = {"name": "reset", "_meta": meta}
        again = {**call, "inputResponses": {"sure": answer}}
        text = "".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"
            for number, params in enumerate([call, again, {**call, "_meta": META}])
        )
        output = run(program, [text.encode()]).decode()
        if any(part not in output for part in ['"inputRequests":{"sure":', schema, f'"text":"{told}"', "-32021"]):
            sys.exit(f"asks: {output}")


def main():
    program = sys.argv[1]
    for revision in [*LEGACY, MODERN]:
        text, expected = lines(revision)
        check(run(program, [text]), expected, revision)
        check(run(program, [bytes([byte]) for byte in text]), expected, f"{revision}, byte by byte")
        check(run(program, [text[:-1]]), expected, f"{revision}, without the last newline")
    cancels(program)
    asks(program)
    print("session.py: all passed")


if __name__ == "__main__":
    main()
