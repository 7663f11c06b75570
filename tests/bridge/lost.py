#!/usr/bin/env python3
"""What a host sees while the server behind the bridge dies, comes back, asks, and changes its era, line by line; and that nothing is
left when the host ends."""

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty

from programs import BRIDGE, META, OLD, SYSMON, Front, Host, HttpServer, Relay

ERAS = ["legacy", "modern"]
ASKS = {"sampling": {}, "roots": {}, "elicitation": {}}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
INPUT = {
    "legacy": [
        {"id": 1, "method": "initialize", "params": OPENING},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ],
    "modern": [{"id": 2, "method": "tools/list", "params": {"_meta": META}}],
}
# It stays when its stdin has ended, and may stay at SIGTERM too.
STAYS = """
import os, runpy, signal, sys, time
open(os.environ["STAYS"], "w").write(str(os.getpid()))
signal.signal(signal.SIGTERM, getattr(signal, sys.argv[1]))
with open(os.devnull, "w") as sys.stderr:
    try:
        runpy.run_path(sys.argv[2], run_name="__main__")
    except SystemExit:
        pass
time.sleep(60)
"""


def text(answer):
    return answer["result"]["content"][0]["text"]


def bytes_pass():
    """Where both are of one era, params, results and errors are the same bytes."""
    host = Host("legacy", "--", *OLD)
    host.open()
    odd = host.call("odd")["_line"]
    assert '"text":"\\u00e9 \\/"}],"zeta":9007199254740993,"alpha":1.10e5,"deep":{"b":1,"a":[ 1 , 2 ]}}' in odd, odd
    failed = host.call("fail")["_line"]
    assert '"error":{"code":-32050,"message":"no \\u00e9","extra":[ 1 ],"data":{"n":9007199254740993}}' in failed, failed
    host.say(
        '{"jsonrpc":"2.0","id":"a\\u0062","method":"tools/call","params":{"z":[ 1.0 ],"name":"echo",'
        '"arguments":{"b":1e2,"a":"\\u00e9"},"task":{"ttl":1},"_meta":{"k":[ ]}}}'
    )
    echo = host.until(lambda message: message.get("id") == "ab")
    assert '"id":"a\\u0062"' in echo["_line"]
    params = '"params":{"z":[ 1.0 ],"name":"echo","arguments":{"b":1e2,"a":"\\u00e9"},"task":{"ttl":1},"_meta":{"k":[ ]}}'
    assert params in text(echo), text(echo)
    listed = host.ask("tools/list")["_line"]
    assert listed.count('"x-odd": 9007199254740993') == 10, listed
    host.close()


