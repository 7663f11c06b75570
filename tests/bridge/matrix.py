#!/usr/bin/env python3
"""The Python SDK as a host over stdio, in front of a child process and of a URL, in all four pairs of eras."""

import asyncio
import os

from mcp import Client, StdioServerParameters, types

from programs import BRIDGE, SYSMON, HttpServer

MODES = ["legacy", "auto"]
ERAS = ["legacy", "modern"]


def text(result):
    return "|".join(getattr(content, "text", f"<{content.type}>") for content in result.content)


class Seen:
    """A host that answers every question, and notes what it hears."""

    def __init__(self, arguments, mode):
        self.logs, self.asked, self.notes = [], [], []
        server = StdioServerParameters(command=BRIDGE, args=arguments, env=dict(os.environ))
        self.client = Client(
            server,
            mode=mode,
            sampling_callback=self.sample,
            elicitation_callback=self.elicit,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            message_handler=self.note,
            read_timeout_seconds=15,
        )

    async def sample(self, context, params):
        self.asked.append("sampling")
        said = types.TextContent(type="text", text="sampled")
        return types.CreateMessageResult(role="assistant", content=said, model="m")

    async def elicit(self, context, params):
        self.asked.append("form")
        fields = (getattr(params, "requested_schema", None) or {}).get("properties", {})
        value = lambda field: field.get("default", {"string": "x", "boolean": True}.get(field.get("type"), 1))
        return types.ElicitResult(action="accept", content={name: value(field) for name, field in fields.items()})

    async def roots(self, context):
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp", name="t")])

    async def log(self, params):
        self.logs.append(params.data)

    async def note(self, message):
        self.notes.append(type(message).__name__)

    async def until(self, what):
        for _ in range(100):
            if what():
                return True
            await asyncio.sleep(0.05)
        return False


async def url(server, mode, era):
    seen = Seen(["--era", era, server], mode)
    async with seen.client as host:
        tools = (await host.list_tools()).tools
        assert len(tools) > 20, len(tools)
        progress = []

        async def told(done, total, message):
            progress.append(done)

        assert "text" in text(await host.call_tool("test_simple_text", {})).lower()
        await host.call_tool("test_tool_with_progress", {}, progress_callback=told)
        assert len(progress) >= 3 and progress == sorted(progress), progress
        assert (await host.call_tool("test_error_handling", {})).is_error
        prompt = await host.get_prompt("test_simple_prompt", {})
        assert prompt.messages
        resources = (await host.list_resources()).resources
        assert (await host.read_resource(resources[0].uri)).contents
        if era == "modern":
            await host.call_tool("test_input_required_result_multiple_inputs", {})
            assert sorted(seen.asked) == ["form", "roots", "sampling"], seen.asked
            seen.asked.clear()
            await host.call_tool("test_input_required_result_multi_round", {})
            assert len(seen.asked) >= 2, seen.asked
        else:
            assert "sampled" in text(await host.call_tool("test_sampling", {"prompt": "?"}))
            await host.call_tool("test_elicitation", {"message": "?"})
            assert seen.asked == ["sampling", "form"], seen.asked
        if mode == "legacy":
            await host.call_tool("test_tool_with_logging", {})
            assert await seen.until(lambda: seen.logs), "no logs"


async def child(mode, era):
    seen = Seen(["--era", era, "--", SYSMON], mode)
    async with seen.client as host:
        assert (await host.list_tools()).tools
        assert not (await host.call_tool("load", {})).is_error
        if mode == "legacy":
            await host.session.subscribe_resource("sys://load")
            assert await seen.until(lambda: "ResourceUpdatedNotification" in seen.notes), seen.notes


async def main():
    server = HttpServer()
    try:
        for mode in MODES:
            for era in ERAS:
                await child(mode, era)
                await url(server.url, mode, era)
                print(f"matrix.py: Python SDK as a host ({mode}), server {era}: child and URL")
    finally:
        server.stop()


asyncio.run(main())
