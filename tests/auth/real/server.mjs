// A protected server of the TypeScript SDK, on 127.0.0.1: its bearer check, its metadata documents, its scope challenges. The SDK
// has no check of DPoP proofs for servers, so there is one here, made with jose.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import {
  createMcpExpressApp,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  requireBearerAuth,
} from '@modelcontextprotocol/express';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  createMcpHandler,
  isLegacyRequest,
  requireScopes,
} from '@modelcontextprotocol/server';
import { EmbeddedJWK, base64url, calculateJwkThumbprint, createRemoteJWKSet, jwtVerify } from 'jose';

const scopes = ['notes:read', 'notes:write'];

function notes() {
  const server = new McpServer({ name: 'typescript', version: '1.0.0' });
  const text = (text) => () => ({ content: [{ type: 'text', text }] });
  server.registerTool('read', { description: 'Reads the notes' }, text('water the plants'));
  server.registerTool(
    'erase',
    { description: 'Erases all notes', scopeChallenge: requireScopes(...scopes) },
    text('The notes are gone'),
  );
  return server;
}

/** Checks the proof of a request, as RFC 9449, section 4.3, and returns the thumbprint of its key. */
async function checkProof(request, url, token, nonce, used) {
  // Node joins two headers with a comma, which is in no proof.
  const proof = request.headers.dpop;
  if (!proof) throw new Error('no proof');
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
    typ: 'dpop+jwt',
    algorithms: ['ES256'],
    requiredClaims: ['jti', 'htm', 'htu', 'iat', 'ath'],
  });
  if (protectedHeader.jwk.d !== undefined) throw new Error('a private key');
  if (payload.htm !== request.method) throw new Error('another method');
  if (payload.htu !== url) throw new Error(`another URL: ${payload.htu}`);
  if (nonce && payload.nonce !== nonce) throw Object.assign(new Error('no nonce, or an old one'), { code: 'use_dpop_nonce' });
  if (Math.abs(Date.now() / 1000 - payload.iat) > 300) throw new Error('an old proof');
  if (payload.ath !== base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)))))
    throw new Error('another token');
  if (used.has(payload.jti)) throw new Error('a proof is used twice');
  used.add(payload.jti);
  return calculateJwkThumbprint(protectedHeader.jwk);
}

/**
 * Starts the server. Its `settings` may be changed while it runs:
 * - `nonces`: proofs need a nonce, which is good for one request; each third one is not announced before it is needed, or none
 *   is with `silent`
 * - `spoil(request)`: changes a request before it is checked
 * - `log(request)`: gets each request to the endpoint when it is answered: `method`, `scheme`, `status`, `challenge`
 */
export async function startServer(issuer, settings) {
  const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);

  const verifier = {
    async verifyAccessToken(token) {
      const checks = { issuer: metadata.issuer, audience: url.href, algorithms: ['ES256'], typ: 'at+jwt' };
      const { payload } = await jwtVerify(token, keys, checks).catch((error) => {
        throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
      });
      return {
        token,
        clientId: payload.client_id,
        scopes: (payload.scope ?? '').split(' '),
        expiresAt: payload.exp,
        resource: new URL(payload.aud),
        extra: { jkt: payload.cnf?.jkt },
      };
    },
  };
  const used = new Set();
  const nonces = { current: randomUUID(), count: 0 };
  const refuse = (response, error, description) => {
    const challenge = `DPoP error="${error}", error_description="${description}", algs="ES256", resource_metadata="${resourceMetadataUrl}"`;
    response.status(401).set('WWW-Authenticate', challenge).json({ error });
  };
  const acceptDpop = async (request, response, next) => {
    const [scheme, token = ''] = (request.headers.authorization ?? '').split(' ');
    if (scheme.toLowerCase() !== 'dpop') return next();
    try {
      request.thumbprint = await checkProof(request, url.href, token, settings.nonces && nonces.current, used);
      nonces.current = randomUUID();
      nonces.count += 1;
      if (settings.nonces && !settings.silent && nonces.count % 3 > 0) response.set('DPoP-Nonce', nonces.current);
    } catch (error) {
      if (settings.nonces) response.set('DPoP-Nonce', nonces.current);
      return refuse(response, error.code === 'use_dpop_nonce' ? error.code : 'invalid_dpop_proof', error.message);
    }
    // The SDK's check knows `Bearer` only.
    request.headers.authorization = `Bearer ${token}`;
    next();
  };
  const checkBinding = (request, response, next) => {
    if (request.auth.extra.jkt === request.thumbprint) return next();
    refuse(
      response,
      'invalid_token',
      request.thumbprint ? 'the token is bound to another key, or to none' : 'the token needs a proof',
    );
  };

  const modern = toNodeHandler(createMcpHandler(notes, { legacy: 'reject' }));
  const sessions = new Map();
  const app = createMcpExpressApp();
  app.use(
    mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: url, scopesSupported: scopes, resourceName: 'Notes' }),
  );
  app.use('/mcp', async (request, response, next) => {
    const entry = { method: request.method, scheme: (request.headers.authorization ?? '').split(' ')[0] };
    response.on('close', () =>
      settings.log({ ...entry, status: response.statusCode, challenge: response.get('WWW-Authenticate') }),
    );
    await settings.spoil?.(request);
    next();
  });
  app.use(
    '/mcp',
    acceptDpop,
    requireBearerAuth({ verifier, requiredScopes: ['notes:read'], resourceMetadataUrl, expectedResource: url }),
    checkBinding,
  );
  app.all('/mcp', async (request, response) => {
    if (!(await isLegacyRequest(await toWebRequest(request, request.body), request.body)))
      return modern(request, response, request.body);
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await notes().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  server.on('request', app);
  return { url: url.href, server };
}
