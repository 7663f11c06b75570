#!/usr/bin/env python3
"""What the scenario `auth-token-audience-validation` of the official suite asks, which no release has yet: audience.py SERVER PORT.

An issuer with one RSA key; the server takes a token for itself, and answers 401 to no token and to one for another server, for
nobody, of yesterday, or with a foreign signature. Needs openssl.
"""

import base64
import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from serving import serving

ISSUER_PORT = 9797
ISSUER = f"http://127.0.0.1:{ISSUER_PORT}"
MODERN = "2026-07-28"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, check=True, capture_output=True).stdout


class Key:
    """An RSA key in a file."""

    def __init__(self, folder, name):
        self.path = f"{folder}/{name}.pem"
        openssl("genrsa", "-out", self.path, "2048")

    def jwk(self):
        modulus = openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1]
        return {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": base64url(bytes.fromhex(modulus)), "e": "AQAB"}

    def sign(self, audience, seconds):
        now = int(time.time())
        claims = {"client_id": "c", "iss": ISSUER, "sub": "ann", "jti": "1", "iat": min(now, now + seconds - 60), "exp": now + seconds}
        if audience:
            claims["aud"] = audience
        parts = [{"alg": "RS256", "kid": "one", "typ": "at+jwt"}, claims]
        text = ".".join(base64url(json.dumps(part).encode()) for part in parts)
        return f"{text}.{base64url(openssl('dgst', '-sha256', '-sign', self.path, data=text.encode()))}"


def serve_keys(keys):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"keys": keys}).encode()
            self.send_response(200 if self.path == "/.well-known/jwks.json" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", ISSUER_PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(url, revision, token):
    """Returns the status and the challenge of a request that opens a connection."""
    client = {"name": "audience", "version": "1"}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if revision == MODERN:
        prefix = "io.modelcontextprotocol/"
        meta = {f"{prefix}protocolVersion": revision, f"{prefix}clientInfo": client, f"{prefix}clientCapabilities": {}}
        method, params = "server/discover", {"_meta": meta}
        headers |= {"MCP-Protocol-Version": revision, "Mcp-Method": method}
    else:
        method, params = "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as response:
            return response.status, None
    except urllib.error.HTTPError as error:
        return error.code, error.headers["WWW-Authenticate"]


def main(server, port):
    with tempfile.TemporaryDirectory() as folder:
        key, foreign = Key(folder, "own"), Key(folder, "foreign")
        # The server asks for them when it starts.
        serve_keys([key.jwk()])
        with serving(port, server, "--port", port, "--issuer", ISSUER) as url:
            for revision in ["2025-06-18", "2025-11-25", MODERN]:
                tokens = [
                    ("valid", key.sign(url, 300), 200),
                    ("none", None, 401),
                    ("another audience", key.sign("https://other.example.com/mcp", 300), 401),
                    ("no audience", key.sign(None, 300), 401),
                    ("expired", key.sign(url, -3600), 401),
                    ("foreign key", foreign.sign(url, 300), 401),
                ]
                for name, token, wanted in tokens:
                    status, challenge = ask(url, revision, token)
                    assert status == wanted, (revision, name, status, challenge)
                    assert status == 200 or "resource_metadata=" in challenge, (revision, name, challenge)
                print(f"pass  audience  {revision}")


main(*sys.argv[1:])
