// Skills between our programs and other SDKs. Each file is verified by the reading side with its own code, and compared with
// the file on the disk here. SKILLS, INSPECT and RMCP name the programs; BOARD is the URL of a board, if there is one.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient, SkillVerificationError } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const FILES = join(root, 'examples/skills/files');
const MANUAL = join(root, 'examples/firmware/ethernet/manual');
const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url));
const BRIDGE = fileURLToPath(new URL('bridge.mjs', import.meta.url));
const { SKILLS, INSPECT, RMCP, BOARD } = process.env;
const limit = { timeout: 60_000 };

const PUMP = {
    name: 'pump',
    description: 'How to run the "pump", and what to do when it stops',
    license: 'MIT',
    'allowed-tools': 'run stop',
    metadata: { version: '1.50', reviewed: '2026-11-01' },
    'x-valves': ['inlet', 7, 1.5, true, null]
};
const REFUNDS = { name: 'refunds', description: 'How to refund an order: who may, and how much' };
const THERMOMETER = {
    name: 'thermometer',
    description: 'How to measure with this board, what its numbers mean, and what to do when it is too warm',
    license: 'MIT OR Apache-2.0'
};

const scratch = await mkdtemp(join(tmpdir(), 'skills-'));
after(() => rm(scratch, { recursive: true }));

/** All files of a folder, by their paths in it. */
async function tree(folder) {
    const files = new Map();
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const path = join(entry.parentPath ?? entry.path, entry.name);
        files.set(relative(folder, path), await readFile(path));
    }
    return files;
}

function run(program, args) {
    return new Promise(resolve => {
        execFile(program, args, { timeout: 60_000, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
            resolve({ code: error ? (error.code ?? -1) : 0, stdout, stderr });
        });
    });
}

