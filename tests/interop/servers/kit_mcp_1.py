"""The kit on PyPI `mcp` 1.x: a bit of everything that its FastMCP offers. `kit_mcp_1.py stdio`, `kit_mcp_1.py http|sse PORT`."""

import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, ImageContent, SamplingMessage, TextContent

from kit_common import (
    COUNTER,
    INSTRUCTIONS,
    ask_in_session,
    completions,
    new,
    offer,
    roots_in_session,
    sample_in_session,
    visit_in_session,
)

how = sys.argv[1]
kit = FastMCP("kit-mcp-1", instructions=INSTRUCTIONS, port=8000 if how == "stdio" else int(sys.argv[2]), log_level="ERROR")
offer(kit, Context, lambda ctx: ctx.session.send_resource_updated(COUNTER))


@kit.tool()
async def ask(ctx: Context) -> str:
    """Asks the user."""
    return await ask_in_session(ctx)


@kit.tool()
async def visit(ctx: Context) -> str:
    """Sends the user to a page."""
    return await visit_in_session(ctx, ctx.elicit_url)


@kit.tool()
async def sample(ctx: Context, prompt: str) -> str:
    """Asks a model."""
    return await sample_in_session(ctx, SamplingMessage(role="user", content=TextContent(type="text", text=prompt)))


@kit.tool()
async def roots(ctx: Context) -> str:
    """Asks for the roots."""
    return await roots_in_session(ctx)


@kit.tool()
def picture():
    """Shows something."""
    return ImageContent(type="image", data="iVBORw0KGgo=", mimeType="image/png")


@kit.tool()
async def grow(ctx: Context) -> str:
    """Tells of new tools."""
    kit.add_tool(new, name="grown", description="New.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@kit.completion()
async def complete(ref, argument, context):
    return Completion(values=completions(argument), hasMore=False)


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
