// A server over stdio for a client without HTTP: node bridge.mjs URL. Sends each request of 2026-07-28 on to the URL, one
// after the other, and gives each message of the answer back.
import { createInterface } from 'node:readline';

const [url] = process.argv.slice(2);

for await (const line of createInterface({ input: process.stdin })) {
    const { method, params = {} } = JSON.parse(line);
    const headers = {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': params._meta?.['io.modelcontextprotocol/protocolVersion'] ?? '2026-07-28',
        'Mcp-Method': method
    };
    const name = params.name ?? params.uri;
    if (name !== undefined) headers['Mcp-Name'] = name;
    const answer = await fetch(url, { method: 'POST', headers, body: line });
    const text = await answer.text();
    if (!answer.headers.get('Content-Type')?.startsWith('text/event-stream')) {
        if (text) process.stdout.write(text + '\n');
        continue;
    }
    for (const event of text.split(/\r?\n\r?\n/)) {
        const data = event.split(/\r?\n/).filter(field => field.startsWith('data:')).map(field => field.slice(5).trimStart());
        if (data.length) process.stdout.write(data.join('') + '\n');
    }
}
