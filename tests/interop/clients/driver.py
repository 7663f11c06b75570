"""The half of a Python driver that knows nothing of an SDK version.

A driver is a process that the runner talks to in JSON lines. On its stdin come
operations, `{"id": N, "op": NAME, "args": {...}}`; on its stdout go their
results, `{"id": N, "ok": VALUE}` or `{"id": N, "error": {...}}`, and what the
client saw by itself, `{"event": NAME, ...}`. Operations run side by side.

An error is `{"kind": "rpc", "code", "message", "data"}` when the peer answered
with one, and `{"kind": "client", "type", "message"}` when the SDK raised one.

A client class has the operations as coroutine methods `op_NAME(self, **args)`
and is given `emit(event, **members)`.
"""

import asyncio
import json
import logging
import os
import sys
import warnings


class RpcError(Exception):
    """An error answer of the server, in whatever class the SDK raised it."""

    def __init__(self, code, message, data):
        super().__init__(message)
        self.body = {"kind": "rpc", "code": code, "message": message, "data": data}


class EventHandler(logging.Handler):
    """What the SDK complains of in its log is an event for the runner."""

    def __init__(self, emit):
        super().__init__(logging.WARNING)
        self.emit_event = emit

    def emit(self, record):
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self.emit_event("complaint", source=f"log {record.name}", text=text[:2000])


def describe(error):
    """The innermost error of a group that has only one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RpcError):
        return error.body
    return {"kind": "client", "type": type(error).__name__, "message": str(error)[:2000]}


class Connection:
    """Keeps an SDK client open in a task of its own.

    The SDKs are built on cancel scopes, which must be left in the task that
    entered them.
    """

    def __init__(self, manager):
        self.closing = asyncio.Event()
        self.opened = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run(manager))

    async def _run(self, manager):
        try:
            async with manager as value:
                self.opened.set_result(value)
                await self.closing.wait()
        except BaseException as error:
            if self.opened.done():
                raise
            self.opened.set_exception(error)

    async def close(self):
        self.closing.set()
        await self.task


async def serve(client_class):
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nothing but driver lines on the runner's pipe

    def send(message):
        out.write(json.dumps(message).encode() + b"\n")

    def emit(event, **members):
        send({"event": event, **members})

    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(EventHandler(emit))
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: emit(
            "complaint", source="event loop", text=f"{context.get('message')}: {context.get('exception')!r}"
        )
    )
    client = client_class(emit)
    running = {}

    async def run(number, name, args):
        try:
            value = await getattr(client, "op_" + name)(**args)
            send({"id": number, "ok": value})
        except asyncio.CancelledError:
            send({"id": number, "error": {"kind": "cancelled"}})
        except BaseException as error:
            send({"id": number, "error": describe(error)})
        finally:
            running.pop(number, None)

    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    send({"event": "ready"})
    while line := await reader.readline():
        message = json.loads(line)
        number, name, args = message["id"], message["op"], message.get("args", {})
        if name == "cancel":
            # The operation is told how to make its client give up the request.
            await client.cancel(args["target"], running.get(args["target"]))
            send({"id": number, "ok": None})
            continue
        if name == "call_tool":
            args["number"] = number
        running[number] = asyncio.create_task(run(number, name, args))
    for task in list(running.values()):
        task.cancel()
