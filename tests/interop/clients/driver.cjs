// The half of a Node driver that knows nothing of an SDK version. The protocol
// between the runner and a driver is told in driver.py.
'use strict';
const readline = require('node:readline');

for (const name of ['log', 'info', 'debug', 'warn']) console[name] = console.error;

function send(message) {
    process.stdout.write(JSON.stringify(message) + '\n');
}

function emit(event, members) {
    send({ event, ...members });
}

function describe(error) {
    // Error answers of the server have a number for a code in both SDKs. What the
    // SDK itself found wrong with an answer may look the same; the runner tells
    // them apart on the wire.
    if (typeof error?.code === 'number') {
        return {
            kind: 'rpc',
            type: error.constructor.name,
            code: error.code,
            message: error.message,
            data: error.data
        };
    }
    return {
        kind: 'client',
        type: `${error?.constructor?.name}${error?.code ? ' ' + error.code : ''}`,
        message: String(error?.message ?? error).slice(0, 2000)
    };
}

// The operations that are written the same for both SDKs; `this.client` is the
// SDK's client.
class BaseClient {
    questions = new Map();
    aborts = new Map();

    ask(params) {
        const key = String(this.questions.size);
        return new Promise(resolve => {
            this.questions.set(key, resolve);
            emit('question', { key, params });
        });
    }

    async answer({ key, answer }) {
        this.questions.get(key)(answer);
    }

    async close() {
        await this.client?.close();
        this.client = undefined;
    }

    async ping() {
        return this.client.ping();
    }

    list_method(what) {
        return {
            tools: p => this.client.listTools(p),
            resources: p => this.client.listResources(p),
            resourceTemplates: p => this.client.listResourceTemplates(p),
            prompts: p => this.client.listPrompts(p)
        }[what];
    }

    async list({ what, cursor }) {
        const page = await this.list_method(what)(cursor === undefined ? undefined : { cursor });
        return { items: page[what], next: page.nextCursor };
    }

    async list_all({ what }) {
        const items = [];
        let pages = 0;
        let cursor;
        do {
            const page = await this.list({ what, cursor });
            items.push(...page.items);
            pages += 1;
            cursor = page.next;
        } while (cursor !== undefined);
        return { items, pages };
    }

    tool_options(number, progress) {
        const abort = new AbortController();
        this.aborts.set(number, abort);
        return {
            signal: abort.signal,
            ...(progress && { onprogress: p => emit('progress', { target: number, ...p }) })
        };
    }

    async cancel(target) {
        this.aborts.get(target).abort('interop');
    }

    async set_level({ level }) {
        return this.client.setLoggingLevel(level);
    }

    async read({ uri }) {
        return this.client.readResource({ uri });
    }

    async subscribe({ uri }) {
        return this.client.subscribeResource({ uri });
    }

    async unsubscribe({ uri }) {
        return this.client.unsubscribeResource({ uri });
    }

    async complete({ ref, argument }) {
        return this.client.complete({ ref, argument });
    }

    async get_prompt({ name, arguments: args }) {
        return this.client.getPrompt({ name, arguments: args });
    }
}

function serve(client) {
    const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity });
    lines.on('line', async line => {
        const { id, op, args = {} } = JSON.parse(line);
        try {
            let ok;
            if (op === 'cancel') ok = await client.cancel(args.target);
            else ok = await client[op](op === 'call_tool' ? { ...args, number: id } : args);
            send({ id, ok: ok ?? null });
        } catch (error) {
            const abort = client.aborts.get(id);
            send({ id, error: abort?.signal.aborted ? { kind: 'cancelled' } : describe(error) });
        }
    });
    lines.on('close', () => process.exit(0));
    process.on('unhandledRejection', error =>
        emit('complaint', { source: 'unhandled rejection', text: String(error?.stack ?? error).slice(0, 2000) })
    );
    send({ event: 'ready' });
}

function complain(source) {
    return error => emit('complaint', { source, text: String(error?.message ?? error).slice(0, 2000) });
}

module.exports = { BaseClient, complain, emit, serve };
