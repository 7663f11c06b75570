"""A server of 2024-11-05, by hand: members that nobody knows, questions that name no request, and ways to go.

Each line of its log (the environment's OLD_LOG) is a method that it has heard."""

import json
import os
import sys
import threading
import time

lock = threading.Lock()
answers = {}
cancelled = set()
subscribed = set()
ODD = '{"content":[{"type":"text","text":"\\u00e9 \\/"}],"zeta":9007199254740993,"alpha":1.10e5,"deep":{"b":1,"a":[ 1 , 2 ]}}'
FAILURE = '{"code":-32050,"message":"no \\u00e9","extra":[ 1 ],"data":{"n":9007199254740993}}'
TOOLS = ["odd", "echo", "fail", "slow", "ask", "three", "roots", "log", "change", "exit"]


def note(what):
    if "OLD_LOG" in os.environ:
        with open(os.environ["OLD_LOG"], "a") as log:
            log.write(what + "\n")


def write(text):
    with lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tell(method, **params):
    write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


def ask(method, params):
    ident = f"s{len(answers)}"
    answers[ident] = [threading.Event(), None]
    write(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}))
    answers[ident][0].wait(20)
    return answers[ident][1]


def sample(text):
    said = {"role": "user", "content": {"type": "text", "text": text}}
    return ask("sampling/createMessage", {"messages": [said], "maxTokens": 10})["result"]["content"]["text"]


def call(ident, params, line):
    name, token = params["name"], (params.get("_meta") or {}).get("progressToken")
    answer = lambda text: write(
        json.dumps({"jsonrpc": "2.0", "id": ident, "result": {"content": [{"type": "text", "text": text}]}})
    )
    if name == "odd":
        write(f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"result":{ODD}}}')
    elif name == "fail":
        write(f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"error":{FAILURE}}}')
    elif name == "echo":
        answer(line)
    elif name == "slow":
        for step in range(1, params.get("arguments", {}).get("steps", 200)):
            if ident in cancelled:
                return note("heard the end")
            if token is not None:
                tell("notifications/progress", progressToken=token, progress=step * 0.5, total=100)
            time.sleep(0.05)
        answer("slow")
    elif name == "ask":
        answer(sample("?"))
    elif name == "three":
        answer("".join(sample(str(number)) for number in range(3)))
    elif name == "roots":
        answer(ask("roots/list", {})["result"]["roots"][0]["uri"])
    elif name == "log":
        tell("notifications/message", level="warning", logger="old", data={"x": 1})
        answer("logged")
    elif name == "change":
        tell("notifications/tools/list_changed")
        for uri in subscribed:
            tell("notifications/resources/updated", uri=uri)
        tell("notifications/custom", big=9007199254740993)
        answer("changed")
    elif name == "exit":
        os._exit(3)
    else:
        write(json.dumps({"jsonrpc": "2.0", "id": ident, "error": {"code": -32602, "message": "Unknown tool"}}))


CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        ident, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is None:
            if ident in answers:
                answers[ident][1] = message
                answers[ident][0].set()
            continue
        note(method)
        result = None
        if method == "initialize":
            server = {"name": "old", "version": "1"}
            result = {"protocolVersion": "2024-11-05", "capabilities": CAPABILITIES, "serverInfo": server}
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}, "x-odd": 9007199254740993} for name in TOOLS]
            tools[0]["annotations"] = {"readOnlyHint": True}
            result = {"tools": tools}
        elif method == "tools/call":
            threading.Thread(target=call, args=(ident, params, line.strip()), daemon=True).start()
            continue
        elif method == "notifications/cancelled":
            cancelled.add(params["requestId"])
        elif method == "resources/subscribe":
            subscribed.add(params["uri"])
            result = {}
        elif method in ("ping", "resources/unsubscribe", "logging/setLevel"):
            result = {}
        if ident is not None:
            failure = {"error": {"code": -32601, "message": "Method not found"}}
            write(json.dumps({"jsonrpc": "2.0", "id": ident} | ({"result": result} if result is not None else failure)))


main()
