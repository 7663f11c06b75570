#!/usr/bin/env python3
"""Tokens on a board: the programs of the footprint table that use them run in QEMU, and everything they sign or check is
checked or signed here, by other code (jose.py).

    tokens.py KIND ROLE IMAGE

IMAGE is built with the feature `report`: then it reads a whole message at a time, which ends with a newline.
KIND is `element` (signatures of the stand-in for a secure element) or `es256` (true ones). ROLE is `client`, a client
whose token is bound to a key: each request of it must carry a proof of its own. Or it is `server`, which must answer those
with a good token and refuse all others.
"""

import json
import os
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import jose

LIMIT = 60  # seconds for one answer
QEMU = (
    "qemu-system-arm -machine lm3s6965evb -nodefaults -display none -monitor none -icount shift=0"
    " -chardev stdio,id=uart0 -serial chardev:uart0 -semihosting-config enable=on,target=native -kernel"
)
failures = 0


def check(what, good, detail=""):
    global failures
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {what} {str(detail)[:600] if not good else ''}".rstrip(), flush=True)


# The parties, as the programs know them: examples/firmware/footprint/src, bound.rs, element.rs and guard.rs.

BOARD_KEY = jose.Key(int.from_bytes(bytes([7] * 32), "big"))
ISSUER_KEY = jose.Key(int.from_bytes(bytes([9] * 32), "big"))
OTHER_KEY = jose.Key(8)
ACCESS_TOKEN = "the-token-of-this-board.0123456789"
NOW = 1_700_000_000
SERVER = "http://server.example/mcp"
BOARD, BOARD_METADATA = "http://board.example/mcp", "/.well-known/oauth-protected-resource/mcp"
ISSUER = "https://as.example"
ENTRIES = 64  # of the replay table


