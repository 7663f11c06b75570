// Our clients and our server, guarded, with the authorization server of as.mjs and with client and server of the TypeScript SDK.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, beforeEach, describe, test } from 'node:test';
import {
  Client,
  DpopSession,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  discoverAuthorizationServerMetadata,
  registerClient,
} from '@modelcontextprotocol/client';
import { decodeJwt } from 'jose';
import { browse } from './browser.mjs';
import { Key, World, age, kept, listen } from './world.mjs';

let world;
let key;
let stranger;
before(async () => {
  world = await World.start();
  [key, stranger] = [await Key.make(), await Key.make()];
  writeFileSync(world.file('key.pem'), key.pem());
  writeFileSync(world.file('stranger.pem'), stranger.pem());
});
after(() => world.stop());
beforeEach(() => {
  Object.assign(world.provider, { claims: {}, nonces: false });
  Object.assign(world.server, { nonces: false, spoil: undefined, silent: false });
  world.forget();
});

// A test takes a second or two; on a machine that is busy with other things, ten times as long.
const limit = { timeout: 240_000 };
const now = () => Math.floor(Date.now() / 1000);
const revisions = ['2026-07-28', '2025-11-25'];
const places = ['guarded', 'typescript'];

let files = 0;
const freshFile = () => world.file(`tokens-${(files += 1)}.json`);

/** Runs `check` for both of our clients, with the arguments that choose one. */
function both(name, check) {
  for (const client of ['blocking', 'smol']) test(`${client}: ${name}`, limit, () => check(client === 'smol' ? ['--smol'] : []));
}

const withKey = (name = 'key') => ['--key', world.file(`${name}.pem`)];