def killed(era):
    """The child is killed: the call under way fails, the next one is answered, changes are told, subscriptions are there again."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OLD_LOG"] = log = os.path.join(folder, "log")
        host = Host(era, "--wait", "10", "--", *OLD)
        host.open()
        follow(host)
        if era == "legacy":
            host.ask("logging/setLevel", level="debug")
        slow = host.send("tools/call", name="slow")
        time.sleep(0.4)
        os.kill(host.child(), signal.SIGKILL)
        lost = host.answer(slow)["error"]
        assert lost["code"] == -32603 and "may have been executed" in lost["message"], lost
        assert "result" in host.ask("ping") or era == "modern"
        begun = time.monotonic()
        host.call("odd")
        took = time.monotonic() - begun
        told = host.methods()
        assert "notifications/tools/list_changed" in told and "notifications/resources/updated" in told, told
        assert "updated" in json.dumps([host.call("change"), host.methods()])
        # By itself, and while nothing is under way.
        gone = host.call("exit")["error"]
        assert "may have been executed" in gone["message"], gone
        assert text(host.call("log")) == "logged"
        for _ in range(100):
            heard = open(log).read().split()
            if heard.count("resources/subscribe") == 3:
                break
            time.sleep(0.02)
        assert heard.count("initialize") == 3 and heard.count("resources/subscribe") == 3, heard
        assert heard.count("logging/setLevel") == (3 if era == "legacy" else 0), heard
        host.close()
        assert len(host.errors) == 5, host.errors  # there; lost, there; lost, there
        print(f"killed, {era} host: the next call took {took:.2f} s")


def not_written(era):
    """A call that comes before the loss is noticed, and of whose line nothing could be written any more, is sent again."""

    def plug_in():
        board, line = pty.openpty()
        tty.setraw(line)
        server = subprocess.Popen([SYSMON], stdin=board, stdout=board, stderr=subprocess.DEVNULL)
        os.symlink(os.ttyname(line), port)
        os.close(board)
        return line, server

    with tempfile.TemporaryDirectory() as folder:
        port = os.path.join(folder, "tty")
        line, server = plug_in()
        for target in [["--", SYSMON], [f"serial:{port}"]]:
            host = Host(era, "--wait", "10", *target)
            host.open()
            assert "result" in host.call("load")
            # It learns of the loss and of the call at once.
            host.process.send_signal(signal.SIGSTOP)
            if len(target) == 2:
                os.kill(host.child(), signal.SIGKILL)
            else:
                server.kill()
                server.wait()
                os.unlink(port)
            time.sleep(0.1)
            call = host.send("tools/call", name="load", arguments={})
            host.process.send_signal(signal.SIGCONT)
            if len(target) == 1:
                os.close(line)
                line, server = plug_in()
            answer = host.answer(call)
            assert "result" in answer, (target, answer)
            host.close()
        server.kill()
        server.wait()
        os.close(line)


def cancelled(era):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OLD_LOG"] = log = os.path.join(folder, "log")
        host = Host(era, "--", *OLD)
        host.open()
        slow = host.send("tools/call", name="slow", _meta={"progressToken": "p"})
        progress = host.until(lambda message: message.get("method") == "notifications/progress")["params"]
        assert progress["progressToken"] == "p" and progress["total"] == 100, progress
        host.say(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}))
        for _ in range(100):
            if "heard the end" in open(log).read():
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the server did not hear of the cancellation")
        host.close()


def questions_of_an_old_server():
    """A host of 2026-07-28 is asked in rounds, one question after the other."""
    host = Host("modern", "--", *OLD, capabilities=ASKS)
    host.open()
    first = host.call("three")["result"]
    for round in range(3):
        assert first["resultType"] == "input_required", first
        (key, asked), = first["inputRequests"].items()
        assert asked["method"] == "sampling/createMessage" and str(round) in json.dumps(asked), asked
        content = {"type": "text", "text": f"<{round}>"}
        answer = {"role": "assistant", "content": content, "model": "m"}
        again = host.ask(
            "tools/call", name="three", requestState=first["requestState"], inputResponses={key: answer}
        )
        first = again["result"]
    assert first["content"][0]["text"] == "<0><1><2>", first
    over = host.ask("tools/call", name="three", requestState="mcp-bridge:1", inputResponses={})
    assert over["error"]["code"] == -32602, over
    host.close()


def http(host_era, server_era):
    """The HTTP server is stopped: a call waits, and is answered once when the server is there again."""
    server = HttpServer()
    try:
        host = Host(host_era, "--wait", "10", "--era", server_era, server.url)
        host.open()
        assert "result" in host.call("test_simple_text")
        server.stop()
        waits = host.send("tools/call", name="test_simple_text")
        time.sleep(0.5)
        server.start()
        assert "result" in host.answer(waits), (host_era, server_era)
        # A session that is forgotten: the request was not executed.
        server.stop()
        server.start()
        assert "result" in host.call("test_simple_text"), (host_era, server_era)
        host.close()
    finally:
        server.stop()


def forgotten(host_era, server_era):
    """A host that says nothing hears that an HTTP server was started anew."""
    server = HttpServer()
    try:
        host = Host(host_era, "--check", "1", "--era", server_era, server.url)
        host.open()
        follow(host)
        host.call("test_simple_text")
        server.stop()
        server.start()
        host.until(lambda message: message.get("method") == "notifications/tools/list_changed")
        assert "result" in host.call("test_simple_text"), (host_era, server_era)
        host.close()
    finally:
        server.stop()


def follow(host):
    """Subscribes to all changes."""
    if host.modern:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["x://a"]}
        host.send("subscriptions/listen", notifications=wanted)
        host.until(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
    else:
        host.ask("resources/subscribe", uri="x://a")


def silent(host_era, server_era):
    """All connections to an HTTP server go dead without a sign: the host hears of later changes."""
    server = Front("--", *OLD)
    relay = Relay(int(server.url.split(":")[2].split("/")[0]))
    try:
        host = Host(host_era, "--check", "1", "--era", server_era, relay.url)
        host.open()
        follow(host)
        # The bridge agrees to a listen before it has asked the server behind for each resource.
        for _ in range(50):
            host.call("change")
            if "notifications/resources/updated" in host.methods():
                break
            time.sleep(0.1)
        relay.go_silent()
        # Connections at rest are used for three seconds.
        time.sleep(8)
        host.call("odd")
        host.methods()
        assert text(host.call("change")) == "changed"
        for method in ["tools/list_changed", "resources/updated"]:
            if not any(message.get("method") == f"notifications/{method}" for message in host.seen):
                host.until(lambda message: message.get("method") == f"notifications/{method}")
        host.close()
    finally:
        server.stop()


def never_there():
    """A server that does not come: the host is answered, and told what is missing."""
    host = Host("legacy", "--wait", "1", "--", "/nonexistent/server")
    assert "tools" in host.open()["result"]["capabilities"]
    missing = host.ask("tools/list")["error"]
    assert "/nonexistent/server" in missing["message"], missing
    assert "result" in host.ask("ping")
    host.close()
    assert len(host.errors) == 1, host.errors


def known():
    """With a cache the host opens at once, without a server. It is replaced as a whole, and like the journal for its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        cache, journal = os.path.join(folder, "cache"), os.path.join(folder, "journal")
        host = Host("legacy", "--cache", cache, "--journal", journal, "--", *OLD)
        first = host.open()["result"]
        host.close()
        assert [os.stat(path).st_mode & 0o777 for path in [cache, journal]] == [0o600] * 2
        with open(cache) as old:
            host = Host("legacy", "--cache", cache, "--", *OLD)
            host.open()
            host.call("log")
            host.close()
            assert old.read() == open(cache).read() and not os.path.samestat(os.fstat(old.fileno()), os.stat(cache))
        assert sorted(os.listdir(folder)) == ["cache", "journal"]
        host = Host("legacy", "--cache", cache, "--", "/nonexistent/server")
        begun = time.monotonic()
        again = host.open()["result"]
        assert again == first and time.monotonic() - begun < 5, again
        host.close()
        # One that is longer than a message is left out.
        with open(cache, "w") as file:
            file.write(" " * 9000 + json.dumps(first))
        host = Host("legacy", "--cache", cache, "--message", "9000", "--wait", "0", "--", "/nonexistent/server")
        assert host.open()["result"]["serverInfo"]["name"] == "mcp-bridge"
        host.close()


