// Drives the TypeScript SDK 1.x (`@modelcontextprotocol/sdk` 1.32.2) as a client.
'use strict';
const { BaseClient, complain, emit, serve } = require('./driver.cjs');
const types = require('@modelcontextprotocol/sdk/types.js');
const { Client: SdkClient } = require('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = require('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

class Client extends BaseClient {
    async connect({ transport: where, revision, elicitation = true }) {
        this.questions.clear();
        // What connect() offers in `initialize`. The CommonJS build reads the
        // constant at each use, which is why this driver is CommonJS.
        types.LATEST_PROTOCOL_VERSION = revision;
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
        let negotiated;
        const inner = transport.setProtocolVersion?.bind(transport);
        transport.setProtocolVersion = version => {
            negotiated = version;
            inner?.(version);
        };
        const client = new SdkClient(
            { name: 'interop-npm-sdk', version: '1.32.2' },
            { capabilities: elicitation ? { elicitation: {} } : {} }
        );
        client.onerror = complain('client.onerror');
        client.setNotificationHandler(types.LoggingMessageNotificationSchema, n => emit('log', { params: n.params }));
        client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, n => emit('updated', { uri: n.params.uri }));
        if (elicitation) client.setRequestHandler(types.ElicitRequestSchema, request => this.ask(request.params));
        this.client = client;
        await client.connect(transport);
        return {
            revision: negotiated,
            serverInfo: client.getServerVersion(),
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions()
        };
    }

    async call_tool({ number, name, arguments: args, progress }) {
        return this.client.callTool({ name, arguments: args }, undefined, this.tool_options(number, progress));
    }
}

serve(new Client());
