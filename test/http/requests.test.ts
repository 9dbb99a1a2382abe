import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHttpApi } from '../../src/http/index.ts';
import { errorSchema } from '../../src/http/shapes.ts';
import { type Checkpoint, MemorySaver } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openApi, type ServedApi } from './support/api.ts';

let api: ServedApi;
const saver = new MemorySaver();
beforeAll(async () => {
  api = await openApi(saver);
});
afterAll(() => api.close());

const PUT = 'PUT /threads/t/checkpoints';
const JSON_TYPE = { 'content-type': 'application/json' };

test.each([
  ['no token', ''],
  ['another token', 'Bearer another'],
  ['a longer token', 'Bearer the-token-of-the-tests-and-more'],
  ['another scheme', 'Basic the-token-of-the-tests'],
  ['a scheme alone', 'Bearer'],
])('with %s nothing is done', async (_name, authorization) => {
  for (const route of [
    PUT,
    'GET /threads/t/latest',
    'DELETE /threads/t',
    'GET /sessions',
    'POST /sessions',
  ]) {
    const { status, code, headers } = await api.call(route, { headers: { authorization } });
    expect({ status, code }).toEqual({ status: 401, code: 'UNAUTHORIZED' });
    expect(headers.get('www-authenticate')).toBe('Bearer');
  }
  expect(await saver.list('t')).toEqual([]);
});

test('the document and the health are open, and the name of the scheme is in any case', async () => {
  const headers = { authorization: '' };
  expect(await api.call('GET /healthz', { headers })).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect((await api.call('GET /openapi.json', { headers })).body).toEqual(api.api.document);
  const { status } = await api.call('GET /threads/t/checkpoints', {
    headers: { authorization: `bearer ${api.token}` },
  });
  expect(status).toBe(200);
});

test('a token that no header can carry, or under 16 characters, is refused at the start', () => {
  const make = (token: string) => (): unknown =>
    createHttpApi({ token } as Parameters<typeof createHttpApi>[0]);
  for (const token of ['two words and many more', 'schlüssel-schlüssel']) {
    expect(make(token)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  }
  for (const token of ['', 'x'.repeat(15)]) {
    const message = expect.stringMatching(
      new RegExp(`^token: it has ${token.length} characters, but needs at least 16\\. Make one`),
    );
    const details = { field: 'token' };
    expect(make(token)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message, details }));
  }
  expect(make('x'.repeat(16))).not.toThrow();
});

test('an unknown route says so, and a wrong method which there are', async () => {
  for (const route of ['GET /', 'GET /thread/t', 'PUT /threads/a/b/checkpoints', 'GET /threads//latest']) {
    expect(await api.call(route)).toMatchObject({ status: 404, code: 'ROUTE_NOT_FOUND' });
  }
  for (const [route, allow] of [
    ['PATCH /threads/t', 'DELETE'],
    ['POST /threads/t/checkpoints', 'PUT, GET, HEAD'],
    ['OPTIONS /sessions', 'POST, GET, HEAD'],
    ['PUT /healthz', 'GET, HEAD'],
  ] as const) {
    const { status, code, headers } = await api.call(route);
    expect({ status, code, allow: headers.get('allow') }).toEqual({
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
      allow,
    });
  }
});

