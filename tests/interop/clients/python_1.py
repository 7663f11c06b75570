"""Drives the Python SDK 1.x (`mcp` 1.30.0) as a client."""

import asyncio
import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver
from python_common import Common, dump, on_stdio

import mcp.types as types
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError


class Client(Common):
    types = types
    Error = McpError

    def __init__(self, emit):
        super().__init__(emit)
        self.requests = {}  # operation number -> request id
        self.calls = set()

    @contextlib.asynccontextmanager
    async def _streams(self, transport):
        if transport["kind"] == "stdio":
            async with stdio_client(on_stdio(StdioServerParameters, transport)) as (read, write):
                yield read, write
        elif transport["kind"] == "http":
            async with streamablehttp_client(transport["url"]) as (read, write, _session_id):
                yield read, write
        elif transport["kind"] == "sse":
            async with sse_client(transport["url"]) as (read, write):
                yield read, write
        else:
            raise ValueError(f"no transport {transport['kind']!r}")

    @contextlib.asynccontextmanager
    async def _session(self, transport, elicitation):
        async with self._streams(transport) as (read, write):
            async with ClientSession(
                read,
                write,
                client_info=types.Implementation(name="interop-python-1", version="1.30.0"),
                elicitation_callback=self._elicit if elicitation else None,
                logging_callback=self._logged,
                message_handler=self._message,
            ) as session:
                with self.rpc_errors():
                    result = await session.initialize()
                yield session, result

    async def _message(self, message):
        if isinstance(message, Exception):
            self.emit("complaint", source="message handler", text=repr(message)[:2000])
        elif isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ResourceUpdatedNotification):
                self.emit("updated", uri=str(message.root.params.uri))

    async def op_connect(self, transport, revision, elicitation=True, **_):
        types.LATEST_PROTOCOL_VERSION = revision  # what initialize() offers
        self.questions.clear()
        self.connection = driver.Connection(self._session(transport, elicitation))
        self.sdk, result = await self.connection.opened
        return {
            "revision": result.protocolVersion,
            "serverInfo": dump(result.serverInfo),
            "capabilities": dump(result.capabilities),
            "instructions": result.instructions,
        }

    async def _page(self, method, cursor):
        return await method(params=types.PaginatedRequestParams(cursor=cursor))

    async def op_close(self):
        await super().op_close()
        # This SDK leaves a call waiting for ever when its session is closed.
        for call in self.calls:
            call.cancel()

    async def op_call_tool(self, number, name, arguments, progress=False, **_):
        call = asyncio.current_task()
        self.calls.add(call)
        try:
            with self.rpc_errors():
                self.requests[number] = self.sdk._request_id
                result = await self.sdk.call_tool(
                    name, arguments, progress_callback=self._progress(number) if progress else None
                )
                return dump(result)
        finally:
            self.calls.discard(call)

    async def cancel(self, target, task):
        # This SDK has no call that cancels: the notification is sent by hand.
        await self.sdk.send_notification(
            types.ClientNotification(
                types.CancelledNotification(
                    params=types.CancelledNotificationParams(requestId=self.requests[target], reason="interop")
                )
            )
        )
        task.cancel()


asyncio.run(driver.serve(Client))
