// An authorization server: oidc-provider on 127.0.0.1, with a key for ES256 and one user.
//   node as.mjs RESOURCE FOLDER
// It writes its issuer to FOLDER/issuer and its public keys to FOLDER/keys.json. FOLDER/ttl has the lifetime of access tokens,
// in seconds. Standard output has one line for each request: method, path, status, and the scopes or the grant.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { Provider, errors } from 'oidc-provider';

export const scopes = ['notes:read', 'notes:write'];

/**
 * Starts a provider. `settings` may be changed while it runs:
 * - `resources`: the servers that it makes tokens for
 * - `lifetime()`: the lifetime of access tokens, in seconds
 * - `claims`: members that replace those of new access tokens
 * - `all`: the scopes of resources are scopes of this server too; if not, it refuses to register clients with them
 * - `nonces`: DPoP proofs need a nonce
 * - `log(line)`: gets a line for each request
 */
export async function startProvider(settings) {
  const key = {
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
    kid: 'k1',
    use: 'sig',
    alg: 'ES256',
  };
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    // A client that asks for no algorithm would get RS256, for which there is no key.
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    scopes: ['openid', 'offline_access', ...(settings.all ? scopes : [])],
    clients: [
      {
        client_id: 'known',
        client_secret: 'the secret of known',
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
      },
      {
        client_id: 'robot',
        client_secret: 'the secret of robot',
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
    ],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: {
      AccessToken: settings.lifetime,
      ClientCredentials: settings.lifetime,
      Grant: 3600,
      Interaction: 600,
      RefreshToken: 3600,
      Session: 3600,
    },
    formats: {
      customizers: {
        jwt(_, __, { payload }) {
          Object.assign(payload, settings.claims);
        },
      },
    },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => settings.nonces === true },
      registration: { enabled: true },
      revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(_, indicator) {
          if (!settings.resources.includes(indicator)) throw new errors.InvalidTarget();
          return {
            scope: scopes.join(' '),
            audience: indicator,
            accessTokenFormat: 'jwt',
            accessTokenTTL: settings.lifetime(),
            jwt: { sign: { alg: 'ES256' } },
          };
        },
      },
    },
  });
  provider.use(async (ctx, next) => {
    await next();
    const { grant_type: grant, scope = '', prompt = '' } = ctx.oidc?.params ?? {};
    const asked = ctx.path === '/auth' ? `scope=${scope} prompt=${prompt}` : (grant ?? '');
    settings.log(`${ctx.method} ${ctx.path} ${ctx.status} ${asked}`.trimEnd());
  });
  server.on('request', provider.callback());
  const { d, ...open } = key;
  return { issuer, keys: { keys: [open] }, server };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [resource, folder] = process.argv.slice(2);
  const { issuer, keys } = await startProvider({
    resources: [resource],
    lifetime: () => Number(readFileSync(`${folder}/ttl`, 'utf8')),
    claims: {},
    all: process.env.SCOPES === 'all',
    log: console.log,
  });
  writeFileSync(`${folder}/keys.json`, JSON.stringify(keys));
  // A reader sees the whole issuer or none.
  writeFileSync(`${folder}/issuer.new`, issuer);
  renameSync(`${folder}/issuer.new`, `${folder}/issuer`);
}