def limits():
    host = Host("legacy", "--wait", "1", "--in-flight", "3", "--message", "2000", "--", "/nonexistent/server")
    host.open()
    for _ in range(5):
        host.send("tools/list")
    errors = [host.until(lambda message: "error" in message)["error"]["message"] for _ in range(5)]
    assert sum("Overloaded" in error for error in errors) == 2, errors
    host.say('{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"%s"}}' % ("x" * 3000))
    too_long = host.until(lambda message: "error" in message)
    assert "too long" in too_long["error"]["message"], too_long
    host.close()


def a_part_of_the_tools():
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, "journal")
        host = Host("legacy", "--deny", "e*", "--journal", journal, "--", *OLD)
        host.open()
        names = [tool["name"] for tool in host.ask("tools/list")["result"]["tools"]]
        assert "odd" in names and not {"echo", "exit"} & set(names), names
        assert host.call("exit")["error"]["code"] == -32602
        assert text(host.call("log")) == "logged"
        host.close()
        lines = [json.loads(line) for line in open(journal)]
        assert [line["outcome"] for line in lines] == ["result", "error -32602", "result"], lines
        assert lines[2]["target"] == "log" and "arguments" not in lines[2], lines
        assert {line["host"] for line in lines} == {"lines"}, lines
        host = Host("legacy", "--journal", journal, "--journal-arguments", "--", *OLD)
        host.open()
        host.call("echo", a=[1, "é"])
        host.close()
        last = json.loads(list(open(journal))[-1])
        assert last["arguments"] == {"a": [1, "é"]}, last
    host = Host("modern", "--read-only", "--", *OLD)
    host.open()
    assert [tool["name"] for tool in host.ask("tools/list")["result"]["tools"]] == ["odd"]
    assert "result" in host.call("odd") and "error" in host.call("log")
    host.close()


def a_hundred_losses():
    """Memory does not grow with losses."""
    host = Host("legacy", "--", SYSMON)
    host.open()
    sizes = []
    for number in range(100):
        os.kill(host.child(), signal.SIGKILL)
        # One that was written before the loss was noticed may have been executed.
        for _ in range(20):
            if "result" in host.call("load"):
                break
        if number in (20, 99):
            sizes.append(host.memory())
    host.close()
    assert sizes[1] - sizes[0] < 256, sizes
    print(f"a hundred losses: {sizes[0]} KiB after 20, {sizes[1]} KiB after 100")


def ends(name, *arguments, least=0.0, most=0.8):
    """Writes all lines at once, so that the end comes before the answers."""
    for era, messages in INPUT.items():
        lines = "".join(json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in messages)
        begun = time.monotonic()
        done = subprocess.run([BRIDGE, *arguments], input=lines, capture_output=True, text=True, timeout=20)
        took = time.monotonic() - begun
        assert done.returncode == 0 and '"tools":[' in done.stdout.replace(" ", ""), (name, era, done)
        assert least <= took < most, (name, era, took, done.stderr)
        print(f"ends, {name}, {era} host: {took * 1000:.0f} ms from the start to the end", flush=True)


