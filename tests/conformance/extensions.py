#!/usr/bin/env python3
"""What the scenarios `server-legacy-extensions` and `legacy-extensions` of the official suite ask, which no release has yet:
extensions.py SERVER CLIENT PORT.

At 2025-11-25 each side declares extensions in `initialize`, and a tool shows what the other side has seen of them.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.request

from serving import serving

REVISION = "2025-11-25"
TOOL = "test_legacy_extension_capabilities"
OF_CLIENT = {
    "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
    "com.example/conformance": {"nested": {"enabled": False, "limit": 0}, "values": ["a", 2, None]},
    "com.example/empty": {},
}
OF_SERVER = {
    "io.modelcontextprotocol/ui": {},
    "com.example/conformance": {"nested": {"enabled": True, "limit": 3}, "values": [None, "b", 4]},
    "com.example/empty": {},
}


def ask(url, session, method, params, number=1):
    """Returns the result and the session."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION}
    if session:
        headers["Mcp-Session-Id"] = session
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(message).encode(), headers), timeout=10) as response:
        body = response.read().decode()
        if not number:
            return None, session
        lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:") and '"result"' in line]
        return json.loads(lines[0] if lines else body)["result"], response.headers["Mcp-Session-Id"] or session


def ask_server(server, port):
    with serving(port, server, "--port", port, "--extensions", REVISION) as url:
        for extensions in [OF_CLIENT, {"com.example/other": {"a": 1}}, None]:
            capabilities = {"extensions": extensions} if extensions else {}
            params = {"protocolVersion": REVISION, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}}
            result, session = ask(url, None, "initialize", params)
            assert result["capabilities"]["extensions"] == OF_SERVER, result
            ask(url, session, "notifications/initialized", {}, None)
            result, _ = ask(url, session, "tools/call", {"name": TOOL, "arguments": {}}, 2)
            assert json.loads(result["content"][0]["text"]) == {"extensions": extensions}, result
    print("pass  extensions  server")


def answer_client(client, *options):
    seen = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method, params = message["method"], message.get("params", {})
            result = {}
            if method == "initialize":
                seen["advertised"] = params["capabilities"].get("extensions")
                result = {"protocolVersion": REVISION, "capabilities": {"tools": {}, "extensions": OF_SERVER}}
                result["serverInfo"] = {"name": "s", "version": "1"}
            elif method == "tools/list":
                result["tools"] = [{"name": TOOL, "inputSchema": {"type": "object"}}]
            elif method == "tools/call":
                seen["observed"] = params["arguments"]["extensions"]
                result["content"] = [{"type": "text", "text": "recorded"}]
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() if "id" in message else b""
            self.send_response(200 if body else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.send_error(405)

        do_DELETE = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = {"MCP_CONFORMANCE_SCENARIO": "legacy-extensions", "MCP_CONFORMANCE_PROTOCOL_VERSION": REVISION}
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    subprocess.run([client, *options, url], env=os.environ | told, check=True, timeout=30, stdout=subprocess.DEVNULL)
    server.shutdown()
    assert seen == {"advertised": OF_CLIENT, "observed": OF_SERVER}, seen
    print("pass  extensions  client", *options)


def main(server, client, port):
    ask_server(server, port)
    answer_client(client)
    answer_client(client, "--smol")


main(*sys.argv[1:])
