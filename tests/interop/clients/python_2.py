"""Drives the Python SDK 2.x (`mcp` 2.3.0) as a client."""

import asyncio
import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver

import mcp.client.session
import mcp_types as types
from mcp.client.client import Client as SdkClient
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

MODERN = "2026-07-28"


def dump(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@contextlib.contextmanager
def rpc_errors():
    try:
        yield
    except MCPError as error:
        raise driver.RpcError(error.error.code, error.error.message, error.error.data) from None


class Client:
    def __init__(self, emit):
        self.emit = emit
        self.connection = None
        self.client = None
        self.questions = {}
        self.listening = {}

    @contextlib.asynccontextmanager
    async def _open(self, client):
        with rpc_errors():
            async with client:
                yield client

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
        elif isinstance(message, types.ResourceUpdatedNotification) and not self.listening:
            # Under a listen stream the SDK's own iterator is what is tested.
            self.emit("updated", uri=message.params.uri)

    async def op_connect(self, transport, revision, elicitation=True, pinned=False, **_):
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision  # what initialize() offers
        self.questions.clear()
        self.listening.clear()
        if transport["kind"] == "stdio":
            command, *args = transport["command"]
            server = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=transport.get("cwd"))
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
        self.client = await self.connection.opened
        info = self.client.server_info
        return {
            "revision": self.client.protocol_version,
            "serverInfo": dump(info) if info else None,
            "capabilities": dump(self.client.server_capabilities),
            "instructions": self.client.instructions,
        }

    async def op_close(self):
        connection, self.connection = self.connection, None
        if connection:
            await connection.close()

    async def op_ping(self):
        with rpc_errors():
            return dump(await self.client.send_ping())

    async def op_list(self, what, cursor=None):
        method = {
            "tools": self.client.list_tools,
            "resources": self.client.list_resources,
            "resourceTemplates": self.client.list_resource_templates,
            "prompts": self.client.list_prompts,
        }[what]
        with rpc_errors():
            page = dump(await method(cursor=cursor))
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

    async def op_call_tool(self, number, name, arguments, progress=False, log_level=None):
        async def report(progress, total, message):
            self.emit("progress", target=number, progress=progress, total=total, message=message)

        meta = {"io.modelcontextprotocol/logLevel": log_level} if log_level else None
        with rpc_errors():
            return dump(
                await self.client.call_tool(name, arguments, progress_callback=report if progress else None, meta=meta)
            )

    async def cancel(self, _target, task):
        task.cancel()  # the SDK sends notifications/cancelled for an abandoned request

    async def op_set_level(self, level):
        with rpc_errors():
            return dump(await self.client.set_logging_level(level))

    async def op_read(self, uri):
        with rpc_errors():
            return dump(await self.client.read_resource(uri))

    async def op_subscribe(self, uri):
        with rpc_errors():
            return dump(await self.client.subscribe_resource(uri))

    async def op_unsubscribe(self, uri):
        with rpc_errors():
            return dump(await self.client.unsubscribe_resource(uri))

    async def op_listen(self, uris):
        """Opens a listen stream; what it yields becomes events."""
        key = f"listen {len(self.listening)}"
        self.listening[key] = stream = driver.Connection(self.client.listen(resource_subscriptions=uris))
        try:
            with rpc_errors():
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

    async def op_complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        with rpc_errors():
            return dump(await self.client.complete(kind(**ref), argument))

    async def op_get_prompt(self, name, arguments):
        with rpc_errors():
            return dump(await self.client.get_prompt(name, arguments))

    async def op_answer(self, key, answer):
        self.questions[key].set_result(answer)


asyncio.run(driver.serve(Client))
