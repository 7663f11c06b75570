"""Drives the Python SDK 1.x (`mcp` 1.30.0) as a client."""

import asyncio
import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver

import mcp.types as types
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError


def dump(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@contextlib.contextmanager
def rpc_errors():
    try:
        yield
    except McpError as error:
        raise driver.RpcError(error.error.code, error.error.message, error.error.data) from None


class Client:
    def __init__(self, emit):
        self.emit = emit
        self.connection = None
        self.session = None
        self.requests = {}  # operation number -> request id
        self.calls = set()
        self.questions = {}

    @contextlib.asynccontextmanager
    async def _streams(self, transport):
        if transport["kind"] == "stdio":
            command, *args = transport["command"]
            params = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=transport.get("cwd"))
            async with stdio_client(params) as (read, write):
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
                with rpc_errors():
                    result = await session.initialize()
                yield session, result

    async def _elicit(self, _context, params):
        key = str(len(self.questions))
        self.questions[key] = asyncio.get_running_loop().create_future()
        self.emit("question", key=key, params=dump(params))
        answer = await self.questions[key]
        return types.ElicitResult(**answer)

    async def _logged(self, params):
        self.emit("log", params=dump(params))

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
        self.session, result = await self.connection.opened
        return {
            "revision": result.protocolVersion,
            "serverInfo": dump(result.serverInfo),
            "capabilities": dump(result.capabilities),
            "instructions": result.instructions,
        }

    async def op_close(self):
        connection, self.connection = self.connection, None
        if connection:
            await connection.close()
        # This SDK leaves a call waiting for ever when its session is closed.
        for call in self.calls:
            call.cancel()

    async def op_ping(self):
        with rpc_errors():
            return dump(await self.session.send_ping())

    async def op_list(self, what, cursor=None):
        method = {
            "tools": self.session.list_tools,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
            "prompts": self.session.list_prompts,
        }[what]
        with rpc_errors():
            page = dump(await method(params=types.PaginatedRequestParams(cursor=cursor)))
        return {"items": page[what], "next": page.get("nextCursor")}

    async def op_list_all(self, what):
        items, pages, cursor = [], 0, None
        while True:
            page = await self.op_list(what, cursor)
            items += page["items"]
            pages += 1
            cursor = page["next"]
            if cursor is None:
                return {"items": items, "pages": pages}

    async def op_call_tool(self, number, name, arguments, progress=False, **_):
        async def report(progress, total, message):
            self.emit("progress", target=number, progress=progress, total=total, message=message)

        call = asyncio.current_task()
        self.calls.add(call)
        try:
            with rpc_errors():
                self.requests[number] = self.session._request_id
                result = await self.session.call_tool(
                    name, arguments, progress_callback=report if progress else None
                )
                return dump(result)
        finally:
            self.calls.discard(call)

    async def cancel(self, target, task):
        # This SDK has no call that cancels: the notification is sent by hand.
        await self.session.send_notification(
            types.ClientNotification(
                types.CancelledNotification(
                    params=types.CancelledNotificationParams(requestId=self.requests[target], reason="interop")
                )
            )
        )
        task.cancel()

    async def op_set_level(self, level):
        with rpc_errors():
            return dump(await self.session.set_logging_level(level))

    async def op_read(self, uri):
        with rpc_errors():
            return dump(await self.session.read_resource(uri))

    async def op_subscribe(self, uri):
        with rpc_errors():
            return dump(await self.session.subscribe_resource(uri))

    async def op_unsubscribe(self, uri):
        with rpc_errors():
            return dump(await self.session.unsubscribe_resource(uri))

    async def op_complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        with rpc_errors():
            return dump(await self.session.complete(kind(**ref), argument))

    async def op_get_prompt(self, name, arguments):
        with rpc_errors():
            return dump(await self.session.get_prompt(name, arguments))

    async def op_answer(self, key, answer):
        self.questions[key].set_result(answer)


asyncio.run(driver.serve(Client))