/** The SDK's client reads every file of the skills, which are `wanted` as [uri, front matter, folder]. */
async function read_all(transport, wanted) {
    const client = new Client({ name: 'interop-skills', version: '2.4.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(transport);
    try {
        const skills = new SkillsClient(client);
        assert.equal(skills.supported, true);
        assert.equal(skills.directoryRead, true);
        const { skills: entries, invalid } = await skills.list();
        assert.deepEqual(invalid, []);
        assert.deepEqual(entries.map(entry => entry.uri).sort(), wanted.map(([uri]) => uri).sort());
        for (const [uri, frontmatter, folder] of wanted) {
            const entry = entries.find(entry => entry.uri === uri);
            assert.deepEqual((await skills.get(uri)).skill, entry);
            assert.deepEqual(entry.frontmatter, frontmatter);
            const files = await tree(folder);
            const base = uri.slice(0, -'SKILL.md'.length);
            assert.deepEqual(entry.resources.map(file => file.uri).sort(), [...files.keys()].map(path => base + path).sort());
            for (const [path, bytes] of files) {
                const file = await skills.read(entry, path);
                assert.equal(file.verified, true);
                assert.deepEqual(Buffer.from(file.bytes), bytes, path);
                if (path === 'SKILL.md') assert.deepEqual(file.frontmatter, frontmatter);
            }
            const refused = error => error instanceof SkillVerificationError && error.reason === 'unlisted';
            await assert.rejects(skills.read(entry, 'references/none.md'), refused);
            const { resources } = await skills.readDirectory(base.slice(0, -1));
            const first = new Set([...files.keys()].map(path => path.split('/')[0]));
            assert.deepEqual(resources.map(child => child.uri.slice(base.length)).sort(), [...first].sort());
        }
        await assert.rejects(skills.get('skill://none/SKILL.md'), error => error.code === -32602);
        await assert.rejects(client.readResource({ uri: wanted[0][0] + '/none' }), error => error.code === -32602);
    } finally {
        await client.close();
    }
}

const OURS = [
    ['skill://pump/SKILL.md', PUMP, join(FILES, 'pump')],
    ['skill://acme/refunds/SKILL.md', REFUNDS, join(FILES, 'acme/refunds')]
];

test('TypeScript client, our server over stdio', limit, () =>
    read_all(new StdioClientTransport({ command: SKILLS, args: [] }), OURS));

test('TypeScript client, our server over HTTP', limit, async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await new Promise(resolve => free.once('listening', resolve));
    const { port } = free.address();
    await new Promise(resolve => free.close(resolve));
    const server = spawn(SKILLS, ['http', String(port)], { stdio: 'ignore' });
    try {
        const url = new URL(`http://127.0.0.1:${port}/mcp`);
        for (let tries = 0; tries < 200; tries++) {
            if (await fetch(url).then(() => true, () => false)) break;
            await new Promise(resolve => setTimeout(resolve, 50));
        }
        await read_all(new StreamableHTTPClientTransport(url), OURS);
    } finally {
        server.kill();
    }
});

/** rmcp's client reads every file of the skills of a server, which are `wanted`. */
async function read_by_rmcp(server, wanted) {
    const { code, stdout, stderr } = await run(RMCP, ['client', ...server]);
    assert.equal(code, 0, stderr);
    const { skills, unknown } = JSON.parse(stdout);
    assert.match(unknown, /-32602/);
    assert.deepEqual(skills.map(skill => skill.uri).sort(), wanted.map(([uri]) => uri).sort());
    for (const [uri, frontmatter, folder] of wanted) {
        const skill = skills.find(skill => skill.uri === uri);
        assert.equal(skill.same, true);
        assert.deepEqual(skill.frontmatter, frontmatter);
        const base = uri.slice(0, -'SKILL.md'.length);
        const read = new Map(skill.files.map(file => [file.uri.slice(base.length), Buffer.from(file.bytes, 'base64')]));
        const files = await tree(folder);
        assert.deepEqual(read, new Map([...read.keys()].map(path => [path, files.get(path)])));
        assert.equal(read.size, files.size);
        const first = new Set([...files.keys()].map(path => path.split('/')[0]));
        assert.deepEqual(skill.children.map(([child]) => child.slice(base.length)).sort(), [...first].sort());
        assert.ok(skill.children.every(([child, directory]) => directory === !child.includes('.', base.length)));
    }
}

test('rmcp client, our server', limit, () => read_by_rmcp([SKILLS], OURS));

/** `inspect` lists the skills, and writes the files of each, which must be those of the folder. */
async function inspected(name, target, wanted) {
    const listed = await run(INSPECT, ['skills', '--json', ...target]);
    assert.equal(listed.code, 0, listed.stderr);
    for (const [uri, frontmatter, folder] of wanted) {
        assert.ok(listed.stdout.includes(uri), listed.stdout);
        const out = join(scratch, name, frontmatter.name);
        const written = await run(INSPECT, ['skill', frontmatter.name, '-o', out, ...target]);
        assert.equal(written.code, 0, written.stderr);
        assert.deepEqual(await tree(out), await tree(folder));
    }
}

test('our client, TypeScript server', limit, () => inspected('typescript', ['--', process.execPath, SERVER, FILES], OURS));

test('our client, rmcp server', limit, () => inspected('rmcp', ['--', RMCP, 'server', FILES], OURS));

test('our client, our server', limit, () => inspected('ours', ['--', SKILLS], OURS));

test('our client refuses bytes that are not those of the entry', limit, async () => {
    const out = join(scratch, 'changed');
    const { code, stderr } = await run(INSPECT, ['skill', 'pump', '-o', out, '--', process.execPath, SERVER, FILES, 'changed']);
    assert.notEqual(code, 0);
    assert.match(stderr, /digest/);
    assert.deepEqual([...(await tree(out).catch(() => new Map())).keys()], []);
});

const board = { ...limit, skip: BOARD ? false : 'no BOARD' };
const MANUALS = [['skill://thermometer/SKILL.md', THERMOMETER, MANUAL]];

test('TypeScript client, the board', board, () => read_all(new StreamableHTTPClientTransport(new URL(BOARD)), MANUALS));

test('rmcp client, the board', board, () => read_by_rmcp([process.execPath, BRIDGE, BOARD], MANUALS));

test('our client, the board', board, () => inspected('board', [BOARD], MANUALS));
