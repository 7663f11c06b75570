"""The tools of examples/calc.rs on PyPI `mcp` 2.x, for benches/compare.sh: `echo.py`, `echo.py http PORT`."""

import sys
import warnings

from mcp.server.mcpserver import MCPServer

warnings.simplefilter("ignore")
calc = MCPServer("calc", version="1", log_level="ERROR")


@calc.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Adds two integers"""
    return str(a + b)


@calc.tool(structured_output=False)
def echo(text: str) -> str:
    """Gives a text back"""
    return text


if sys.argv[1:2] == ["http"]:
    calc.run("streamable-http", port=int(sys.argv[2]))
else:
    calc.run("stdio")
