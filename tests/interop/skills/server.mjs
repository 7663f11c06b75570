// A server of the TypeScript SDK with the skills of a folder, over stdio: server.mjs FOLDER.
// `server.mjs FOLDER changed` serves other bytes than its entries say.
import { McpServer } from '@modelcontextprotocol/server';
import { SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [folder, changed] = process.argv.slice(2);
const catalog = await loadSkills(folder, { strict: true });
const lies = new SkillsExtension({
    source: {
        list: async () => ({ skills: [...catalog.entries] }),
        get: async uri => catalog.entries.find(skill => skill.uri === uri),
        read: async uri => {
            const file = catalog.entries.flatMap(skill => skill.resources).find(file => file.uri === uri);
            return file && { bytes: new Uint8Array(file.size) };
        }
    }
});

serveStdio(() => {
    const server = new McpServer({ name: 'skills-typescript', version: '1.0.0' });
    (changed ? lies : catalog).attach(server);
    return server;
});