test.each([
  ['no type', undefined],
  ['a form', 'application/x-www-form-urlencoded'],
  ['text', 'text/plain'],
  ['another charset', 'application/json; charset=latin1'],
])('a body of %s is no JSON to us', async (_name, type) => {
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
  const answer = await api.call(PUT, { raw: new TextEncoder().encode('{"state":{}}'), headers });
  expect(answer).toMatchObject({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' });
});

test.each([
  ['nothing', '', 0],
  ['a word', 'nope', 1],
  ['a word in an object', '{"state": nope}', 11],
  ['half of it', '{"state": {', 11],
  ['half a word', '{"state": tru', 13],
  ['a comma too many', '{"state": {},}', 13],
  ['more after it', '{"state": {}} x', 14],
  ['an open text', '{"state": "', 11],
  ['NaN', '{"state": {"n": NaN}}', 16],
  ['a far token', `{"state": {"text": "${'x'.repeat(100_000)}", "n": <}}`, 100_028],
])('a body that holds %s is told where it ends to be JSON', async (_name, raw, position) => {
  const { status, code, message, body } = await api.call(PUT, { raw, headers: JSON_TYPE });
  expect({ status, code }).toEqual({ status: 400, code: 'NOT_JSON' });
  expect(message).toContain(`position ${position}`);
  expect(body).toMatchObject({ error: { details: { position, line: 1, column: position + 1 } } });
});

test('an empty body is told what to send', async () => {
  const { code, message } = await api.call('POST /sessions/s/pause', { raw: '', headers: JSON_TYPE });
  expect({ code, message }).toEqual({
    code: 'NOT_JSON',
    message:
      'The body is not JSON at position 0 (line 1, column 1): it is empty. Send an object, at least {}',
  });
});

test('the place in a body of many lines has its line and column', async () => {
  const { body } = await api.call(PUT, { raw: '{\n  "state": {\n    "a": yes\n  }\n}', headers: JSON_TYPE });
  expect(body).toMatchObject({ error: { details: { line: 3, column: 10 } } });
});

test('a body that is not UTF-8, or is nested too deep, is refused', async () => {
  const latin = Uint8Array.from([...Buffer.from('{"state":{"a":"'), 0xe9, ...Buffer.from('"}}')]);
  expect(await api.call(PUT, { raw: latin, headers: JSON_TYPE })).toMatchObject({
    status: 400,
    code: 'NOT_JSON',
  });
  const deep = (depth: number): string => `{"state":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
  expect(await api.call(PUT, { raw: deep(200_000), headers: JSON_TYPE })).toMatchObject({
    status: 400,
    code: 'NOT_JSON',
  });
  const fine = await api.call('PUT /threads/deep/checkpoints', { raw: deep(190), headers: JSON_TYPE });
  expect(fine.status).toBe(200);
});

test.each([
  [
    'calls/c/decision',
    '{"decision":"edit","argsDigest":"d","args":{"a":[{"__proto__":{"b":1}}]}}',
    'args.a.0.__proto__',
  ],
  [
    'calls/c/decision',
    '{"decision":"respond","argsDigest":"d","output":{"__proto__":1}}',
    'output.__proto__',
  ],
  [
    'calls/c/resolution',
    '{"outcome":"landed","argsDigest":"d","dispatchNo":1,"output":{"__proto__":{}}}',
    'output.__proto__',
  ],
  ['edit', '{"plan":[{"id":"a","title":"b","__proto__":{"status":"done"}}]}', 'plan.0.__proto__'],
  ['messages', '{"text":"hi","__proto__":{"mode":"interrupt"}}', '__proto__'],
])('a body to %s with a key that would be lost is refused: %s', async (path, raw, field) => {
  const { status, code, body } = await api.call(`POST /sessions/s/${path}`, { raw, headers: JSON_TYPE });
  expect({ status, code }).toEqual({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(body).toMatchObject({ error: { details: { field } } });
});

test.each([
  [PUT, '{"state":{"order":[{"id":9007199254740993}]}}', 'state.order.0.id'],
  [PUT, '{"state":{"a":[1,[2],{"b":3}],"c":-9007199254740992}}', 'state.c'],
  [PUT, '{"state":{"a\\"b, [":["x",12345678901234567890]}}', 'state.a"b, [.1'],
  [PUT, '{"state":{"n":1e999}}', 'state.n'],
  [PUT, '{"state":{},"metadata":{"at":-0}}', 'metadata.at'],
  ['PUT /threads/t/steps/k', '{"value":-0}', 'value'],
  ['PUT /threads/t/steps/k', '{"value":[0,-0.0e5]}', 'value.1'],
  ['PUT /threads/t/steps/k', ' 9007199254740992 ', 'body'],
  [
    'POST /sessions/s/calls/c/decision',
    '{"decision":"edit","argsDigest":"d","args":{"id":9007199254740993}}',
    'args.id',
  ],
  ['PUT /sessions/s/budget', '{"limits":{"usd":9007199254740993}}', 'limits.usd'],
])('a number that would be changed is refused with its path: %s %s', async (route, raw, field) => {
  const { status, code, message, body } = await api.call(route, { raw, headers: JSON_TYPE });
  expect({ status, code }).toEqual({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(message).toMatch(/ is out of range: .* as strings$| would be stored as 0\. Send 0$/);
  expect(message.startsWith(`${field}: `)).toBe(true);
  expect(body).toMatchObject({ error: { details: { field } } });
});

test('numbers that stay the same are taken, and what looks like a number in a text', async () => {
  const state = '{"a":[9007199254740991,-9007199254740991,0,0.1,-1.5e-7,1e+308],"-0":"-0, 9007199254740993"}';
  const raw = `{"state":${state}}`;
  const answer = await api.call('PUT /threads/numbers/checkpoints', { raw, headers: JSON_TYPE });
  expect(answer.status).toBe(200);
  expect(JSON.stringify((await saver.get('numbers'))?.state)).toBe(state);
});

test('a body that is not JSON is told so, also when it has a number that would be changed', async () => {
  for (const raw of [
    '{"state":{"n":9007199254740993',
    '9007199254740993]',
    '-0,-0:-0',
    '{"a":-}',
    ':1',
    '--0',
  ]) {
    expect(await api.call(PUT, { raw, headers: JSON_TYPE })).toMatchObject({ status: 400, code: 'NOT_JSON' });
  }
});

test('a key of idempotency that a header cannot carry is refused, and goes into the body', async () => {
  const refused = await api.call(PUT, {
    json: { state: {} },
    headers: { 'idempotency-key': Buffer.from('é').toString('latin1') },
  });
  expect(refused).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
  const taken = await api.call<Checkpoint>('PUT /threads/k/checkpoints', { json: { state: {}, id: 'é😀' } });
  expect(taken.body.id).toBe('é😀');
});

test('a body that says it is too large is refused before it is read', async () => {
  const sent = request(`${api.url}/threads/t/checkpoints`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.token}`, ...JSON_TYPE, 'content-length': 50_000_000 },
  });
  sent.on('error', () => undefined);
  // Only the head and one byte: the answer does not wait for the rest.
  sent.write('{');
  const [response] = (await once(sent, 'response')) as [{ statusCode: number }];
  expect(response.statusCode).toBe(413);
  sent.destroy();
});

