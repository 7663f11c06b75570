"""The kit on PyPI `fastmcp` 4. `kit_fastmcp_4.py stdio`, `kit_fastmcp_4.py http|sse PORT`."""

import asyncio
import sys
import warnings

import fastmcp
from fastmcp import Context, FastMCP
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

fastmcp.settings.enable_rich_tracebacks = False
warnings.simplefilter("ignore")  # of what 2026-07-28 deprecates
how = sys.argv[1]
kit = FastMCP("kit-fastmcp-4", version="1", instructions="A kit for tests.")
counter = 0
MODERN = "2026-07-28"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "size": {"type": "string", "enum": ["small", "large"], "default": "large"}},
    "required": ["name"],
}


def ask_back(**questions):
    """What a server asks with under 2026-07-28."""
    return InputRequiredResult(input_requests=questions, request_state="kit.state \u00e9")


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
async def ask(ctx: Context):
    """Asks the user."""
    if ctx.request_context.protocol_version == MODERN:
        if not ctx.input_responses:
            return ask_back(order=ElicitRequest(params=ElicitRequestFormParams(message="What is it to be?", requested_schema=SCHEMA)))
        answer = ctx.input_responses["order"]
        return f"{answer.content['name']} {answer.content['size']}" if answer.action == "accept" else answer.action
    result = await ctx.elicit("What is it to be?", Order)
    if result.action != "accept":
        return result.action
    return f"{result.data.name} {result.data.size}"


@kit.tool()
async def visit(ctx: Context):
    """Sends the user to a page."""
    if ctx.request_context.protocol_version == MODERN:
        if not ctx.input_responses:
            return ask_back(page=ElicitRequest(params=ElicitRequestURLParams(message="Please look", url="https://example.com/", elicitation_id="visit-1")))
        return ctx.input_responses["page"].action
    result = await ctx.session.elicit_url("Please look", "https://example.com/", "visit-1", ctx.request_id)
    await ctx.session.send_elicit_complete("visit-1", ctx.request_id)
    return result.action


@kit.tool()
async def sample(ctx: Context, prompt: str):
    """Asks a model."""
    if ctx.request_context.protocol_version == MODERN and ctx.input_responses:
        result = ctx.input_responses["said"]
        return f"{result.model}: {result.content.text}"
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    if ctx.request_context.protocol_version == MODERN:
        return ask_back(said=CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=10)))
    result = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    return f"{result.model}: {result.content.text}"


@kit.tool()
async def roots(ctx: Context):
    """Asks for the roots."""
    if ctx.request_context.protocol_version == MODERN:
        if not ctx.input_responses:
            return ask_back(roots=ListRootsRequest())
        return ", ".join(str(root.uri) for root in ctx.input_responses["roots"].roots)
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@kit.tool()
def picture():
    """Shows something."""
    return ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")


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
    kit.tool(lambda: "new", name="grown", description="New.")
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
    return Completion(values=[value for value in names if value.startswith(argument.value)], has_more=False)


if how == "stdio":
    kit.run("stdio", show_banner=False, log_level="ERROR")
else:
    kit.run(how, host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
