// The tasks of 2025-11-25 with the client of the TypeScript SDK: tasks.mjs URL, or tasks.mjs
// COMMAND... See ../tasks.sh.

import { deepStrictEqual } from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { CallToolResultSchema, ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const RELATED = "io.modelcontextprotocol/related-task";

function check(name, found, wanted) {
  deepStrictEqual(found, wanted, `${name}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
  console.log(`pass  npm     ${name}`);
}

const codeOf = (request) => request.then(() => null, (error) => error.code);

async function walk(client, asked) {
  const tasks = client.experimental.tasks;
  const result = (id) => tasks.getTaskResult(id, CallToolResultSchema);
  // Calls a tool as a task. Returns the id, the statuses that were seen, and the last message.
  const call = async (name, args) => {
    const seen = [];
    let id, last;
    for await (const message of tasks.callToolStream({ name, arguments: args })) {
      if (message.type === "taskCreated") id = message.task.taskId;
      if (message.type === "taskStatus") seen.push(message.task.status);
      last = message;
    }
    return { id, seen, last };
  };

  const offered = client.getServerCapabilities().tasks;
  check("the capability", offered, { list: {}, cancel: {}, requests: { tools: { call: {} } } });
  // The SDK keeps which of the tools have tasks.
  const support = (await client.listTools()).tools.map((tool) => tool.execution.taskSupport);
  check("taskSupport", support, ["optional", "required", "required", "required"]);
  const atOnce = await client.callTool({ name: "brew", arguments: { cups: 2 } });
  check("without a task", atOnce.content[0].text, "2 cups of instant coffee");

  const stream = tasks.callToolStream({ name: "brew", arguments: { cups: 2 } }, CallToolResultSchema, {
    task: { ttl: 5000 },
  });
  const messages = [];
  for await (const message of stream) messages.push(message);
  const created = messages[0].task;
  check("created", [messages[0].type, created.status, created.ttl], ["taskCreated", "working", 5000]);
  const brewed = messages.at(-1);
  check("its result", [brewed.type, brewed.result?.content[0].text], ["result", "2 cups of coffee"]);
  check("its _meta", brewed.result._meta, { [RELATED]: { taskId: created.taskId } });

  const broken = await call("break", {});
  check("a tool that fails", [broken.seen.at(-1), broken.last.type], ["failed", "error"]);
  check("its result, again", (await result(broken.id)).isError, true);

  const ordered = await call("order", {});
  check("a question", ordered.last.result?.content[0].text, "coffee with milk");
  check("its _meta, again", asked, [{ [RELATED]: { taskId: ordered.id } }]);

  const run = tasks.callToolStream({ name: "run", arguments: {} });
  const running = (await run.next()).value.task;
  const waiting = codeOf(result(running.taskId));
  const listed = (await tasks.listTasks()).tasks.map((task) => task.taskId);
  check("listed", new Set(listed), new Set([created.taskId, broken.id, ordered.id, running.taskId]));
  check("cancelled", (await tasks.cancelTask(running.taskId)).status, "cancelled");
  check("a result that waited", await waiting, -32602);
  const last = [];
  for await (const message of run) last.push(message.type);
  check("the end of the stream", last.at(-1), "error");
  check("cancelled twice", await codeOf(tasks.cancelTask(running.taskId)), -32602);
  check("unknown", await codeOf(tasks.getTask("unknown")), -32602);
}

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "interop", version: "1" }, { capabilities: { elicitation: { form: {} } } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params._meta);
  return { action: "accept", content: { milk: true } };
});
const late = setTimeout(() => {
  console.error("not done within 60 s");
  process.exit(1);
}, 60_000);
const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args });
await client.connect(transport);
await walk(client, asked);
await client.close();
clearTimeout(late);
