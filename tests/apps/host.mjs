// The host: the client of the TypeScript SDK, and the AppBridge of ext-apps, in the browser. run.mjs drives it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE, getToolUiResourceUri } from '@modelcontextprotocol/ext-apps/app-bridge';

const INFO = { name: 'host', version: '1' };
const SHOWS = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } };

async function connect(revision, capabilities) {
  const way = revision === '2026-07-28' ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [revision] };
  const client = new Client(INFO, { capabilities, ...way });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)));
  return client;
}

/** What a client without apps gets of a tool. */
window.plain = async (revision, name) => {
  const client = await connect(revision, {});
  const result = await client.callTool({ name, arguments: {} });
  await client.close();
  return result;
};

/** Waits for a step of the page, which may never come. */
const within = (what, step) => Promise.race([
  step,
  new Promise((_, failed) => setTimeout(() => failed(new Error(`${what} has not come`)), 60_000)),
]);

const shown = [];

/** Calls a tool and shows its page; returns the number of it, for the functions below. */
window.show = async ({ revision, tool, theme, question, sandbox }) => {
  const client = await connect(revision, SHOWS);
  const { tools } = await client.listTools();
  const definition = tools.find(({ name }) => name === tool);
  const uri = getToolUiResourceUri(definition);
  const { contents } = await client.readResource({ uri });
  if (contents[0].mimeType !== RESOURCE_MIME_TYPE) throw new Error(`${uri} is ${contents[0].mimeType}`);
  const meta = contents[0]._meta?.ui ?? {};

  const section = document.createElement('section');
  section.className = theme;
  const words = (name, text) => {
    const line = document.createElement('p');
    [line.className, line.textContent] = [name, text];
    section.append(line);
  };
  words('asked', question);
  words('called', `called ${tool}, protocol ${revision}`);
  const frame = document.createElement('iframe');
  frame.className = meta.prefersBorder ? 'border' : '';
  section.append(frame);
  document.body.append(section);

  const said = { calls: [], sizes: 0 };
  const bridge = new AppBridge(client, INFO, { serverTools: {} }, {
    hostContext: {
      theme, styles: { variables: { '--font-sans': 'Inter, sans-serif' } }, displayMode: 'inline', containerDimensions: { maxHeight: 900 },
    },
  });
  bridge.addEventListener('sizechange', ({ height }) => {
    said.sizes += 1;
    if (height) frame.style.height = `${height}px`;
  });
  const initialized = new Promise((done) => bridge.addEventListener('initialized', done));
  const ready = new Promise((done) => bridge.addEventListener('sandboxready', done));
  // Before the sandbox is loaded: it speaks first.
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  // It has set handlers that hand everything on; this one also counts.
  const callTool = bridge.oncalltool;
  bridge.oncalltool = (params, extra) => {
    said.calls.push(params.name);
    return callTool(params, extra);
  };
  frame.src = sandbox;
  await within('sandbox-proxy-ready', ready);
  await bridge.sendSandboxResourceReady({ html: contents[0].text, csp: meta.csp, permissions: meta.permissions });
  await within('initialized', initialized);
  await bridge.sendToolInput({ arguments: {} });
  const result = await client.callTool({ name: tool, arguments: {} });
  await bridge.sendToolResult(result);
  shown.push({ bridge, client, frame, said, tool });
  return {
    at: shown.length - 1, revision: client.getNegotiatedProtocolVersion(), app: bridge.getAppVersion(), meta, result,
    length: contents[0].text.length,
  };
};

window.said = (at) => shown[at].said;
window.theme = (at, theme) => shown[at].bridge.setHostContext({ theme });

/** Gives the page another result of its tool, as after another call by the model. */
window.again = async (at) => {
  const { bridge, client, tool } = shown[at];
  await bridge.sendToolResult(await client.callTool({ name: tool, arguments: {} }));
};

/** Ends the page as a host must: it is asked first. */
window.end = async (at) => {
  const { bridge, client, frame } = shown[at];
  const answer = await bridge.teardownResource({});
  frame.parentElement.remove();
  await client.close();
  return answer;
};
