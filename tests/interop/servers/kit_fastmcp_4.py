"""The kit on PyPI `fastmcp` 4. `kit_fastmcp_4.py stdio`, `kit_fastmcp_4.py http|sse PORT`."""

import sys
import warnings

import fastmcp
from fastmcp import Context, FastMCP

from kit_common import COUNTER, INSTRUCTIONS, new, offer
from kit_eras import offer_questions

fastmcp.settings.enable_rich_tracebacks = False
warnings.simplefilter("ignore")  # of what 2026-07-28 deprecates
how = sys.argv[1]
kit = FastMCP("kit-fastmcp-4", version="1", instructions=INSTRUCTIONS)


def elicit_url(ctx):
    return lambda *page: ctx.session.elicit_url(*page, ctx.request_id)


offer(kit, Context, lambda ctx: ctx.session.send_resource_updated(COUNTER))
offer_questions(kit, Context, lambda ctx: ctx.request_context.protocol_version, elicit_url)


@kit.tool()
async def grow(ctx: Context) -> str:
    """Tells of new tools."""
    kit.tool(new, name="grown", description="New.")
    await ctx.session.send_tool_list_changed()
    return "grown"


if how == "stdio":
    kit.run("stdio", show_banner=False, log_level="ERROR")
else:
    kit.run(how, host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
