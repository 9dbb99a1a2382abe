import { defaultPayloadConverter } from '@temporalio/common';
import { expect, test } from 'vitest';
import { createCodecServer } from '../../src/encryption/index.ts';
import { codecWithKeys, withKeys } from './support.ts';

const TOKEN = 'a-token-of-the-tests';
const UI = 'http://localhost:8233';

const serve = createCodecServer({ dataConverter: withKeys('old'), token: TOKEN, origins: [UI] });

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const request = { method: 'POST', headers: { origin: UI, ...headers }, body: JSON.stringify(body) };
  return serve(new Request(`http://127.0.0.1:7281${path}`, request));
}

const authorization = `Bearer ${TOKEN}`;
const plain = {
  metadata: { encoding: Buffer.from('json/plain').toString('base64') },
  data: Buffer.from('{"text":"hi"}').toString('base64'),
};

test('what encode gives, decode takes, with the token in the header or in the path', async () => {
  const encoded = (await (await post('/encode', { payloads: [plain] }, { authorization })).json()) as {
    payloads: { metadata: Record<string, string>; data: string }[];
  };
  expect(Buffer.from(encoded.payloads[0]?.metadata['encoding'] ?? '', 'base64').toString()).toBe(
    'binary/encrypted',
  );
  const decoded = await post(`/${TOKEN}/decode`, encoded);
  expect(decoded.headers.get('access-control-allow-origin')).toBe(UI);
  expect(await decoded.json()).toEqual({ payloads: [plain] });
});

test('callers without the token, other routes, other origins and broken bodies get an answer that says so', async () => {
  for (const [path, headers] of [
    ['/decode', {}],
    ['/decode', { authorization: 'Bearer wrong' }],
    ['/wrong/decode', {}],
    [`/${TOKEN}/x/decode`, {}],
  ] as const) {
    expect((await post(path, { payloads: [plain] }, headers)).status).toBe(401);
  }
  expect((await post('/other', {}, { authorization })).status).toBe(404);
  expect((await post('/decode', { payloads: 7 }, { authorization })).status).toBe(400);
  const foreign = await post('/decode', { payloads: [] }, { authorization, origin: 'http://evil.example' });
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
  const preflight = await serve(
    new Request('http://127.0.0.1:7281/decode', { method: 'OPTIONS', headers: { origin: UI } }),
  );
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-headers')).toContain('x-namespace');
});

test('a payload of an unknown key is an error with the key id', async () => {
  const [sealed] = await codecWithKeys('new').encode([defaultPayloadConverter.toPayload('hi')]);
  const base64 = (bytes: Uint8Array | null | undefined): string =>
    Buffer.from(bytes ?? []).toString('base64');
  const metadata = Object.fromEntries(
    Object.entries(sealed?.metadata ?? {}).map(([name, value]) => [name, base64(value)]),
  );
  const answer = await post(
    '/decode',
    { payloads: [{ metadata, data: base64(sealed?.data) }] },
    { authorization },
  );
  expect(answer.status).toBe(500);
  expect(await answer.json()).toMatchObject({
    code: 'UNKNOWN_KEY',
    message: expect.stringContaining('key new'),
  });
});

test.each(['short', 'with a space in it …'])('the token "%s" is refused', (token) => {
  expect(() => createCodecServer({ dataConverter: withKeys('old'), token })).toThrow(
    'token: write at least 16',
  );
});
