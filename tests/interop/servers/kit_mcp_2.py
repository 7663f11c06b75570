"""The kit on PyPI `mcp` 2.x. `kit_mcp_2.py stdio`, `kit_mcp_2.py http|sse PORT`."""

import sys
import warnings

from mcp.server.mcpserver import Context, MCPServer

from kit_common import COUNTER, INSTRUCTIONS, new, offer
from kit_eras import offer_questions

warnings.simplefilter("ignore")  # of what 2026-07-28 deprecates
how = sys.argv[1]
kit = MCPServer("kit-mcp-2", version="1", instructions=INSTRUCTIONS, log_level="ERROR")


async def tell(ctx):
    await ctx.session.send_resource_updated(COUNTER)
    await ctx.notify_resource_updated(COUNTER)


offer(kit, Context, tell)
offer_questions(kit, Context, lambda ctx: ctx.protocol_version, lambda ctx: ctx.elicit_url)


@kit.tool()
async def grow(ctx: Context) -> str:
    """Tells of new tools."""
    kit.add_tool(new, name="grown", description="New.")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"


if how == "stdio":
    kit.run("stdio")
else:
    kit.run("streamable-http" if how == "http" else "sse", port=int(sys.argv[2]))
