#!/usr/bin/env python3
"""The five tools of the templates for boards, over the UART of a board in QEMU, in each revision: template.py RUN.SH"""

import json
import subprocess
import sys

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CALLS = [
    ("read_temperature", {}, "The converter failed"),
    ("set_led", {"on": True}, "The LED is on"),
    ("read_led", {}, "The LED is on"),
    ("read_temperature", {}, "37.00 degrees Celsius"),
    ("write_note", {"text": "buy tea"}, "Noted"),
    ("write_note", {"text": "x" * 65}, "A note has at most 64 bytes"),
    ("read_note", {}, "buy tea"),
    ("set_led", {"on": False}, "The LED is off"),
]


def session(revision):
    """One client after the other on the same wire: its messages, and what the answers are."""
    messages, answers = [], []
    extra = {"_meta": META} if revision == REVISIONS[-1] else {}
    if not extra:
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        messages += [{"id": f"{revision} open", "method": "initialize", "params": params}, {"method": "notifications/initialized"}]
        answers.append((f"{revision} open", revision))
    for number, (name, arguments, text) in enumerate([*CALLS, ("tools/list", None, None)]):
        params = dict(extra) if arguments is None else {"name": name, "arguments": arguments, **extra}
        messages.append({"id": f"{revision} {number}", "method": "tools/call" if arguments is not None else name, "params": params})
        answers.append((f"{revision} {number}", text or sorted({call[0] for call in CALLS})))
    return messages, answers


def what(result):
    """What of a result is compared."""
    if "tools" in result:
        return sorted(tool["name"] for tool in result["tools"])
    return result.get("protocolVersion") or result["content"][0]["text"]


def main():
    messages, answers = [sum(parts, []) for parts in zip(*map(session, REVISIONS))]
    said = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    run = subprocess.run([sys.argv[1], "template"], input=said, capture_output=True, text=True, timeout=300)
    if run.returncode:
        sys.exit(f"status {run.returncode}: {run.stderr}")
    found = [(answer["id"], what(answer["result"])) for answer in map(json.loads, run.stdout.splitlines())]
    if found != answers:
        sys.exit(f"template.py: found {found}, expected {answers}")
    print(f"template: {len(found)} answers of the templates' tools, in {len(REVISIONS)} revisions")


if __name__ == "__main__":
    main()
