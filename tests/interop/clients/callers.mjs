// Two users of one server see different tools, with the client of the TypeScript SDK: callers.mjs URL. See ../callers.sh.
import { deepStrictEqual } from 'node:assert';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const MODERN = '2026-07-28';

// Returns the tools that a user sees, and what comes of a call of `change`.
async function seenBy(url, token, revision) {
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
    const options =
        revision === MODERN ? { versionNegotiation: { mode: { pin: MODERN } } } : { supportedProtocolVersions: [revision] };
    const client = new Client({ name: 'interop-callers', version: '1' }, options);
    await client.connect(transport);
    try {
        const names = (await client.listTools()).tools.map((tool) => tool.name);
        const text = (result) => result.content[0].text;
        const change = client.callTool({ name: 'change', arguments: { text: `from ${token}` } });
        const changed = await change.then(text, (error) => (/Unknown tool/.test(error.message) ? 'unknown' : `${error}`));
        return [names, changed, text(await client.callTool({ name: 'show', arguments: {} }))];
    } finally {
        await client.close();
    }
}

const url = process.argv[2];
for (const revision of ['2025-11-25', MODERN]) {
    for (const [token, names, changed] of [
        ['writer', ['show', 'change'], 'changed'],
        ['reader', ['show'], 'unknown']
    ]) {
        deepStrictEqual(await seenBy(url, token, revision), [names, changed, 'from writer']);
        console.log(`pass  typescript  ${revision} ${token}`);
    }
}
