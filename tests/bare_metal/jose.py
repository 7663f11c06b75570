"""Signed tokens with ES256, in plain Python: what the programs here sign and check, checked and signed by something else.

For tests only: it takes as long as it takes, and the time says something about the key.
"""

import base64
import hashlib
import json

# P-256 (FIPS 186-5).
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


def add(a, b):
    """The sum of two points; None is the point at infinity."""
    if a is None or b is None:
        return a or b
    (ax, ay), (bx, by) = a, b
    if ax == bx:
        if (ay + by) % P == 0:
            return None
        slope = (3 * ax * ax - 3) * pow(2 * ay, -1, P)
    else:
        slope = (by - ay) * pow(bx - ax, -1, P)
    x = (slope * slope - ax - bx) % P
    return x, (slope * (ax - x) - ay) % P


def times(number, point):
    result = None
    for bit in bin(number)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def digest(message):
    return int.from_bytes(hashlib.sha256(message).digest(), "big")


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    """The bytes of base64url, which has no padding."""
    if "=" in text or any(character in text for character in "+/"):
        raise ValueError(f"not base64url: {text}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sha256(text):
    return encode(hashlib.sha256(text.encode()).digest())


class Key:
    """A private key."""

    def __init__(self, number):
        self.number = number
        x, y = times(number, G)
        self.public = {"crv": "P-256", "kty": "EC", "x": encode(x.to_bytes(32, "big")), "y": encode(y.to_bytes(32, "big"))}

    def sign(self, message):
        secret = self.number.to_bytes(32, "big")
        k = int.from_bytes(hashlib.sha512(secret + message).digest(), "big") % (N - 1) + 1
        r = times(k, G)[0] % N
        s = pow(k, -1, N) * (digest(message) + r * self.number) % N
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def thumbprint(self):
        return thumbprint(self.public)


def thumbprint(key):
    """RFC 7638."""
    members = {name: key[name] for name in ("crv", "kty", "x", "y")}
    return sha256(json.dumps(members, separators=(",", ":")))


def verify(key, message, signature):
    """Whether a signature is by a public key."""
    point = tuple(int.from_bytes(decode(key[name]), "big") for name in ("x", "y"))
    x, y = point
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if len(signature) != 64 or (y * y - x**3 + 3 * x - B) % P or not (0 < r < N and 0 < s < N):
        return False
    inverse = pow(s, -1, N)
    sum = add(times(digest(message) * inverse % N, G), times(r * inverse % N, point))
    return sum is not None and sum[0] % N == r


class Element:
    """What stands for a secure element in examples/firmware/footprint/src/element.rs, with the key of a real one."""

    def __init__(self, key):
        self.public, self.thumbprint = key.public, key.thumbprint

    def sign(self, message):
        return bytes(255 - byte for byte in hashlib.sha256(message).digest()) * 2

    def verify(self, _, message, signature):
        return signature == self.sign(message)


def signed(signer, header, claims):
    """A compact JWS."""
    parts = [encode(json.dumps(part, separators=(",", ":")).encode()) for part in (dict(header, alg="ES256"), claims)]
    message = ".".join(parts)
    return message + "." + encode(signer.sign(message.encode()))


def parts(token):
    """Header, claims, the signed bytes and the signature of a compact JWS."""
    message, _, signature = token.rpartition(".")
    header, claims = message.split(".")
    return json.loads(decode(header)), json.loads(decode(claims)), message.encode(), decode(signature)