for (const place of places) {
  describe(`our clients at ${place}`, () => {
    for (const revision of revisions) {
      for (const binding of ['bearer', 'DPoP', 'DPoP with nonces']) {
        both(`login, step-up, refresh, logout: ${revision}, ${binding}`, async (args) => {
          const isBound = binding !== 'bearer';
          world.provider.nonces = world.server.nonces = binding.endsWith('nonces');
          const file = freshFile();
          args = [...args, '--tokens', file, '--revision', revision, ...(isBound ? withKey() : []), world.urls[place]];
          const isGood = (token, scope) => {
            const { aud, cnf, scope: granted } = decodeJwt(token);
            assert.deepEqual([aud, cnf?.jkt, granted], [world.urls[place], isBound ? key.thumbprint : undefined, scope]);
          };

          const first = await world.client([...args, 'list', 'call:read']);
          assert.deepEqual(first, { printed: [`ok ${revision}`, 'ok read erase', first.printed[2]], visits: 1 });
          assert.match(first.printed[2], place === 'guarded' ? /^ok / : /^ok water the plants$/);
          isGood(kept(file).access_token, 'notes:read');
          assert.deepEqual([world.count(/^POST \/reg 201/), world.count(/^POST \/token 200 authorization_code/)], [1, 1]);
          // The first proof has no nonce.
          assert.equal(world.count(/^POST \/token 400/), world.provider.nonces ? 1 : 0);

          world.asked.length = 0;
          const second = await world.client([...args, 'call:erase']);
          assert.deepEqual(second, { printed: [`ok ${revision}`, 'ok The notes are gone'], visits: 1 });
          const { access_token: old, refresh_token: oldRefresh } = kept(file);
          isGood(old, 'notes:read notes:write');
          assert.deepEqual([world.count(/^POST \/reg/), world.count(/^POST \/token 200 authorization_code/)], [0, 1]);

          world.asked.length = 0;
          age(file);
          const third = await world.client([...args, 'call:erase']);
          assert.deepEqual(third, { printed: [`ok ${revision}`, 'ok The notes are gone'], visits: 0 });
          const { access_token: token, refresh_token: refresh, client_id: id } = kept(file);
          isGood(token, 'notes:read notes:write');
          assert.notEqual(token, old);
          // The provider changes refresh tokens that are not bound with each use.
          assert.equal(refresh === oldRefresh, isBound);
          assert.deepEqual([world.count(/^POST \/token 200 refresh_token/), world.count(/^GET \/auth/)], [1, 0]);

          if (place === 'typescript') {
            const allowed = isBound ? ['', 'DPoP'] : ['', 'Bearer'];
            assert.deepEqual(
              world.requests.filter(({ scheme }) => !allowed.includes(scheme)),
              [],
            );
            assert.equal(world.requests.filter(({ scheme }) => scheme === '').length, 1, 'only the first request has no token');
            const methods = new Set(world.requests.filter(({ status }) => status === 200).map(({ method }) => method));
            assert.deepEqual([...methods].sort(), revision === '2026-07-28' ? ['POST'] : ['DELETE', 'GET', 'POST']);
            assert.equal(
              world.requests.some(({ challenge }) => challenge?.includes('use_dpop_nonce')),
              world.server.nonces,
            );
          }

          world.asked.length = 0;
          assert.deepEqual((await world.client([...args, 'logout'])).printed, ['ok logout']);
          assert.equal(world.count(/^POST \/token\/revocation 200/), 1);
          assert.equal(kept(file), undefined);
          assert.equal(await world.refresh(refresh, id, isBound ? key : undefined), 'invalid_grant');
        });
      }
    }

    both('login and step-up for the first request, with nonces', async (args) => {
      world.provider.nonces = world.server.nonces = true;
      world.server.silent = true;
      const { printed } = await world.client([
        ...args,
        ...withKey(),
        '--revision',
        '2026-07-28',
        world.urls[place],
        'call:erase',
      ]);
      assert.deepEqual(printed, ['ok 2026-07-28', 'ok The notes are gone']);
      if (place === 'typescript')
        assert.deepEqual(
          world.requests.map(({ status }) => status),
          [401, 401, 403, 401, 200],
        );
    });

    both('a token that is bound to another key leads to a login', async (args) => {
      args = [...args, '--tokens', freshFile(), world.urls[place]];
      assert.equal((await world.client([...withKey(), ...args, 'list'])).visits, 1);
      const again = await world.client([...withKey('stranger'), ...args, 'list']);
      assert.deepEqual(again, { printed: ['ok 2026-07-28', 'ok read erase'], visits: 1 });
    });

    for (const [what, claims, reason] of [
      [
        'for another server',
        () => ({ aud: 'https://other.example/mcp' }),
        /refuses a new token \((the access token is for another server|unexpected "aud" claim value)\)/,
      ],
      [
        'that has expired',
        () => ({ exp: now() - 60 }),
        /refuses a new token \((the access token has expired|"exp" claim timestamp check failed)\)/,
      ],
      ['bound to another key', () => ({ cnf: { jkt: stranger.thumbprint } }), /the (access )?token is bound to another key/],
      [
        'not bound, though the client has a key',
        () => ({ cnf: undefined }),
        /the access token is not bound to a key|bound to another key, or to none/,
      ],
    ]) {
      both(`a token ${what}: it is refused, and the client says so`, async (args) => {
        world.provider.claims = claims();
        const { printed, visits } = await world.client([
          ...args,
          ...withKey(),
          '--revision',
          '2026-07-28',
          world.urls[place],
          'list',
          'list',
        ]);
        for (const line of printed.slice(1)) assert.match(line, reason);
        assert.deepEqual([printed.length, visits], [3, 1]);
        assert.ok(world.requests.length <= 6, `${world.requests.length} requests`);
      });
    }
  });

  describe(`refusals of ${place}`, () => {
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    };
    let nonce;
    const ask = async (headers) => {
      const accept = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
      const answer = await fetch(world.urls[place], {
        method: 'POST',
        headers: { ...accept, ...headers },
        body: JSON.stringify(message),
        signal: AbortSignal.timeout(60_000),
      });
      await answer.body?.cancel();
      nonce = answer.headers.get('dpop-nonce') ?? nonce;
      return { status: answer.status, challenge: answer.headers.get('www-authenticate') ?? '' };
    };
    /** Asks with the token of the DPoP key, and a proof with other claims or of another key. */
    const prove = async (claims = {}, signer = key, scheme = 'DPoP') => {
      const token = await world.token({ resource: world.urls[place], key });
      const dpop = await signer.proof({ htm: 'POST', htu: world.urls[place], token, nonce, ...claims });
      return ask({ Authorization: `${scheme} ${token}`, DPoP: dpop });
    };
    const isRefused = ({ status, challenge }, scheme, error, expected = 401) => {
      assert.equal(status, expected, challenge);
      assert.ok(challenge.startsWith(`${scheme} `) && challenge.includes('resource_metadata='), challenge);
      assert.equal(/error="([a-z_]+)"/.exec(challenge)?.[1], error, challenge);
    };
    // The nonce of this time.
    beforeEach(async () => {
      nonce = undefined;
      await ask({});
    });

    test('no token', limit, async () => isRefused(await ask({}), 'Bearer', place === 'guarded' ? undefined : 'invalid_token'));
    test('a good token is not refused', limit, async () => {
      const token = await world.token({ resource: world.urls[place] });
      assert.equal((await ask({ Authorization: `Bearer ${token}` })).status, 200);
      assert.equal((await prove()).status, 200);
    });
    for (const [what, settings] of [
      ['for another server', () => ({ resource: 'https://other.example/mcp' })],
      ['that has expired', () => ({ claims: { exp: now() - 60 } })],
      ['of another issuer', () => ({ claims: { iss: 'https://other.example' } })],
    ]) {
      test(`a token ${what}`, limit, async () => {
        const token = await world.token({ resource: world.urls[place], ...settings() });
        isRefused(await ask({ Authorization: `Bearer ${token}` }), 'Bearer', 'invalid_token');
      });
    }
    test('a token without the scope', limit, async () => {
      const token = await world.token({ resource: world.urls[place], scope: 'notes:write' });
      isRefused(await ask({ Authorization: `Bearer ${token}` }), 'Bearer', 'insufficient_scope', 403);
    });
    test('a bound token as Bearer, with and without its proof', limit, async () => {
      const token = await world.token({ resource: world.urls[place], key });
      isRefused(await ask({ Authorization: `Bearer ${token}` }), 'DPoP', 'invalid_token');
      isRefused(await prove({}, key, 'Bearer'), 'DPoP', 'invalid_token');
    });
    test('a bound token without a proof', limit, async () => {
      const token = await world.token({ resource: world.urls[place], key });
      isRefused(await ask({ Authorization: `DPoP ${token}` }), 'DPoP', 'invalid_dpop_proof');
    });
    test('a token that is not bound, with a proof', limit, async () => {
      const token = await world.token({ resource: world.urls[place] });
      const dpop = await key.proof({ htm: 'POST', htu: world.urls[place], token, nonce });
      isRefused(
        await ask({ Authorization: `DPoP ${token}`, DPoP: dpop }),
        place === 'guarded' ? 'Bearer' : 'DPoP',
        'invalid_token',
      );
    });
    test('a proof of another key', limit, async () =>
      isRefused(await prove({}, stranger), 'DPoP', place === 'guarded' ? 'invalid_dpop_proof' : 'invalid_token'),
    );
    test('a proof that was used', limit, async () => {
      const jti = `once-${place}`;
      assert.equal((await prove({ jti })).status, 200);
      isRefused(await prove({ jti }), 'DPoP', 'invalid_dpop_proof');
    });
    for (const [what, claims] of [
      ['for another method', () => ({ htm: 'GET' })],
      ['for another URL', () => ({ htu: 'http://127.0.0.1/mcp' })],
      ['for another token', () => ({ token: 'other' })],
      ['of an hour ago', () => ({ iat: now() - 3600 })],
      ['without an id', () => ({ jti: undefined })],
    ]) {
      test(`a proof ${what}`, limit, async () => isRefused(await prove(claims()), 'DPoP', 'invalid_dpop_proof'));
    }
    test('a proof without the nonce', limit, async () => {
      world.server.nonces = true;
      isRefused(await prove({ nonce: 'other' }), 'DPoP', 'use_dpop_nonce');
      assert.equal((await prove()).status, 200);
    });
  });
}

