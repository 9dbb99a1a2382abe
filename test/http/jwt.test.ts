/** Callers with a JWT of an identity provider. */
import { UnsecuredJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpApi, type JwtOptions } from '../../src/http/index.ts';
import { MemorySaver } from '../../src/index.ts';
import { type Answer, openApi } from './support/api.ts';
import { AUDIENCE, openProvider, type Provider } from './support/oidc.ts';

const HOUR_S = 3_600;
const now = (): number => Math.floor(Date.now() / 1_000);

interface Opened {
  provider: Provider;
  whoami(token: string): Promise<Answer<{ name?: string; roles?: string[]; tenant?: string | null }>>;
}

async function open(options: Partial<JwtOptions> = {}): Promise<Opened> {
  const provider = await openProvider();
  const jwt = { issuer: provider.issuer, audience: AUDIENCE, ...options };
  const api = await openApi(new MemorySaver(), { access: { jwt } });
  onTestFinished(() => api.close());
  const whoami: Opened['whoami'] = (token) =>
    api.call('GET /whoami', { headers: { authorization: `Bearer ${token}` } });
  return { provider, whoami };
}

test("a JWT's claims say who the caller is, and roles that are not ours do not count", async () => {
  const { provider, whoami } = await open();
  const token = await provider.sign({ sub: 'ada', roles: ['decide', 'read', 'admin'] });
  expect((await whoami(token)).body).toEqual({ name: 'ada', roles: ['read', 'decide'], tenant: null });
  expect((await whoami(await provider.sign({ sub: 'bob' }))).body).toMatchObject({ name: 'bob', roles: [] });
  // The shared token goes on beside it, and keys were read once.
  expect((await whoami('the-token-of-the-tests')).status).toBe(200);
  expect(provider.asked()).toBe(1);
});

test('the claims with name, roles and tenant can be others, also within others', async () => {
  const { provider, whoami } = await open({
    nameClaim: 'email',
    rolesClaim: 'realm_access.roles',
    tenantClaim: 'https://example.com/tenant',
  });
  const claims = { sub: '1', email: 'ada@example.com', realm_access: { roles: 'talk read' } };
  const token = await provider.sign({ ...claims, 'https://example.com/tenant': 'lamps' });
  const ada = { name: 'ada@example.com', roles: ['read', 'talk'], tenant: 'lamps' };
  expect((await whoami(token)).body).toEqual(ada);
  const without = await whoami(await provider.sign(claims));
  expect(without).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
  expect(without.message).toMatch(/^The claim https:\/\/example\.com\/tenant: expected a text/);
});

test('a JWT that is expired, not ours, or not signed as agreed gets 401 with the reason', async () => {
  const { provider, whoami } = await open();
  await provider.addKey('hidden', { hidden: true });
  const { issuer } = provider;
  const claims = { sub: 'ada', roles: ['read'] };
  const good = await provider.sign(claims);
  const [head = '', , signature = ''] = good.split('.');
  const forged = Buffer.from(JSON.stringify({ ...claims, iss: issuer, aud: AUDIENCE, exp: now() + HOUR_S }));
  const unsecured = new UnsecuredJWT({ ...claims, iss: issuer, aud: AUDIENCE })
    .setExpirationTime('1h')
    .encode();
  for (const [what, token, reason] of [
    ['expired', await provider.sign({ ...claims, exp: now() - HOUR_S }), 'expired'],
    ['without an end', await provider.sign({ ...claims, exp: undefined }), 'claim'],
    ['not valid yet', await provider.sign({ ...claims, nbf: now() + HOUR_S }), 'claim'],
    ['another audience', await provider.sign({ ...claims, aud: 'another-api' }), 'audience'],
    ['another issuer', await provider.sign({ ...claims, iss: 'https://example.com' }), 'issuer'],
    ['alg none', unsecured, 'algorithm'],
    ['a shared secret', await provider.sign(claims, { alg: 'HS256' }), 'algorithm'],
    ['an unknown key', await provider.sign(claims, { kid: 'hidden' }), 'unknown_key'],
    ['other claims than were signed', `${head}.${forged.toString('base64url')}.${signature}`, 'signature'],
    ['no JSON', 'aaaa.bbbb.cccc', 'malformed'],
    ['without a name', await provider.sign({ roles: ['read'] }), 'claim'],
  ] as const) {
    const { status, body, headers } = await whoami(token);
    expect({ status, ...body }, what).toMatchObject({
      status: 401,
      error: { code: 'UNAUTHORIZED', details: { reason } },
    });
    expect(headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  }
  expect((await whoami(good)).status).toBe(200);
});

test('a new key of the provider is fetched when a token needs it, and unknown keys do not flood the provider', async () => {
  const { provider, whoami } = await open();
  await provider.addKey('hidden', { hidden: true });
  expect((await whoami(await provider.sign({ sub: 'ada' }))).status).toBe(200);
  await provider.addKey('second');
  expect((await whoami(await provider.sign({ sub: 'ada' }, { kid: 'second' }))).status).toBe(200);
  const unknown = await provider.sign({ sub: 'eve' }, { kid: 'hidden' });
  for (let i = 0; i < 20; i += 1) expect((await whoami(unknown)).status).toBe(401);
  expect(provider.asked()).toBe(2);
});

test('while the provider is down, known keys go on; without keys the answer is 503 and says why', async () => {
  const { provider, whoami } = await open();
  const token = await provider.sign({ sub: 'ada' });
  provider.fail(true);
  const refused = await whoami(token);
  expect(refused).toMatchObject({ status: 503, code: 'SERVER_UNAVAILABLE' });
  expect(refused.message).toMatch(
    /^The keys of the identity provider http:.* cannot be read: .*openid-configuration answers 500\. Try again/,
  );
  provider.fail(false);
  await expect.poll(async () => (await whoami(token)).status).toBe(200);
  provider.fail(true);
  await provider.addKey('new');
  const signedAnew = await provider.sign({ sub: 'ada' }, { kid: 'new' });
  expect(await whoami(signedAnew)).toMatchObject({ status: 503, code: 'SERVER_UNAVAILABLE' });
  expect((await whoami(token)).status).toBe(200);
});

test('options that would accept any token are refused', () => {
  const make = (jwt: Partial<JwtOptions>) => (): unknown =>
    createHttpApi({
      jwt: { issuer: 'https://login.example.com', audience: AUDIENCE, ...jwt },
    } as unknown as Parameters<typeof createHttpApi>[0]);
  for (const [jwt, message] of [
    [{ algorithms: ['none'] }, /^jwt\.algorithms: none is not supported/],
    [{ algorithms: ['RS256', 'HS256'] }, /^jwt\.algorithms: HS256 is not supported/],
    [{ algorithms: [] }, /^jwt\.algorithms: an empty list/],
    [{ issuer: 'http://login.example.com' }, /^jwt\.issuer: .* is no https URL/],
    [{ jwksUrl: 'keys' }, /^jwt\.jwksUrl: "keys" is no https URL/],
    [{ audience: '' }, /^jwt\.audience: is missing/],
  ] as const) {
    expect(make(jwt)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }),
    );
  }
  expect(make({})).not.toThrow();
});
