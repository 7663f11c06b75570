"""What the drivers of both Python SDKs do alike: requests that both have a call of the same name for, and what a client
is told."""

import asyncio
import contextlib
import os

import driver


def dump(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def on_stdio(Parameters, transport):
    """A server's process, in the words of an SDK."""
    command, *args = transport["command"]
    return Parameters(command=command, args=args, env=dict(os.environ), cwd=transport.get("cwd"))


class Common:
    """`sdk` is what has the calls, once it is connected. A subclass says what the SDK's `types` are, and what it raises as
    `Error` when the server answers with one."""

    types = Error = None

    def __init__(self, emit):
        self.emit = emit
        self.connection = None
        self.sdk = None
        self.questions = {}

    @contextlib.contextmanager
    def rpc_errors(self):
        try:
            yield
        except self.Error as error:
            raise driver.RpcError(error.error.code, error.error.message, error.error.data) from None

    async def _asked(self, call):
        with self.rpc_errors():
            return dump(await call)

    async def _elicit(self, _context, params):
        key = str(len(self.questions))
        self.questions[key] = asyncio.get_running_loop().create_future()
        self.emit("question", key=key, params=dump(params))
        answer = await self.questions[key]
        return self.types.ElicitResult(**answer)

    async def _logged(self, params):
        self.emit("log", params=dump(params))

    def _progress(self, number):
        """What is called with the progress of an operation."""

        async def report(progress, total, message):
            self.emit("progress", target=number, progress=progress, total=total, message=message)

        return report

    async def op_close(self):
        connection, self.connection = self.connection, None
        if connection:
            await connection.close()

    async def op_ping(self):
        return await self._asked(self.sdk.send_ping())

    async def op_list(self, what, cursor=None):
        method = {
            "tools": self.sdk.list_tools,
            "resources": self.sdk.list_resources,
            "resourceTemplates": self.sdk.list_resource_templates,
            "prompts": self.sdk.list_prompts,
        }[what]
        page = await self._asked(self._page(method, cursor))
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

    async def op_set_level(self, level):
        return await self._asked(self.sdk.set_logging_level(level))

    async def op_read(self, uri):
        return await self._asked(self.sdk.read_resource(uri))

    async def op_subscribe(self, uri):
        return await self._asked(self.sdk.subscribe_resource(uri))

    async def op_unsubscribe(self, uri):
        return await self._asked(self.sdk.unsubscribe_resource(uri))

    async def op_complete(self, ref, argument):
        prompt = ref["type"] == "ref/prompt"
        kind = self.types.PromptReference if prompt else self.types.ResourceTemplateReference
        return await self._asked(self.sdk.complete(kind(**ref), argument))

    async def op_get_prompt(self, name, arguments):
        return await self._asked(self.sdk.get_prompt(name, arguments))

    async def op_answer(self, key, answer):
        self.questions[key].set_result(answer)
