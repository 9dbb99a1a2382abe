import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestOptions, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { errorOf, jsonLines, type Running, run, start } from '../cli/support/perdure.ts';
import { AUDIENCE, openProvider } from './support/oidc.ts';

const env = (more: Record<string, string> = {}): Record<string, string | undefined> => {
  const { address, namespace } = inject('temporal');
  const own = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace, PERDURE_HTTP_TOKEN: undefined };
  return { ...own, ...more };
};

function serve(args: readonly string[], more?: Record<string, string>): Running {
  const running = start(['serve', '--port', '0', ...args], { env: env(more) });
  onTestFinished(async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  });
  return running;
}

const get = (url: string, token?: string): Promise<Response> =>
  fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });

test('serve says where it is and what to send, answers, and ends in order', async () => {
  const { line, child, ended } = serve(['--json']);
  const ready = JSON.parse(await line((text) => text)) as Record<string, string>;
  expect(ready).toMatchObject({ type: 'ready', address: inject('temporal').address, taskQueue: 'perdure' });
  const { url = '', token = '' } = ready;
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect((await get(`${url}/healthz`)).status).toBe(200);
  expect((await get(`${url}/sessions?limit=1`)).status).toBe(401);
  expect((await get(`${url}/sessions?limit=1`, token)).status).toBe(200);
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(jsonLines(stdout).at(-1)).toEqual({ type: 'stopped' });
});

test('a token that was given is used, and not shown', async () => {
  const token = 'given-by-the-environment';
  const { line, child, ended } = serve([], { PERDURE_HTTP_TOKEN: token });
  const url = await line((text) => /^serving +(\S+)/.exec(text)?.[1]);
  expect((await get(`${url}/sessions?limit=1`, token)).status).toBe(200);
  child.kill('SIGINT');
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).toContain('the value of PERDURE_HTTP_TOKEN');
  expect(stdout).toContain(`${url}/openapi.json`);
  expect(stdout).not.toContain(token);
});

test('a file in a message may be as large as --body-limit allows, and the refusal names it', async () => {
  const PERDURE_HTTP_TOKEN = 'given-by-the-environment';
  const PERDURE_VALUES = await mkdtemp(join(tmpdir(), 'perdure-values-'));
  onTestFinished(() => rm(PERDURE_VALUES, { recursive: true }));
  const { line } = serve(['--body-limit', '5'], { PERDURE_HTTP_TOKEN, PERDURE_VALUES });
  const url = await line((text) => /^serving +(\S+)/.exec(text)?.[1]);
  const send = async (bytes: number): Promise<unknown> => {
    const parts = [{ type: 'file', data: Buffer.alloc(bytes).toString('base64'), mediaType: 'text/plain' }];
    const answer = await fetch(`${url}/sessions/not-there/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PERDURE_HTTP_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Read this.', parts }),
    });
    return ((await answer.json()) as { error: unknown }).error;
  };
  expect(await send(3_500_000)).toMatchObject({ code: 'SESSION_NOT_FOUND' });
  expect(await send(4_000_000)).toMatchObject({
    code: 'TOO_LARGE',
    message: expect.stringContaining(
      'the limit is 5000000. Send a large file by its URL, or serve with a larger --body-limit',
    ),
  });
});

test('callers have tokens of their own in a file, or JWTs of a provider', async () => {
  const provider = await openProvider();
  const file = join(await mkdtemp(join(tmpdir(), 'perdure-tokens-')), 'tokens.json');
  onTestFinished(() => rm(dirname(file), { recursive: true }));
  const rita = { token: 'token-of-the-reader', name: 'rita', roles: ['read'] };
  await writeFile(file, JSON.stringify([rita]));
  const issuer = ['--oidc-issuer', provider.issuer, '--oidc-audience', AUDIENCE];
  const { line, child, ended } = serve(['--tokens', `@${file}`, ...issuer, '--oidc-tenant-claim', 'org']);
  const url = await line((text) => /^serving +(\S+)/.exec(text)?.[1]);
  const who = async (token: string): Promise<unknown> => (await get(`${url}/whoami`, token)).json();
  expect(await who(rita.token)).toEqual({ name: 'rita', roles: ['read'], tenant: null });
  const jwt = await provider.sign({ sub: 'ada', roles: ['decide'], org: 'lamps' });
  expect(await who(jwt)).toEqual({ name: 'ada', roles: ['decide'], tenant: 'lamps' });
  child.kill('SIGTERM');
  const { stdout } = await ended;
  expect(stdout).toMatch(/^callers +rita$/m);
  expect(stdout).toMatch(/^JWTs +of http:.* for perdure-api$/m);
  expect(stdout).not.toMatch(/^token /m);
});

test('on another interface than loopback it serves by any name, and only with the token', async () => {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all);
  const other = addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  const token = 'of-the-other-interface';
  for (const [host, more] of [
    ['0.0.0.0', {}],
    [other ?? '127.0.0.2', { PERDURE_HTTP_TOKEN: token }],
  ] as const) {
    const { line } = serve(['--json', '--host', host], more);
    const ready = JSON.parse(await line((text) => text)) as { url: string; token?: string };
    // There is none without a token: what is not given is made, and told once.
    expect(ready.token).toEqual(
      'PERDURE_HTTP_TOKEN' in more ? undefined : expect.stringMatching(/^[\w-]{43}$/),
    );
    const right = ready.token ?? token;
    const { port } = new URL(ready.url);
    const reached = host === '0.0.0.0' ? ['127.0.0.1', ...(other === undefined ? [] : [other])] : [host];
    for (const address of reached) {
      const status = (headers: Record<string, string>, path = '/sessions?limit=1'): Promise<number> =>
        statusOf({ host: address, port, path, headers: { host: 'agents.example.com', ...headers } });
      expect(await status({})).toBe(401);
      expect(await status({ authorization: `Bearer ${right}x` })).toBe(401);
      expect(await status({ authorization: 'Bearer ' })).toBe(401);
      expect(await status({ authorization: `Bearer ${right}` })).toBe(200);
      expect(await status({}, '/healthz')).toBe(200);
    }
  }
  for (const [args, more] of [
    [['--token', ''], {}],
    [['--token', ' '], {}],
    [[], { PERDURE_HTTP_TOKEN: ' ' }],
  ] as const) {
    const ran = await run(['serve', '--json', '--host', '0.0.0.0', '--port', '0', ...args], {
      env: env(more),
    });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(errorOf(ran)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^token/),
    });
  }
});

function statusOf(options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once('error', reject).end();
  });
}

test('what it cannot be started with is named', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  for (const [args, words] of [
    [['--port', String(port)], 'another program listens there'],
    [['--port', '70000'], '70000'],
    [['--port', 'http'], 'Write a port, 0 to 65535'],
    [['--host', '192.0.2.1', '--port', '0'], '192.0.2.1'],
    [['--token', 'two words', '--port', '0'], 'token'],
    [['--tokens', '{}', '--port', '0'], '--tokens is no list'],
    [['--tokens', '[{"name": "ada"}]', '--port', '0'], 'tokens.0.token: expected a text'],
    [['--oidc-issuer', 'https://login.example.com', '--port', '0'], '--oidc-audience is missing'],
    [['--token', 'x'.repeat(15), '--port', '0'], 'needs at least 16. Make one with openssl rand -hex 32'],
  ] as const) {
    const ran = await run(['serve', '--json', ...args], { env: env() });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(words) });
  }
});
