"""Two users of one server see different tools, with the client of the Python SDK 2.x: callers.py URL. See ../callers.sh."""

import asyncio
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.exceptions import MCPError


def check(name, found, wanted):
    assert found == wanted, f"{name}: found {found!r}, wanted {wanted!r}"
    print(f"pass  python  {name}", flush=True)


async def seen_by(url, token, mode):
    """Returns the tools that a user sees, and what comes of a call of `change`."""
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            try:
                changed = (await client.call_tool("change", {"text": f"from {token}"})).content[0].text
            except MCPError as error:
                changed = error.error.message
            shown = (await client.call_tool("show", {})).content[0].text
            return names, changed, shown


async def main(url):
    for mode in ["legacy", "2026-07-28"]:
        check(f"{mode} writer", await seen_by(url, "writer", mode), (["show", "change"], "changed", "from writer"))
        check(f"{mode} reader", await seen_by(url, "reader", mode), (["show"], "Unknown tool", "from writer"))


asyncio.run(main(sys.argv[1]))