describe('bad proofs of our clients', () => {
  // Each spoils two requests.
  for (const [what, spoil, outcomes, reason] of [
    [
      'none',
      () =>
        ({ headers }) =>
          delete headers.dpop,
      ['failed', 'failed', 'ok', 'ok'],
      /the server refuses the proof of possession \(no proof\)/,
    ],
    [
      'one of another key',
      () =>
        async ({ headers, method }) => {
          headers.dpop = await stranger.proof({
            htm: method,
            htu: world.urls.typescript,
            token: headers.authorization.split(' ')[1],
          });
        },
      ['failed', 'failed', 'ok', 'ok'],
      /the server refuses a new token \(the token is bound to another key, or to none\)/,
    ],
    [
      'one that was used',
      () => {
        let first;
        return ({ headers }) => {
          headers.dpop = first ??= headers.dpop;
        };
      },
      ['ok', 'failed', 'failed', 'ok'],
      /the server refuses the proof of possession \(a proof is used twice\)/,
    ],
  ]) {
    both(`${what} comes to the server: the client says why, and goes on afterwards`, async (args) => {
      const change = spoil();
      let proofs = 0;
      world.server.spoil = async (request) => {
        if (!request.headers.dpop) return;
        proofs += 1;
        if (proofs <= outcomes.lastIndexOf('failed') + 1) await change(request);
      };
      const { printed, visits } = await world.client([
        ...args,
        ...withKey(),
        '--revision',
        '2026-07-28',
        world.urls.typescript,
        'list',
        'list',
        'list',
        'list',
      ]);
      assert.deepEqual(
        printed.slice(1).map((line) => line.split(' ')[0]),
        outcomes,
        printed.join('\n'),
      );
      for (const line of printed.filter((line) => line.startsWith('failed'))) assert.match(line, reason);
      assert.deepEqual([visits, world.requests.length], [1, 5]);
    });
  }
});

