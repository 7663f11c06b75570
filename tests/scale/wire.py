"""HTTP/1.1 and event streams for clients of tests: asyncio, a connection for each request, so that a proxy gives each request
to whichever process is next."""

import asyncio
import json


class Cut(Exception):
    """The connection ended where it should not."""


class Response:
    """The head of an answer, and its body piece by piece."""

    def __init__(self, status, headers, reader, writer):
        self.status, self.headers, self.reader, self.writer = status, headers, reader, writer
        self.chunked = headers.get("transfer-encoding", "") == "chunked"
        self.left = int(headers.get("content-length", 0)) if "content-length" in headers else None
        self.is_stream = headers.get("content-type", "").startswith("text/event-stream")

    async def piece(self):
        """Returns the next bytes of the body, none at its end."""
        try:
            if self.chunked:
                line = await self.reader.readline()
                if not line.endswith(b"\n"):
                    raise Cut("in a chunked body")
                size = int(line, 16)
                body = await self.reader.readexactly(size + 2)
                return body[:-2]
            if self.left == 0:
                return b""
            body = await self.reader.read(self.left if self.left is not None else 65536)
            if not body and self.left:
                raise Cut("in a body")
            if self.left is not None:
                self.left -= len(body)
            return body
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise Cut(str(error)) from None

    async def body(self):
        """Returns all of the body, and closes the connection."""
        try:
            whole = b""
            while piece := await self.piece():
                whole += piece
            return whole
        finally:
            self.close()

    async def json(self):
        """Returns the body as JSON; None if it is empty."""
        body = await self.body()
        return json.loads(body) if body else None

    async def events(self):
        """Yields the events of a stream: id, name and data. The end is an end in order; else `Cut`."""
        pending, identity, name, data = b"", None, "message", []
        while piece := await self.piece():
            pending += piece
            *lines, pending = pending.split(b"\n")
            for line in lines:
                line = line.rstrip(b"\r").decode()
                field, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not line:
                    if identity is not None or data:
                        yield identity, name, "\n".join(data)
                    identity, name, data = None, "message", []
                elif field == "id":
                    identity = value
                elif field == "event":
                    name = value
                elif field == "data":
                    data.append(value)

    def close(self):
        """Closes the connection."""
        self.writer.close()


async def send(port, method, path, headers=(), body=None, timeout=15.0):
    """Sends a request, and returns the `Response` when its head is there.

    Raises `Cut` if the connection ends before, `TimeoutError` after `timeout` seconds."""
    writer = None
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "User-Agent: load", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in dict(headers).items()]
            if text is not None:
                lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (text or b""))
            await writer.drain()
            line = await reader.readline()
            if not line:
                raise Cut("before the answer")
            status, found = int(line.split()[1]), {}
            while (line := await reader.readline()).strip():
                name, _, value = line.decode().partition(":")
                found[name.lower()] = value.strip()
            return Response(status, found, reader, writer)
    except BaseException as error:
        if writer:
            writer.close()
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise Cut(str(error)) from None
        raise
