// The tasks of both revisions with `@modelcontextprotocol/ext-tasks`: ext_tasks.mjs URL, or ext_tasks.mjs COMMAND... See
// ../tasks.sh.

import { deepStrictEqual } from 'node:assert';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const CLIENT = { name: 'interop', version: '1' };
const CAPABILITIES = { elicitation: { form: {} } };

/** Sends requests beside the client, which reads no results of tasks under 2026-07-28. */
function dispatcher(transport) {
    const waiting = new Map();
    const take = transport.onmessage;
    transport.onmessage = (message, extra) => {
        const answer = waiting.get(message.id);
        if (!answer) return take(message, extra);
        waiting.delete(message.id);
        answer('error' in message ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
    };
    let count = 0;
    return async (request, { signal } = {}) => {
        const id = `task-${++count}`;
        const answered = new Promise((resolve, reject) => {
            waiting.set(id, resolve);
            signal?.addEventListener('abort', () => reject(signal.reason));
        });
        answered.catch(() => {});
        const { method, params } = request;
        const name = params.name ?? params.taskId;
        const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': method, 'mcp-name': name };
        await transport.send({ jsonrpc: '2.0', id, method, params }, { headers });
        return answered;
    };
}

async function connect([where, ...args], revision) {
    const transport = where.startsWith('http://')
        ? new StreamableHTTPClientTransport(new URL(where))
        : new StdioClientTransport({ command: where, args });
    const options = { capabilities: CAPABILITIES };
    if (revision === MODERN) options.versionNegotiation = { mode: { pin: MODERN } };
    else options.supportedProtocolVersions = [LEGACY];
    const client = new Client(CLIENT, options);
    await client.connect(transport);
    const framing = {
        rawDispatch: dispatcher(transport),
        v2RequestFraming: { protocolVersion: MODERN, clientInfo: CLIENT, clientCapabilities: CAPABILITIES }
    };
    return { client, more: revision === MODERN ? framing : {} };
}

async function walk(target, revision) {
    const check = (name, found, wanted) => {
        deepStrictEqual(found, wanted, `${name}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
        console.log(`pass  ext-tasks ${revision} ${name}`);
    };
    const { client, more } = await connect(target, revision);
    const asked = [];
    const { tools } = await client.listTools();
    const session = createTaskSessionFromClient(client, {
        endpointId: 'brew',
        tools: { currentTool: name => tools.filter(tool => tool.name === name).map(declaration)[0] },
        onInputRequest: (request, { scope }) => {
            asked.push([request.kind, scope]);
            return { action: 'accept', content: { milk: true } };
        },
        onError: error => check('no error', error.message, null),
        ...more
    });
    const inventory = revision === LEGACY ? 'server-list' : 'known-handles';
    check('the capabilities', [session.capabilities.inventory, session.capabilities.cancellation], [inventory, true]);
    const task = { preference: 'prefer', retentionMs: 5000 };

    const brewed = await session.callTool('brew', { cups: 2 }, { task });
    check('a task', brewed.kind, 'task');
    const states = [];
    const { outcome } = await brewed.settle({ onEvent: event => states.push(event.type) });
    check('its result', outcome.result.content[0].text, '2 cups of coffee');
    check('its events', new Set(states), new Set(['task', 'outcome']));

    // Under 2025-11-25 this client calls tasks/result only when the task has ended, and our server asks its questions there.
    if (revision === MODERN) {
        const ordered = await session.callTool('order', {}, { task });
        check('a question', (await ordered.result()).result.content[0].text, 'coffee with milk');
        check('who asked', asked, [['elicitation', 'task']]);
    }

    const broken = await session.callTool('break', {}, { task });
    const failure = await broken.result();
    if (revision === LEGACY) check('a tool that fails', failure.status, 'failed');
    else check('a tool that fails', [failure.status, failure.result.isError], ['completed', true]);

    const running = await session.callTool('run', {}, { task });
    await running.cancel();
    check('cancelled', (await running.result()).status, 'cancelled');
    check('cancelled, seen again', (await session.task(running.handle.taskId).snapshot()).status, 'cancelled');
    const unknown = await session.task('unknown').snapshot().catch(error => error.code);
    check('unknown', unknown, -32602);

    await session.close();
    await client.close();
}

const declaration = ({ name, inputSchema, execution }) => ({ name, inputSchema, taskSupport: execution?.taskSupport });

const late = setTimeout(() => {
    console.error('not done within 60 s');
    process.exit(1);
}, 60_000);
for (const revision of [LEGACY, MODERN]) await walk(process.argv.slice(2), revision);
clearTimeout(late);
