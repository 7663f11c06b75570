// Webhooks of our server with the AI SDK, its client and its handler for deliveries: events.mjs URL, of `conformance-server --events loopback`.
//
// The SDK has the draft before SEP-3415: it sees events only in the member `events` of the capabilities, which the extension does not have. So it
// refuses our server, and only with that member put into the answer it goes on. Everything else is as it comes.
import assert from "node:assert/strict";
import http from "node:http";
import { createMCPClient, experimental_createMCPEventWebhook } from "@ai-sdk/mcp";

const url = process.argv[2];
const PATIENCE = 30_000;
const asked = [];

/** What the SDK is to keep for its application. */
class Store {
  all = new Map();
  async get(key) { return this.all.get(key); }
  async getById(id) { return [...this.all.values()].find((one) => one.id === id); }
  async set(one) { this.all.set(one.key, one); }
  async update(key, patch) { this.all.set(key, { ...this.all.get(key), ...patch }); }
  async delete(key) { this.all.delete(key); }
}

/** Puts the draft's member into the answer to `server/discover`. */
async function asDraft(input, init) {
  const response = await fetch(input, init);
  const request = JSON.parse(init?.body ?? "{}");
  asked.push(request);
  if (request.method !== "server/discover") return response;
  const answer = await response.json();
  answer.result.capabilities.events = {};
  return new Response(JSON.stringify(answer), { status: response.status, headers: { "content-type": "application/json" } });
}

const store = new Store();
const connect = (user, fetch) =>
  createMCPClient({ transport: { type: "http", url, headers: { Authorization: `Bearer ${user}` }, fetch }, experimental_events: { store } });

const plain = await connect("ann");
await assert.rejects(plain.experimental_events.list(), /does not support events/);
await plain.close();
console.log("pass  events  ai-sdk  sees no events without the draft's member");

const told = [];
const errors = [];
const handler = experimental_createMCPEventWebhook({
  store,
  onEvent: async ({ event }) => void told.push(event),
  onGap: async ({ gap }) => void told.push(gap),
  onTerminated: async ({ termination }) => void told.push(termination),
  onError: (error) => errors.push(error),
});
const statuses = [];
const receiver = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const made = new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method,
    headers: request.headers,
    body: Buffer.concat(chunks),
  });
  const answer = await handler(made);
  statuses.push(answer.status);
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
const hook = `http://127.0.0.1:${receiver.address().port}/hooks`;

async function until(holds) {
  const end = Date.now() + PATIENCE;
  while (!holds()) {
    assert.ok(Date.now() < end, `${holds}: ${JSON.stringify({ told, statuses, errors: errors.map(String) })}`);
    await new Promise((later) => setTimeout(later, 20));
  }
}

const client = await connect("ann", asDraft);
const events = client.experimental_events;
assert.equal(client.initializeResult?.protocolVersion ?? asked[0].params._meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
const call = async (name, args) => (await client.tools())[name].execute(args, { messages: [], toolCallId: "1" });
const listed = await events.list();
assert.deepEqual(listed.events.map((event) => [event.name, event.delivery.includes("webhook")]), [["bell.rung", true], ["weather.changed", true]]);
console.log("pass  events  ai-sdk  list");

const delivery = { mode: "webhook", url: hook, allowInsecureLocalhost: true };
const made = await events.subscribe({ name: "bell.rung", arguments: { door: 71 }, delivery, ttlMs: 120_000 });
const left = Date.parse(made.refreshBefore) - Date.now();
assert.ok(made.id.startsWith("sub_") && left > 60_000 && left <= 120_000, JSON.stringify(made));
assert.deepEqual(statuses, [200]);
await call("ring", { door: 71, id: "e1" });
await until(() => told.length === 1);
assert.deepEqual([told[0].eventId, told[0].name, told[0].data], ["e1", "bell.rung", { door: 71 }]);
assert.equal((await store.getById(made.id)).cursor, told[0].cursor);
console.log("pass  events  ai-sdk  subscribe, challenge, delivery");

const again = await events.refresh({ id: made.id });
assert.equal(again.id, made.id);
assert.ok(Date.parse(again.refreshBefore) >= Date.parse(made.refreshBefore));
await call("ring", { door: 71, id: "e2" });
await until(() => told.length === 2);
await assert.rejects(events.subscribe({ name: "bell.rung", arguments: { door: "x" }, delivery }), /-32602|Invalid params/);
await events.unsubscribe({ id: made.id });
assert.equal(await store.getById(made.id), undefined);
console.log("pass  events  ai-sdk  refresh, unsubscribe");

const last = await events.subscribe({ name: "bell.rung", arguments: { door: 72 }, delivery });
await call("shut", { now: true });
await until(() => told.length === 3);
assert.deepEqual([told[2].type, told[2].error.code], ["terminated", -32024]);
assert.equal(await store.getById(last.id), undefined);
await call("shut", { now: false });
console.log("pass  events  ai-sdk  termination");

assert.deepEqual(errors, []);
await client.close();
receiver.close();
receiver.closeAllConnections();
