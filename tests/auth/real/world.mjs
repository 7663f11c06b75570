// What the tests of sdk.test.mjs share: a provider, our server, a server of the TypeScript SDK, our clients, keys and proofs.
import { spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SignJWT, base64url, calculateJwkThumbprint } from 'jose';
import { startProvider } from './as.mjs';
import { browse } from './browser.mjs';
import { startServer } from './server.mjs';

const { GUARDED, AUTH_CLIENT } = process.env;

/** The time after which a process is ended, in milliseconds. */
const PATIENCE = 120_000;

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function start(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  child.on('exit', () => children.delete(child));
  return child;
}

export class World {
  /** The settings of the provider, see as.mjs. */
  provider = { resources: [], lifetime: () => 600, claims: {}, all: true, nonces: false, log: (line) => this.asked.push(line) };
  /** The settings of the server of the TypeScript SDK, see server.mjs. */
  server = { nonces: false, log: (request) => this.requests.push(request) };
  /** The requests to the provider since the last `forget`. */
  asked = [];
  /** The requests to the server of the TypeScript SDK. */
  requests = [];
  folder = mkdtempSync(join(tmpdir(), 'auth-real-'));

  static async start() {
    const world = new World();
    const { issuer, keys, server } = await startProvider(world.provider);
    world.issuer = issuer;
    writeFileSync(world.file('keys.json'), JSON.stringify(keys));
    const guarded = start(GUARDED, ['127.0.0.1:0', issuer, world.file('keys.json')]);
    const [line] = await lines(guarded, (line) => line.startsWith('url: '));
    const typescript = await startServer(issuer, world.server);
    world.urls = { guarded: line.slice(5), typescript: typescript.url };
    world.provider.resources.push(...Object.values(world.urls), 'https://other.example/mcp');
    world.servers = [server, typescript.server];
    world.guarded = guarded;
    return world;
  }

  stop() {
    this.guarded.kill();
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
    rmSync(this.folder, { recursive: true });
  }

  file(name) {
    return join(this.folder, name);
  }

  forget() {
    this.asked.length = 0;
    this.requests.length = 0;
  }

  /** Returns how many requests to the provider match. */
  count(pattern) {
    return this.asked.filter((line) => pattern.test(line)).length;
  }

  /** Runs one of our clients with a person who logs in. Returns the lines that it prints and the number of visits. */
  async client(args) {
    const child = start(AUTH_CLIENT, args);
    const visits = [];
    const printed = await lines(
      child,
      () => false,
      (line) => {
        const [, url] = /^visit (.*)/.exec(line) ?? [];
        if (url) visits.push(browse(url));
        return !url;
      },
    );
    await Promise.all(visits);
    return { printed, visits: visits.length };
  }

  /** Gets a token from the provider for a program: bound to `key` if there is one, with other claims if there are some. */
  async token({ resource, scope = 'notes:read', key, claims = {} }) {
    this.provider.claims = claims;
    const fields = {
      grant_type: 'client_credentials',
      client_id: 'robot',
      client_secret: 'the secret of robot',
      resource,
      scope,
    };
    const { access_token: token, error } = await this.ask(fields, key);
    this.provider.claims = {};
    if (!token) throw new Error(`the provider refused: ${error}`);
    return token;
  }

  /** Sends a refresh token, and returns the error. */
  async refresh(token, id, key) {
    return (await this.ask({ grant_type: 'refresh_token', refresh_token: token, client_id: id }, key)).error;
  }

  async ask(fields, key, nonce) {
    const url = `${this.issuer}/token`;
    const headers = key ? { dpop: await key.proof({ htm: 'POST', htu: url, nonce }) } : {};
    const answer = await fetch(url, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers,
      signal: AbortSignal.timeout(PATIENCE),
    });
    const body = await answer.json();
    return body.error === 'use_dpop_nonce' && !nonce ? this.ask(fields, key, answer.headers.get('dpop-nonce')) : body;
  }
}

/** Reads the lines that a process prints, until `ends` or its end. `keeps` drops lines. */
function lines(child, ends, keeps = () => true) {
  return new Promise((resolve, reject) => {
    const kept = [];
    const timer = setTimeout(() => {
      child.kill();
      reject(new Error(`no end after ${PATIENCE} ms: ${kept.join('; ')}`));
    }, PATIENCE);
    const done = () => {
      clearTimeout(timer);
      resolve(kept);
    };
    const reader = createInterface({ input: child.stdout });
    reader.on('line', (line) => {
      if (keeps(line)) kept.push(line);
      if (ends(line)) done();
    });
    reader.on('close', done);
  });
}

/** A key for DPoP. */
export class Key {
  static async make() {
    const key = new Key();
    key.private = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    key.jwk = createPublicKey(key.private).export({ format: 'jwk' });
    key.thumbprint = await calculateJwkThumbprint(key.jwk);
    return key;
  }

  pem() {
    return this.private.export({ format: 'pem', type: 'pkcs8' });
  }

  /** Makes a proof with these claims, `ath` for `token`. */
  async proof({ token, ...claims }) {
    if (token)
      claims.ath = base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))));
    const all = { jti: randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims };
    for (const name of Object.keys(all)) if (all[name] === undefined) delete all[name];
    return new SignJWT(all).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: this.jwk }).sign(this.private);
  }
}

/** A listener for the redirect of a login. */
export async function listen() {
  const came = [];
  const waiting = [];
  const server = createServer((request, response) => {
    response.end('Thank you.');
    const parameters = new URL(request.url, 'http://127.0.0.1').searchParams;
    const next = waiting.shift();
    if (next) next(parameters);
    else came.push(parameters);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/callback`,
    next: () => (came.length ? Promise.resolve(came.shift()) : new Promise((resolve) => waiting.push(resolve))),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Returns the token of a client, from its file. */
export const kept = (file) => JSON.parse(readFileSync(file)).tokens[0];

/** Lets ten minutes pass for the token of a client. */
export function age(file) {
  const store = JSON.parse(readFileSync(file));
  for (const token of store.tokens) {
    token.obtained_at -= 600;
    token.expires_at -= 600;
  }
  writeFileSync(file, JSON.stringify(store));
}