/** A person with the client of the SDK. */
class Person {
  constructor(listener, session) {
    this.listener = listener;
    if (session) this.dpop = () => session;
  }
  get redirectUrl() {
    return this.listener.url;
  }
  get clientMetadata() {
    return {
      client_name: 'typescript',
      redirect_uris: [this.redirectUrl],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    };
  }
  state() {
    return 'state';
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information) {
    this.information = information;
  }
  tokens() {
    return this.kept;
  }
  saveTokens(tokens) {
    this.kept = tokens;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  discoveryState() {
    return this.discovered;
  }
  saveDiscoveryState(state) {
    this.discovered = state;
  }
  invalidateCredentials(what) {
    if (what === 'tokens' || what === 'all') this.kept = undefined;
  }
  redirectToAuthorization(url) {
    this.visits = (this.visits ?? 0) + 1;
    browse(url);
  }
}

describe('the client of the TypeScript SDK at guarded', () => {
  let listener;
  before(async () => (listener = await listen()));
  after(() => listener.close());

  /** Opens guarded; a person logs in if that is needed. `spoil` changes the headers of its requests. */
  async function open(person, revision, spoil = () => {}) {
    const options =
      revision === '2026-07-28' ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [revision] };
    const through = async (url, init) => {
      const headers = new Headers(init?.headers);
      if (String(url) === world.urls.guarded) await spoil(headers);
      return fetch(url, { ...init, headers });
    };
    for (let login = true; ; login = false) {
      const transport = new StreamableHTTPClientTransport(new URL(world.urls.guarded), { authProvider: person, fetch: through });
      const client = new Client({ name: 'typescript', version: '1.0.0' }, options);
      try {
        await client.connect(transport);
        return { client, transport, revision: client.getNegotiatedProtocolVersion() };
      } catch (error) {
        await client.close();
        if (!login || !(error instanceof UnauthorizedError)) throw error;
        await transport.finishAuth(await listener.next());
        person.afterLogin?.();
      }
    }
  }
  const text = ({ content }) => content[0].text;

  for (const wanted of revisions) {
    for (const binding of ['bearer', 'DPoP', 'DPoP with nonces']) {
      test(`login, step-up, refresh: ${wanted}, ${binding}`, limit, async () => {
        const session = binding === 'bearer' ? undefined : await DpopSession.create();
        world.provider.nonces = binding.endsWith('nonces');
        const person = new Person(listener, session);
        // By itself it registers with the scopes of the first login, and the provider then grants no others.
        const metadata = await discoverAuthorizationServerMetadata(world.issuer);
        const scope = 'notes:read notes:write offline_access';
        const information = await registerClient(world.issuer, { metadata, clientMetadata: person.clientMetadata, scope });
        person.information = { ...information, issuer: world.issuer };
        const isGood = (scope) => {
          const { aud, cnf, scope: granted } = decodeJwt(person.kept.access_token);
          assert.deepEqual([aud, cnf?.jkt, granted], [world.urls.guarded, session?.thumbprint, scope]);
        };

        // The first token has expired: the client refreshes it.
        world.provider.claims = { exp: now() - 60 };
        person.afterLogin = () => (world.provider.claims = {});
        const { client, transport, revision } = await open(person, wanted);
        assert.equal(revision, wanted);
        isGood('notes:read');
        assert.deepEqual(
          [person.visits, world.count(/^POST \/token 200 authorization_code/), world.count(/^POST \/token 200 refresh_token/)],
          [1, 1, 1],
        );
        assert.equal(world.count(/^POST \/token 400/), world.provider.nonces ? 1 : 0);

        assert.deepEqual(
          (await client.listTools()).tools.map(({ name }) => name),
          ['read', 'erase'],
        );
        await client.callTool({ name: 'read' });
        await assert.rejects(client.callTool({ name: 'erase' }), UnauthorizedError);
        await transport.finishAuth(await listener.next());
        isGood('notes:read notes:write');
        assert.equal(text(await client.callTool({ name: 'erase' })), 'The notes are gone');
        assert.deepEqual([person.visits, world.count(/^POST \/reg 201/)], [2, 1]);
        if (wanted !== '2026-07-28') await transport.terminateSession();
        await client.close();
      });
    }
  }

  for (const [what, claims, spoil] of [
    ['a token for another server', { aud: 'https://other.example/mcp' }],
    ['a token that has expired', { exp: 1 }],
    ['a token without its proof', {}, () => (headers) => headers.delete('dpop')],
    [
      'a token as Bearer',
      {},
      () => (headers) => {
        if (headers.has('dpop')) headers.set('authorization', headers.get('authorization').replace('DPoP', 'Bearer'));
      },
    ],
    [
      'a proof of another key',
      {},
      () => async (headers) => {
        const [, token] = headers.get('authorization')?.split(' ') ?? [];
        const { nonce } = headers.has('dpop') ? decodeJwt(headers.get('dpop')) : {};
        if (token) headers.set('dpop', await stranger.proof({ htm: 'POST', htu: world.urls.guarded, token, nonce }));
      },
    ],
    [
      'a proof that was used',
      {},
      () => {
        let used;
        return async (headers) => {
          if (!headers.has('dpop')) return;
          used ??= headers.get('dpop');
          headers.set('dpop', used);
        };
      },
    ],
  ]) {
    test(`${what} is refused, and the client goes on afterwards`, limit, async () => {
      const person = new Person(listener, await DpopSession.create());
      world.provider.claims = claims;
      const list = async (spoil) => {
        const { client } = await open(person, '2026-07-28', spoil);
        return client.listTools().finally(() => client.close());
      };
      await assert.rejects(list(spoil?.()), /401 after re-authentication/);
      assert.deepEqual([world.count(/^POST \/reg 201/), world.count(/^POST \/token/), person.visits], [1, 2, 1]);
      world.provider.claims = {};
      assert.equal((await list()).tools.length, 2);
    });
  }
});
