"""What the kits of all Python SDKs have alike: all that needs no more of an SDK than its decorators, and questions asked
in a session (up to 2025-11-25). What an SDK has words of its own for is in its `kit_*.py`."""

import asyncio

from pydantic import BaseModel, Field

INSTRUCTIONS = "A kit for tests."
COUNTER = "kit://counter"
QUESTION = "What is it to be?"
PAGE = {"message": "Please look", "url": "https://example.com/", "elicitation_id": "visit-1"}


class Sum(BaseModel):
    sum: int


class Order(BaseModel):
    name: str = Field(min_length=1)
    size: str = Field("large", json_schema_extra={"enum": ["small", "large"]})


def offer(kit, Context, tell):
    """Adds tools, resources and prompts to a server. `tell(ctx)` tells that the counter has changed."""
    counter = 0

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
    def fail() -> str:
        """Fails."""
        raise ValueError("it went wrong")

    @kit.tool()
    async def touch(ctx: Context) -> str:
        """Counts, and tells who listens."""
        nonlocal counter
        counter += 1
        await tell(ctx)
        return str(counter)

    @kit.resource("kit://text", mime_type="text/plain")
    def text() -> str:
        return "plain \u00e9\u4e2d\U0001f600\n"

    @kit.resource("kit://blob", mime_type="application/octet-stream")
    def blob() -> bytes:
        return bytes(range(256))

    @kit.resource(COUNTER, mime_type="text/plain")
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


def new():
    """What the tool that grows does."""
    return "new"


def completions(argument):
    """How an argument may go on."""
    names = ["Ada", "Alan", "Barbara"] if argument.name == "name" else ["1", "10", "2"]
    return [value for value in names if value.startswith(argument.value)]


async def ask_in_session(ctx):
    result = await ctx.elicit(QUESTION, Order)
    if result.action != "accept":
        return result.action
    return f"{result.data.name} {result.data.size}"


async def visit_in_session(ctx, elicit_url):
    """`elicit_url` takes the message, the URL and the id."""
    result = await elicit_url(*PAGE.values())
    await ctx.session.send_elicit_complete(PAGE["elicitation_id"], ctx.request_id)
    return result.action


async def sample_in_session(ctx, message):
    return said(await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id))


async def roots_in_session(ctx):
    return uris(await ctx.session.list_roots())


def said(result):
    """What a model said."""
    return f"{result.model}: {result.content.text}"


def uris(result):
    """The roots in a line."""
    return ", ".join(str(root.uri) for root in result.roots)
