"""The kit on PyPI `mcp` 1.x: a bit of everything that its FastMCP offers. `kit_mcp_1.py stdio`, `kit_mcp_1.py http|sse PORT`."""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, ImageContent, SamplingMessage, TextContent
from pydantic import BaseModel, Field

how = sys.argv[1]
kit = FastMCP("kit-mcp-1", instructions="A kit for tests.", port=8000 if how == "stdio" else int(sys.argv[2]), log_level="ERROR")
counter = 0


class Sum(BaseModel):
    sum: int


class Order(BaseModel):
    name: str = Field(min_length=1)
    size: str = Field("large", json_schema_extra={"enum": ["small", "large"]})


@kit.tool()
def add(a: int, b: int) -> Sum:
    """Adds."""
    return Sum(sum=a + b)


@kit.tool()
async def slow(ctx: Context, steps: int = 3, millis: int = 20) -> str:
    """Takes its time, and tells how far it is."""
    for step in range(steps):
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info(f"at {step}")
        await asyncio.sleep(millis / 1000)
    return f"{steps} steps"


@kit.tool()
async def ask(ctx: Context) -> str:
    """Asks the user."""
    result = await ctx.elicit("What is it to be?", Order)
    if result.action != "accept":
        return result.action
    return f"{result.data.name} {result.data.size}"


@kit.tool()
async def visit(ctx: Context) -> str:
    """Sends the user to a page."""
    result = await ctx.elicit_url("Please look", "https://example.com/", "visit-1")
    await ctx.session.send_elicit_complete("visit-1", ctx.request_id)
    return result.action


@kit.tool()
async def sample(ctx: Context, prompt: str) -> str:
    """Asks a model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    result = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    return f"{result.model}: {result.content.text}"


@kit.tool()
async def roots(ctx: Context) -> str:
    """Asks for the roots."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@kit.tool()
def picture():
    """Shows something."""
    return ImageContent(type="image", data="iVBORw0KGgo=", mimeType="image/png")


@kit.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it went wrong")


@kit.tool()
async def touch(ctx: Context) -> str:
    """Counts, and tells who listens."""
    global counter
    counter += 1
    await ctx.session.send_resource_updated("kit://counter")
    return str(counter)


@kit.tool()
async def grow(ctx: Context) -> str:
    """Tells of new tools."""
    kit.add_tool(lambda: "new", name="grown", description="New.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@kit.resource("kit://text", mime_type="text/plain")
def text() -> str:
    return "plain \u00e9\u4e2d\U0001f600\n"


@kit.resource("kit://blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@kit.resource("kit://counter", mime_type="text/plain")
def count() -> str:
    return str(counter)


@kit.resource("kit://item/{id}", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@kit.prompt()
def hello() -> str:
    """Says hello."""
    return "Hello."


@kit.prompt()
def greet(name: str, mood: str = "fine") -> str:
    """Greets somebody."""
    return f"Hello {name}, {mood}."


@kit.completion()
async def complete(ref, argument, context):
    names = ["Ada", "Alan", "Barbara"] if argument.name == "name" else ["1", "10", "2"]
    return Completion(values=[value for value in names if value.startswith(argument.value)], hasMore=False)


@kit._mcp_server.subscribe_resource()
async def subscribe(uri):
    pass


@kit._mcp_server.unsubscribe_resource()
async def unsubscribe(uri):
    pass


@kit._mcp_server.set_logging_level()
async def set_level(level):
    pass


# This SDK never tells that it has these, and our client asks for nothing that is not offered.
offered = kit._mcp_server.get_capabilities


def get_capabilities(*options):
    capabilities = offered(*options)
    capabilities.resources.subscribe = capabilities.tools.listChanged = True
    return capabilities


kit._mcp_server.get_capabilities = get_capabilities


kit.run("streamable-http" if how == "http" else how)
