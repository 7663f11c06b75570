"""How kits ask on the SDKs that speak both eras: under 2026-07-28 with a result, before that in the session."""

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

from kit_common import PAGE, QUESTION, ask_in_session, completions, roots_in_session, said, sample_in_session, uris, visit_in_session

MODERN = "2026-07-28"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "size": {"type": "string", "enum": ["small", "large"], "default": "large"}},
    "required": ["name"],
}


def ask_back(**questions):
    """What a server asks with under 2026-07-28."""
    return InputRequiredResult(input_requests=questions, request_state="kit.state \u00e9")


def offer_questions(kit, Context, revision, elicit_url):
    """Adds the tools that ask, and what else is made of these SDKs' types. `revision(ctx)` is what is spoken;
    `elicit_url(ctx)` asks for a visit in a session."""

    @kit.tool()
    async def ask(ctx: Context):
        """Asks the user."""
        if revision(ctx) != MODERN:
            return await ask_in_session(ctx)
        if not ctx.input_responses:
            return ask_back(order=ElicitRequest(params=ElicitRequestFormParams(message=QUESTION, requested_schema=SCHEMA)))
        answer = ctx.input_responses["order"]
        return f"{answer.content['name']} {answer.content['size']}" if answer.action == "accept" else answer.action

    @kit.tool()
    async def visit(ctx: Context):
        """Sends the user to a page."""
        if revision(ctx) != MODERN:
            return await visit_in_session(ctx, elicit_url(ctx))
        if not ctx.input_responses:
            return ask_back(page=ElicitRequest(params=ElicitRequestURLParams(**PAGE)))
        return ctx.input_responses["page"].action

    @kit.tool()
    async def sample(ctx: Context, prompt: str):
        """Asks a model."""
        message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        if revision(ctx) != MODERN:
            return await sample_in_session(ctx, message)
        if not ctx.input_responses:
            return ask_back(said=CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=10)))
        return said(ctx.input_responses["said"])

    @kit.tool()
    async def roots(ctx: Context):
        """Asks for the roots."""
        if revision(ctx) != MODERN:
            return await roots_in_session(ctx)
        if not ctx.input_responses:
            return ask_back(roots=ListRootsRequest())
        return uris(ctx.input_responses["roots"])

    @kit.tool()
    def picture():
        """Shows something."""
        return ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")

    @kit.completion()
    async def complete(ref, argument, context):
        return Completion(values=completions(argument), has_more=False)
