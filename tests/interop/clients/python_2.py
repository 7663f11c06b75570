"""Drives the Python SDK 2.x (`mcp` 2.3.0) as a client."""

import asyncio
import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver
from python_common import Common, dump, on_stdio

import mcp.client.session
import mcp_types as types
from mcp.client.client import Client as SdkClient
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

MODERN = "2026-07-28"


class Client(Common):
    types = types
    Error = MCPError

    def __init__(self, emit):
        super().__init__(emit)
        self.listening = {}

    @contextlib.asynccontextmanager
    async def _open(self, client):
        with self.rpc_errors():
            async with client:
                yield client

    async def _message(self, message):
        if isinstance(message, Exception):
            self.emit("complaint", source="message handler", text=repr(message)[:2000])
        elif isinstance(message, types.ResourceUpdatedNotification) and not self.listening:
            # Under a listen stream the SDK's own iterator is what is tested.
            self.emit("updated", uri=message.params.uri)

    async def op_connect(self, transport, revision, elicitation=True, pinned=False, **_):
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision  # what initialize() offers
        self.questions.clear()
        self.listening.clear()
        if transport["kind"] == "stdio":
            server = on_stdio(StdioServerParameters, transport)
        elif transport["kind"] == "http":
            server = transport["url"]
        elif transport["kind"] == "sse":
            server = sse_client(transport["url"])
        else:
            raise ValueError(f"no transport {transport['kind']!r}")
        if revision != MODERN:
            mode = "legacy"
        else:
            mode = MODERN if pinned else "auto"
        client = SdkClient(
            server,
            mode=mode,
            client_info=types.Implementation(name="interop-python-2", version="2.3.0"),
            elicitation_callback=self._elicit if elicitation else None,
            logging_callback=self._logged,
            message_handler=self._message,
        )
        self.connection = driver.Connection(self._open(client))
        self.sdk = await self.connection.opened
        info = self.sdk.server_info
        return {
            "revision": self.sdk.protocol_version,
            "serverInfo": dump(info) if info else None,
            "capabilities": dump(self.sdk.server_capabilities),
            "instructions": self.sdk.instructions,
        }

    async def _page(self, method, cursor):
        return await method(cursor=cursor)

    async def op_call_tool(self, number, name, arguments, progress=False, log_level=None):
        meta = {"io.modelcontextprotocol/logLevel": log_level} if log_level else None
        with self.rpc_errors():
            call = self.sdk.call_tool(
                name, arguments, progress_callback=self._progress(number) if progress else None, meta=meta
            )
            return dump(await call)

    async def cancel(self, _target, task):
        task.cancel()  # the SDK sends notifications/cancelled for an abandoned request

    async def op_listen(self, uris):
        """Opens a listen stream; what it yields becomes events."""
        key = f"listen {len(self.listening)}"
        self.listening[key] = stream = driver.Connection(self.sdk.listen(resource_subscriptions=uris))
        try:
            with self.rpc_errors():
                subscription = await stream.opened
        except BaseException:
            del self.listening[key]
            raise

        async def forward():
            async for event in subscription:
                self.emit("updated", uri=getattr(event, "uri", None), what=type(event).__name__)

        stream.forward = asyncio.create_task(forward())
        return {"key": key, "honored": dump(subscription.honored)}

    async def op_unlisten(self, key):
        stream = self.listening.pop(key)
        await stream.close()
        await stream.forward


asyncio.run(driver.serve(Client))
