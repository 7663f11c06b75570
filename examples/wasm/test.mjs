// Runs the module in Node: a session in each era, cut into pieces of every size.
//
//   node test.mjs MODULE.wasm

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
assert.deepEqual(WebAssembly.Module.imports(module), [], "it imports nothing");
assert.deepEqual(
  WebAssembly.Module.exports(module).filter((it) => it.kind === "function").map((it) => it.name).sort(),
  ["input", "output"],
);

class Server {
  constructor() {
    this.exports = new WebAssembly.Instance(module).exports;
    this.replies = [];
    this.rest = "";
  }

  // Where a result says that bytes are or go.
  place(where) {
    const address = Number(BigInt.asUintN(64, where) >> 32n);
    return new Uint8Array(this.exports.memory.buffer, address, Number(where & 0xffffffffn));
  }

  drain() {
    const decoder = new TextDecoder();
    for (let pending = this.place(this.exports.output(0)); pending.length > 0; ) {
      this.rest += decoder.decode(pending, { stream: true });
      pending = this.place(this.exports.output(pending.length));
    }
    const lines = this.rest.split("\n");
    this.rest = lines.pop();
    this.replies.push(...lines.map((line) => JSON.parse(line)));
  }

  say(text, size) {
    let bytes = new TextEncoder().encode(text);
    let space = this.place(this.exports.input(0));
    while (bytes.length > 0) {
      const piece = bytes.subarray(0, Math.min(size, space.length));
      assert(piece.length > 0, "there is always space for more");
      space.set(piece);
      bytes = bytes.subarray(piece.length);
      space = this.place(this.exports.input(piece.length));
      this.drain();
      space = this.place(this.exports.input(0));
    }
  }
}

const prefix = "io.modelcontextprotocol/";
const meta = { [prefix + "protocolVersion"]: "2026-07-28", [prefix + "clientCapabilities"]: {} };
const request = (id, method, params) => JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
const call = (id, name, args, more) => request(id, "tools/call", { name, arguments: args, ...more });

function session(more) {
  const opening = more._meta
    ? request("open", "server/discover", more)
    : request("open", "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "n", version: "1" } });
  return (
    opening +
    request(1, "tools/list", more) +
    call(2, "add", { a: 40, b: 2 }, more) +
    call(3, "echo", { text: 'é \u0001 "x"' }, more) +
    call(4, "add", { a: "no" }, more) +
    "not JSON\n" +
    call(5, "large", {}, more) +
    "x".repeat(10000) + "\n" +
    call(6, "calls", {}, more)
  );
}

let sessions = 0;
for (const more of [{}, { _meta: meta }]) {
  for (const size of [1, 2, 3, 7, 64, 1000, 1 << 20]) {
    const server = new Server();
    server.say(session(more), size);
    const results = new Map(server.replies.filter((it) => it.result).map((it) => [it.id, it.result]));
    assert.deepEqual([...results.keys()], ["open", 1, 2, 3, 4, 5, 6]);
    const text = (id) => results.get(id).content[0].text;
    assert.deepEqual(results.get(1).tools.map((tool) => tool.name), ["add", "echo", "calls", "large"]);
    assert.equal(text(2), "42");
    assert.equal(text(3), 'é \u0001 "x"');
    assert.equal(results.get(4).isError, true);
    assert.equal(text(5).length, 100_000);
    assert(text(5).startsWith("abcdefghijklmnopqrstuvwxyzabc"));
    assert.equal(text(6), "4");
    const errors = server.replies.filter((it) => it.error).map((it) => it.error.code);
    assert.deepEqual(errors, [-32700, -32600]);
    assert.equal(server.rest, "");
    sessions += 1;
  }
}
console.log(`wasm: ${sessions} sessions in Node ${process.version}, all good`);
