/** What the AI SDK's own gateway throws: its errors are none of the API's, and hold the one that they were made of. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGateway } from 'ai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type RequestFailure, requestFailure } from '../../src/activities/model-errors.ts';

const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }];

async function failureAt(
  baseURL: string,
  key: { apiKey?: string } = { apiKey: 'key' },
): Promise<RequestFailure> {
  const model = createGateway({ baseURL, ...key })('vendor/model');
  const error = await model.doStream({ prompt }).then(
    () => expect.unreachable('the gateway answered'),
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ name: expect.stringMatching(/^Gateway/) });
  return requestFailure(error);
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const down = { kind: 'down', billed: false } as const;
const limited = { ...down, limited: true } as const;
const rejected = { kind: 'rejected', billed: false } as const;

test.each<[number, string, Record<string, string>, Omit<RequestFailure, 'message'>]>([
  [429, 'rate_limit_exceeded', {}, limited],
  [429, 'rate_limit_exceeded', { 'retry-after': '7' }, { ...limited, retryAfterMs: 7_000 }],
  [401, 'authentication_error', {}, rejected],
  [400, 'invalid_request_error', {}, rejected],
  [404, 'model_not_found', {}, rejected],
  [503, 'internal_server_error', {}, down],
])('%i of the gateway (%s) costs nothing', async (status, type, headers, expected) => {
  const url = await serve((_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { message: 'the words of the gateway', type } }));
  });
  const { message, ...failure } = await failureAt(url);
  expect(failure).toEqual(expected);
  expect(message).toMatch(/^Gateway\w+: /);
});

test('a page for people in place of an error of the gateway is one all the same', async () => {
  const url = await serve((_, response) => response.writeHead(502).end('<html>Bad gateway</html>'));
  expect(await failureAt(url)).toMatchObject(down);
});

test('a gateway that broke off may have billed the request', async () => {
  const url = await serve((request) => request.socket.destroy());
  expect(await failureAt(url)).toMatchObject({ kind: 'interrupted', billed: true });
});

test('a gateway that is not there has billed nothing', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  expect(await failureAt(`http://127.0.0.1:${port}`)).toMatchObject(down);
});

test('a gateway without a key was not asked', async () => {
  vi.stubEnv('AI_GATEWAY_API_KEY', undefined);
  vi.stubEnv('VERCEL_OIDC_TOKEN', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const url = await serve(() => expect.unreachable('it was asked'));
  expect(await failureAt(url, {})).toMatchObject(rejected);
});