def ends_child_that_stays(reaction, least, most):
    """The bridge ends before a host would kill it, and the child before the bridge."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAYS"] = place = os.path.join(folder, "id")
        ends(f"a child that stays, {reaction}", "--", sys.executable, "-c", STAYS, reaction, OLD[1], least=least, most=most)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(open(place).read()), signal.SIGKILL)
            raise AssertionError("the child has outlived the bridge")


def ends_over_tcp():
    """Each connection has a server of its own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection, _ = listener.accept()
            subprocess.Popen([SYSMON], stdin=connection, stdout=connection, stderr=subprocess.DEVNULL)
            connection.close()

    threading.Thread(target=accept, daemon=True).start()
    ends("tcp", f"tcp:127.0.0.1:{listener.getsockname()[1]}")


def ends_over_serial():
    board, line = pty.openpty()
    tty.setraw(line)
    server = subprocess.Popen([SYSMON], stdin=board, stdout=board, stderr=subprocess.DEVNULL)
    try:
        ends("pty", f"serial:{os.ttyname(line)}")
    finally:
        server.kill()
        server.wait()


def ends_several():
    """Also: a host that says nothing hears that a server of several has come back."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"mcpServers": {"one": {"command": OLD[0], "args": OLD[1:]}}}, file)
        file.flush()
        ends("several servers", "--config", file.name)
        host = Host("legacy", "--config", file.name)
        host.open()
        host.ask("tools/list")
        os.kill(host.child(), signal.SIGKILL)
        host.until(lambda message: message.get("method") == "notifications/tools/list_changed")
        host.close()


def end_of_input():
    ends("child", "--", *OLD)
    server = HttpServer()
    try:
        ends("url", server.url)
    finally:
        server.stop()
    ends_over_tcp()
    ends_over_serial()
    ends_several()
    # 500 ms until SIGTERM, 400 more until SIGKILL.
    ends_child_that_stays("SIG_DFL", 0.5, 1.4)
    ends_child_that_stays("SIG_IGN", 0.9, 1.8)


def ends_by(number, process, place, least=0.5, most=1.6):
    """Ends the bridge by a signal: first it ends its child, that stays until SIGTERM."""
    begun = time.monotonic()
    process.send_signal(number)
    assert process.wait(20) == 0
    took = time.monotonic() - begun
    assert least <= took < most, took
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(open(place).read()), signal.SIGKILL)
        raise AssertionError("the child has outlived the bridge")


def signals():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAYS"] = place = os.path.join(folder, "id")
        journal, config, path = (os.path.join(folder, name) for name in ["journal", "mcp.json", "socket"])
        stays = [sys.executable, "-c", STAYS, "SIG_DFL", OLD[1]]
        with open(config, "w") as file:
            json.dump({"mcpServers": {"one": {"command": stays[0], "args": stays[1:]}}}, file)
        for number in [signal.SIGTERM, signal.SIGINT]:
            for prefix, arguments in [("", ["--", *stays]), ("one_", ["--config", config])]:
                host = Host("legacy", "--journal", journal, *arguments)
                host.open()
                host.ask("tools/call", name=prefix + "odd")
                ends_by(number, host.process, place)
            front = Front("--journal", journal, "--", *stays, listen=f"unix:{path}")
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "odd", "_meta": META}})
            with socket.socket(socket.AF_UNIX) as host:
                host.connect(path)
                headers = "Host: localhost", "Content-Type: application/json", "Accept: application/json, text/event-stream"
                named = "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: odd", f"Content-Length: {len(body)}"
                host.sendall("\r\n".join(["POST /mcp HTTP/1.1", *headers, *named, "", body]).encode())
                answer = host.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer
                # The connection is open still.
                ends_by(number, front.process, place)
            assert not os.path.exists(path)
        assert open(journal).read().count('"outcome":"result"') == 6, open(journal).read()
    # A host that does not read keeps it for ten seconds.
    host = subprocess.Popen([BRIDGE, "--", *OLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for message in INPUT["legacy"] + [{"id": 3, "method": "tools/call", "params": {"name": "echo", "x": "x" * 200_000}}]:
        host.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
    host.stdin.flush()
    time.sleep(1)
    host.send_signal(signal.SIGTERM)
    assert host.wait(20) == 1


def main():
    begun = time.monotonic()
    bytes_pass()
    for era in ERAS:
        killed(era)
        not_written(era)
        cancelled(era)
    os.environ.pop("OLD_LOG")
    questions_of_an_old_server()
    for host_era in ERAS:
        for server_era in ERAS:
            http(host_era, server_era)
            forgotten(host_era, server_era)
            silent(host_era, server_era)
    never_there()
    known()
    limits()
    a_part_of_the_tools()
    a_hundred_losses()
    end_of_input()
    signals()
    print(f"lost.py: all as it should be, in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