test('a body that turns out to be too large is not read to its end', async () => {
  let given = 0;
  const chunk = new Uint8Array(64 * 1024).fill(0x20);
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      given += chunk.byteLength;
      controller.enqueue(chunk);
    },
  });
  const answer = await fetch(`${api.url}/threads/t/checkpoints`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.token}`, ...JSON_TYPE },
    body: endless,
    duplex: 'half',
  }).then(
    ({ status }) => status,
    // The server may cut the connection before its answer is read.
    () => 'cut',
  );
  expect([413, 'cut']).toContain(answer);
  expect(given).toBeLessThan(50_000_000);
});

test('a caller that goes away in the middle of a body is nobody to tell', async () => {
  const leaving = await openApi(new MemorySaver());
  const sent = request(`${leaving.url}/threads/t/checkpoints`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${leaving.token}`, ...JSON_TYPE, 'content-length': 1_000 },
  });
  sent.on('error', () => undefined);
  await new Promise((resolve) => void sent.write('{"state":', resolve));
  sent.destroy();
  // Fails when something was told; it has ended the request first.
  await leaving.close();
  expect(leaving.unexpected).toEqual([]);
});

test('a text that escapes all that is not ASCII counts as what it means', async () => {
  const text = '😀'.repeat(200_000);
  const escaped = JSON.stringify({ state: { text } }).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  expect(escaped.length).toBeGreaterThan(2_400_000);
  const answer = await api.call('PUT /threads/escaped/checkpoints', { raw: escaped, headers: JSON_TYPE });
  expect(answer.status).toBe(200);
  expect((await saver.get('escaped'))?.state).toEqual({ text });
});