class Board:
    """A program in QEMU; UART0 is its one connection."""

    def __init__(self, image):
        self.qemu = subprocess.Popen(QEMU.split() + [image], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.rest = b""

    def send(self, data):
        self.qemu.stdin.write(data)
        self.qemu.stdin.flush()

    def more(self, limit):
        out = self.qemu.stdout.fileno()
        if not select.select([out], [], [], limit)[0]:
            raise TimeoutError(f"nothing in {limit} s behind {self.rest!r}")
        piece = os.read(out, 65536)
        if not piece:
            raise EOFError(f"the end behind {self.rest!r}")
        self.rest += piece

    def receive(self):
        """One HTTP message: its first line, the headers as a list of pairs, the body."""
        end = time.monotonic() + LIMIT
        while b"\r\n\r\n" not in self.rest:
            self.more(end - time.monotonic())
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = int(dict(headers).get("content-length", 0))
        while len(self.rest) < length:
            self.more(end - time.monotonic())
        body, self.rest = self.rest[:length], self.rest[length:]
        return first, headers, body

    def is_silent(self):
        try:
            self.more(1)
        except TimeoutError:
            return True
        return False

    def end(self):
        """The status after the end of the input."""
        self.send(b"\4\4\4\4")
        try:
            return self.qemu.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return "time"

    def kill(self):
        self.qemu.kill()
        self.qemu.wait()


def message(first, headers, body):
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode() + body


# The board as a client


def answer(status, body, **headers):
    content = json.dumps(body).encode() + b"\n"
    lines = {"Content-Type": "application/json", "Content-Length": len(content)}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    return message(f"HTTP/1.1 {status}", lines, content)


class Requests:
    """The requests of a client, whose proofs are checked."""

    def __init__(self, board, verify):
        self.board, self.verify = board, verify
        self.ids, self.count = set(), 0

    def next(self, what, nonce):
        first, headers, body = self.board.receive()
        values = lambda wanted: [value for name, value in headers if name == wanted]
        check(f"{what}: sent to the URL, query included", first == "POST /mcp?unit=7 HTTP/1.1", first)
        check(f"{what}: one token, with the scheme DPoP", values("authorization") == ["DPoP " + ACCESS_TOKEN], headers)
        check(f"{what}: one proof", len(values("dpop")) == 1, headers)
        header, claims, signed, signature = jose.parts(values("dpop")[0])
        check(f"{what}: header of the proof", header == {"typ": "dpop+jwt", "alg": "ES256", "jwk": BOARD_KEY.public}, header)
        check(f"{what}: signature by that key", self.verify(header["jwk"], signed, signature), signature)
        check(f"{what}: no signature of another text", not self.verify(header["jwk"], signed + b"x", signature))
        id = claims.pop("jti")
        check(f"{what}: a jti of 16 bytes that is new", len(jose.decode(id)) == 16 and id not in self.ids, id)
        wanted = {"htm": "POST", "htu": SERVER, "iat": NOW + self.count, "ath": jose.sha256(ACCESS_TOKEN)}
        wanted |= {"nonce": nonce} if nonce else {}
        check(f"{what}: htm, htu, iat, ath and {'nonce' if nonce else 'no nonce'}", claims == wanted, (claims, wanted))
        self.ids.add(id)
        self.count += 1
        return json.loads(body)


def client(board, verify):
    requests = Requests(board, verify)
    challenge = 'Bearer error="invalid_token", DPoP algs="ES256", error="use_dpop_nonce"'
    probe = requests.next("first request", None)
    board.send(answer("401 Unauthorized", {}, WWW_Authenticate=challenge, DPoP_Nonce="nonce-1"))
    again = requests.next("sent again", "nonce-1")
    check("sent again: the same message", again == probe, (again, probe))
    hello = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    board.send(answer("200 OK", {"jsonrpc": "2.0", "id": again["id"], "result": hello}, DPoP_Nonce="nonce-2"))
    result = {"resultType": "complete", "content": [{"type": "text", "text": "42"}], "isError": False}
    for number in range(2):
        call = requests.next(f"call {number}", "nonce-2")
        check(f"call {number}: a call", call["method"] == "tools/call", call)
        board.send(answer("200 OK", {"jsonrpc": "2.0", "id": call["id"], "result": result}))
    requests.next("refused call", "nonce-2")
    board.send(answer("401 Unauthorized", {}, WWW_Authenticate='DPoP error="invalid_token"'))
    check("a refused call is not sent again", board.is_silent(), board.rest)


# The board as a server

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CLAIMS = {"iss": ISSUER, "aud": BOARD, "sub": "ann", "exp": NOW + 600, "scope": "tools", "cnf": {"jkt": BOARD_KEY.thumbprint()}}


def access_token(signer, **changes):
    return jose.signed(signer, {"typ": "at+jwt"}, {**CLAIMS, **changes})


def proof(signer, token, number, **changes):
    claims = {"jti": f"proof-{number}", "htm": "POST", "htu": BOARD, "iat": NOW, "ath": jose.sha256(token)}
    return jose.signed(signer, {"typ": "dpop+jwt", "jwk": signer.public}, {**claims, **changes})


def call(headers):
    """A `tools/call` of 2026-07-28 with more headers."""
    params = {"name": "add", "arguments": {"a": 40, "b": 2}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n"
    lines = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "add",
        "Content-Length": len(body),
        **headers,
    }
    return message("POST /mcp HTTP/1.1", lines, body)


def bound(signer, token, number, scheme="DPoP", **changes):
    return {"Authorization": f"{scheme} {token}", "DPoP": proof(signer, token, number, **changes)}


def server(board, sign):
    issuer, own, other = sign(ISSUER_KEY), sign(BOARD_KEY), sign(OTHER_KEY)
    good = access_token(issuer)
    forged = good[:-8] + ("A" * 8 if good[-8:] != "A" * 8 else "B" * 8)
    wrong = bound(own, good, "wrong")
    wrong["DPoP"] = wrong["DPoP"][:-8] + ("A" * 8 if wrong["DPoP"][-8:] != "A" * 8 else "B" * 8)
    first = bound(own, good, 0)
    accepted = 0
    for what, headers, status, code in [
        ("no token", {}, 401, None),
        ("a good token with a proof", first, 200, None),
        ("the same proof again", first, 401, "invalid_dpop_proof"),
        ("the token as Bearer", {"Authorization": "Bearer " + good}, 401, "invalid_token"),
        ("no proof", {"Authorization": "DPoP " + good}, 401, "invalid_dpop_proof"),
        ("a changed signature of the token", bound(own, forged, 1), 401, "invalid_token"),
        ("a changed signature of the proof", wrong, 401, "invalid_dpop_proof"),
        ("a proof by another key", bound(other, good, 2), 401, "invalid_dpop_proof"),
        ("a proof for GET", bound(own, good, 3, htm="GET"), 401, "invalid_dpop_proof"),
        ("a proof for another server", bound(own, good, 4, htu=SERVER), 401, "invalid_dpop_proof"),
        ("a proof for another token", bound(own, good, 5, ath=jose.sha256("x")), 401, "invalid_dpop_proof"),
        ("an old proof", bound(own, good, 6, iat=NOW - 301), 401, "invalid_dpop_proof"),
        ("an expired token", bound(own, access_token(issuer, exp=NOW - 60), 7), 401, "invalid_token"),
        ("a token for another server", bound(own, access_token(issuer, aud=SERVER), 8), 401, "invalid_token"),
        ("a token by another issuer", bound(own, access_token(issuer, iss="https://other.example"), 9), 401, "invalid_token"),
        ("a token without the scope", bound(own, access_token(issuer, scope="other"), 10), 403, "insufficient_scope"),
        ("another proof with the good token", bound(own, good, 11), 200, None),
    ]:
        board.send(call(headers))
        line, answered, body = board.receive()
        check(f"{what}: {status}", line.split()[1] == str(status), (line, answered, body))
        challenge = dict(answered).get("www-authenticate", "")
        if status == 200:
            accepted += 1
            check(f"{what}: answered", '"42"' in body.decode(), body)
        else:
            check(f"{what}: {code or 'no error'}", f'error="{code}"' in challenge if code else "error" not in challenge, challenge)
            named = f'resource_metadata="http://board.example{BOARD_METADATA}"' in challenge and 'scope="tools"' in challenge
            check(f"{what}: metadata and scope are named", named, challenge)
    board.send(message(f"GET {BOARD_METADATA} HTTP/1.1", {"Host": "localhost"}, b"") + call({}))
    line, _, body = board.receive()
    board.receive()
    metadata = json.loads(body)
    good_metadata = (metadata["resource"], metadata["authorization_servers"]) == (BOARD, [ISSUER])
    check("the metadata, without a token", line.split()[1] == "200" and good_metadata, (line, body))
    if isinstance(issuer, jose.Key):
        return
    # The proof of the token without the scope was good, and is in the table too.
    for number in range(ENTRIES - accepted - 1):
        board.send(call(bound(own, good, f"more-{number}")))
        accepted += board.receive()[0].split()[1] == "200"
    check(f"{ENTRIES} proofs fill the table", accepted == ENTRIES - 1, accepted)
    board.send(call(bound(own, good, "one too many")))
    line, _, _ = board.receive()
    check("with a full table requests are refused: 503", line.split()[1] == "503", line)


def main():
    kind, role, image = sys.argv[1:]
    sign = jose.Element if kind == "element" else lambda key: key
    verify = jose.Element(BOARD_KEY).verify if kind == "element" else jose.verify
    board = Board(image)
    try:
        client(board, verify) if role == "client" else server(board, sign)
        check("ends with its input", board.end() == 0)
    except (TimeoutError, EOFError, BrokenPipeError, KeyError, ValueError, IndexError) as error:
        check(f"the {role} goes on", False, repr(error))
    finally:
        board.kill()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
