// Drives the TypeScript SDK 2.x (`@modelcontextprotocol/client` 2.4.0) as a client.
import { Client as SdkClient, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import driver from './driver.cjs';

const { BaseClient, complain, emit, serve } = driver;
const MODERN = '2026-07-28';

class Client extends BaseClient {
    subscriptions = new Map();

    async connect({ transport: where, revision, elicitation = true, pinned = false }) {
        this.questions.clear();
        this.subscriptions.clear();
        let transport;
        if (where.kind === 'stdio') {
            const [command, ...args] = where.command;
            transport = new StdioClientTransport({ command, args, env: process.env, cwd: where.cwd });
        } else if (where.kind === 'http') {
            transport = new StreamableHTTPClientTransport(new URL(where.url));
        } else if (where.kind === 'sse') {
            transport = new SSEClientTransport(new URL(where.url));
        } else {
            throw new Error(`no transport ${where.kind}`);
        }
        const options = { capabilities: elicitation ? { elicitation: { form: {} } } : {} };
        if (revision === MODERN) options.versionNegotiation = { mode: pinned ? { pin: MODERN } : 'auto' };
        else options.supportedProtocolVersions = [revision];
        const client = new SdkClient({ name: 'interop-npm-client', version: '2.4.0' }, options);
        client.onerror = complain('client.onerror');
        client.setNotificationHandler('notifications/message', n => emit('log', { params: n.params }));
        client.setNotificationHandler('notifications/resources/updated', n => emit('updated', { uri: n.params.uri }));
        if (elicitation) client.setRequestHandler('elicitation/create', request => this.ask(request.params));
        this.client = client;
        await client.connect(transport);
        return {
            revision: client.getNegotiatedProtocolVersion(),
            serverInfo: client.getServerVersion(),
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions()
        };
    }

    async list_all({ what }) {
        // Without a cursor this SDK walks the pages by itself.
        const all = await this.list_method(what)(undefined);
        return { items: all[what], pages: null };
    }

    async call_tool({ number, name, arguments: args, progress, log_level }) {
        const params = { name, arguments: args };
        if (log_level) params._meta = { 'io.modelcontextprotocol/logLevel': log_level };
        return this.client.callTool(params, this.tool_options(number, progress));
    }

    async listen({ uris }) {
        const subscription = await this.client.listen({ resourceSubscriptions: uris });
        const key = `listen ${this.subscriptions.size}`;
        this.subscriptions.set(key, subscription);
        return { key, honored: subscription.honoredFilter };
    }

    async unlisten({ key }) {
        const subscription = this.subscriptions.get(key);
        await subscription.close();
        return { closed: await subscription.closed };
    }
}

serve(new Client());
