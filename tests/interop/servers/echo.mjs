// The tools of examples/calc.rs on the TypeScript SDK, for benches/compare.sh: `echo.mjs`, `echo.mjs http PORT`.
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const calc = () => {
    const server = new McpServer({ name: 'calc', version: '1.0.0' });
    const text = said => ({ content: [{ type: 'text', text: said }] });
    server.registerTool('add', { description: 'Adds two integers', inputSchema: z.object({ a: z.int(), b: z.int() }) }, ({ a, b }) =>
        text(String(a + b))
    );
    server.registerTool('echo', { description: 'Gives a text back', inputSchema: z.object({ text: z.string() }) }, ({ text: said }) =>
        text(said)
    );
    return server;
};

const [how, port] = process.argv.slice(2);
if (how === 'http') {
    const handler = createMcpHandler(calc);
    createServer(getRequestListener(request => handler.fetch(request))).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(calc);
}
