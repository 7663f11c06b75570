"""The tasks of 2025-11-25 with the client of the Python SDK: tasks.py URL, or tasks.py COMMAND... See ../tasks.sh."""

import asyncio
import sys
import warnings

import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

# The SDK announces that it will remove these methods.
warnings.simplefilter("ignore", DeprecationWarning)

RELATED = "io.modelcontextprotocol/related-task"


def check(name, found, wanted):
    assert found == wanted, f"{name}: found {found!r}, wanted {wanted!r}"
    print(f"pass  python  {name}", flush=True)


async def code(request):
    try:
        await request
    except McpError as error:
        return error.error.code
    return None


async def walk(session, asked):
    tasks = session.experimental

    async def result(task):
        return await tasks.get_task_result(task.taskId, types.CallToolResult)

    opened = await session.initialize()
    check("the revision", opened.protocolVersion, "2025-11-25")
    offered = opened.capabilities.model_dump(exclude_none=True)["tasks"]
    check("the capability", offered, {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    support = {tool.name: tool.execution.taskSupport for tool in (await session.list_tools()).tools}
    check("taskSupport", support, {"brew": "optional", "break": "required", "order": "required", "run": "required"})
    check("without a task", (await session.call_tool("brew", {"cups": 2})).content[0].text, "2 cups of instant coffee")
    check("a task is required", await code(session.call_tool("run", {})), types.METHOD_NOT_FOUND)

    created = (await tasks.call_tool_as_task("brew", {"cups": 2}, ttl=5000)).task
    check("created", (created.status, created.ttl, created.pollInterval), ("working", 5000, 100))
    seen = [status.status async for status in tasks.poll_task(created.taskId)]
    check("polled", (set(seen[:-1]) <= {"working"}, seen[-1]), (True, "completed"))
    brewed = await result(created)
    check("its result", brewed.content[0].text, "2 cups of coffee")
    check("its _meta", brewed.meta, {RELATED: {"taskId": created.taskId}})

    waiting = (await tasks.call_tool_as_task("brew", {"cups": 3})).task
    check("a result that waits", (await result(waiting)).content[0].text, "3 cups of coffee")

    broken = (await tasks.call_tool_as_task("break", {})).task
    outcome = await result(broken)
    check("a tool that fails", (outcome.isError, outcome.content[0].text), (True, "The machine is broken"))
    check("its status", (await tasks.get_task(broken.taskId)).status, "failed")

    ordered = (await tasks.call_tool_as_task("order", {})).task
    async for status in tasks.poll_task(ordered.taskId):
        if status.status == "input_required":
            break
    check("a question", (await result(ordered)).content[0].text, "coffee with milk")
    check("its _meta, again", asked, [{RELATED: {"taskId": ordered.taskId}}])

    running = (await tasks.call_tool_as_task("run", {})).task
    listed = [task.taskId for task in (await tasks.list_tasks()).tasks]
    check("listed", set(listed), {task.taskId for task in (created, waiting, broken, ordered, running)})
    check("cancelled", (await tasks.cancel_task(running.taskId)).status, "cancelled")
    check("cancelled twice", await code(tasks.cancel_task(running.taskId)), types.INVALID_PARAMS)
    check("unknown", await code(tasks.get_task("unknown")), types.INVALID_PARAMS)


async def main(command):
    asked = []

    async def answer(_, params):
        asked.append(params.meta.model_dump(exclude_none=True))
        return types.ElicitResult(action="accept", content={"milk": True})

    if command[0].startswith("http://"):
        transport = streamablehttp_client(command[0])
    else:
        transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    async with transport as (read, write, *_):
        async with ClientSession(read, write, elicitation_callback=answer) as session:
            await walk(session, asked)


asyncio.run(asyncio.wait_for(main(sys.argv[1:]), 60))