/** What a connection answers to a text, until it ends. */
async function exchange(text: string): Promise<string> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk as string;
  return answer;
}

const HOST = 'Host: localhost\r\n';
test.each([
  ['no HTTP', 'hello\r\n\r\n', 400, 'INVALID_ARGUMENT'],
  ['an unknown method', `BREW / HTTP/1.1\r\n${HOST}\r\n`, 400, 'INVALID_ARGUMENT'],
  ['a broken header', `GET / HTTP/1.1\r\n${HOST}a b\r\n\r\n`, 400, 'INVALID_ARGUMENT'],
  ['no host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'INVALID_ARGUMENT'],
  ['no path', `OPTIONS * HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, 400, 'INVALID_ARGUMENT'],
  [
    'an unknown expectation',
    `GET /healthz HTTP/1.1\r\n${HOST}Connection: close\r\nExpect: more\r\n\r\n`,
    417,
    'INVALID_ARGUMENT',
  ],
  ['a long header', `GET /healthz HTTP/1.1\r\n${HOST}long: ${'x'.repeat(300_000)}\r\n\r\n`, 431, 'TOO_LARGE'],
  ['a long path', `GET /${'x'.repeat(70_000)} HTTP/1.1\r\n${HOST}\r\n`, 431, 'TOO_LARGE'],
  [
    'the method TRACE',
    `TRACE /healthz HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    405,
    'METHOD_NOT_ALLOWED',
  ],
  ['an unknown route', `GET /nothing HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, 404, 'ROUTE_NOT_FOUND'],
  [
    'a broken chunk',
    `PUT /threads/t/checkpoints HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nnope\r\n`,
    400,
    'INVALID_ARGUMENT',
  ],
])('a request with %s is refused with the body that all errors have', async (_name, text, status, code) => {
  const answer = await exchange(text);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(head).toMatch(/^content-type: application\/json/im);
  const { error } = errorSchema.parse(JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)));
  expect(error.code).toBe(code);
  expect(error.message.length).toBeGreaterThan(10);
});

test('a name that a web page made to point here is refused', async () => {
  const { port } = new URL(api.url);
  const ask = (host: string): Promise<string> =>
    exchange(
      `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${api.token}\r\nConnection: close\r\n\r\n`,
    );
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
  ]) {
    const text = await ask(host);
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
    expect(text).toContain('HOST_NOT_ALLOWED');
  }
  for (const host of [`127.0.0.1:${port}`, 'localhost', 'LOCALHOST:80', `[::1]:${port}`]) {
    expect(await ask(host)).toMatch(/^HTTP\/1\.1 200 /);
  }
});

test('nothing tells a browser that another site may read answers', async () => {
  const { headers } = await api.call('GET /threads/t/checkpoints', {
    headers: { origin: 'https://evil.example' },
  });
  expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  expect(headers.get('cache-control')).toBe('no-store');
});

test('what goes wrong unexpectedly is told to the operator, not to the caller', async () => {
  class Broken extends MemorySaver {
    override async get(): Promise<never> {
      throw new Error('the password is 1234');
    }
  }
  const broken = await openApi(new Broken());
  try {
    const answer = await broken.call('GET /threads/t/latest');
    expect(answer).toMatchObject({ status: 500, code: 'INTERNAL' });
    expect(JSON.stringify(answer.body)).not.toContain('1234');
    const told = broken.unexpected.splice(0);
    expect(told).toEqual([expect.objectContaining({ message: 'the password is 1234' })]);
  } finally {
    await broken.close();
  }
});

test('a server that has closed answers no more', async () => {
  const closed = await openApi(new MemorySaver());
  await closed.close();
  expect(await rejection(closed.call('GET /healthz'))).toBeInstanceOf(TypeError);
});
