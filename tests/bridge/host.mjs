// The TypeScript SDK as a host over HTTP: node host.mjs URL REVISION. It prints one line of JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, revision] = process.argv.slice(2);
const require = createRequire(new URL('../interop/', import.meta.url));
const { Client, StreamableHTTPClientTransport } = await import(
    pathToFileURL(require.resolve('@modelcontextprotocol/client')).href
);
const modern = revision === '2026-07-28';
const options = { capabilities: { sampling: {} } };
if (modern) options.versionNegotiation = { mode: { pin: revision } };
else options.supportedProtocolVersions = [revision];
const client = new Client({ name: 'typescript', version: '1' }, options);
client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant', model: 'm', content: { type: 'text', text: 'from typescript' }
}));
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const steps = [];
const call = (name, args, onprogress) => client.callTool({ name, arguments: args }, { onprogress });
const asked = await call('ask', {});
const slow = await call('slow', { steps: 20 }, step => steps.push(step.progress));
const text = result => result.content[0].text;
console.log(JSON.stringify({ tools: tools.length, asked: text(asked), slow: text(slow), steps }));
await client.close();
