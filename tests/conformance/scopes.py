#!/usr/bin/env python3
"""What the scenario `sep-2350-server-scope-challenge` of the official suite asks, which no release has yet: scopes.py SERVER PORT [--mount NAME].

A token with too few scopes gets 403 with all scopes of the operation, the other token and no token get the result.
"""

import json
import sys
import urllib.error
import urllib.request

from serving import serving

OPERATIONS = [
    ("tools/call", "name", "test_simple_text", "tools:call", "tools:test_simple_text"),
    ("resources/read", "uri", "test://static-text", "resources:read", "resources:static"),
    ("resources/read", "uri", "test://template/123/data", "resources:read", "resources:template:123"),
    ("prompts/get", "name", "test_simple_prompt", "prompts:get", "prompts:test_simple_prompt"),
]
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "scopes", "version": "1"},
}


def ask(url, method, member, name, token):
    """Returns the status, the challenge and the body."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {member: name, "_meta": META}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
        "Mcp-Name": name,
    }
    if token:
        headers["Authorization"] = f"Bearer mcp-conformance-scope-{token}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, "", response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["WWW-Authenticate"], error.read()


def main(server, port, *mount):
    with serving(port, server, *mount, "--port", port) as url:
        for method, member, name, *scopes in OPERATIONS:
            status, challenge, _ = ask(url, method, member, name, "low")
            wanted = ['Bearer error="insufficient_scope"', 'resource_metadata="http://127.0.0.1:']
            wanted += [f"mcp:conformance:{scope}" for scope in scopes]
            assert status == 403 and all(part in challenge for part in wanted), (name, status, challenge)
            for token in ["full", None]:
                status, _, body = ask(url, method, member, name, token)
                assert status == 200 and b'"result"' in body, (name, token, status, body)
            print(f"pass  scopes  {name} {' '.join(mount)}")


main(*sys.argv[1:])
