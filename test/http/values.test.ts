/** Files over HTTP: sent as base64, stored, and read back by digest. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpApi } from '../../src/http/index.ts';
import { DirectoryValues, defineAgent, Sessions, TemporalSaver } from '../../src/index.ts';
import { Values } from '../../src/values/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

const token = 'the-token-of-the-tests';

test('a message with a file is stored, and its bytes are read by digest of this session alone', async () => {
  const stage = await openStage(() => ({ text: 'A page.' }));
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const values = new DirectoryValues(folder);
  const agent = defineAgent({ name: 'a', model: stage.provider('m'), instructions: 'Go.' });
  await stage.startWorker([agent], { values });
  const { client, taskQueue } = stage;
  const sessions = new Sessions(client, { taskQueue, values });
  const api = createHttpApi({ client, sessions, saver: new TemporalSaver(client, { values }), token });
  const call = (method: string, path: string, body?: object): Promise<Response> =>
    api.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const id = stage.id();
  const bytes = Buffer.from('<script>alert(1)</script>');
  const parts = [
    { type: 'text', text: 'What is this?' },
    { type: 'file', data: bytes.toString('base64'), mediaType: 'text/html', filename: 'page.html' },
  ];
  const begun = await call('POST', '/sessions', { agent: 'a', id, message: { text: 'A page', parts } });
  expect(begun.status).toBe(201);
  const session = sessions.get(id);
  await untilPhase(session, 'idle', 'waiting');
  const { items } = (await (await call('GET', `/sessions/${id}/transcript`)).json()) as {
    items: { blocks: { kind: string; value?: { digest: string } }[] }[];
  };
  expect(items[0]?.blocks.map(({ kind }) => kind)).toEqual(['text', 'file']);
  const digest = items[0]?.blocks[1]?.value?.digest ?? '';
  const got = await call('GET', `/sessions/${id}/values/${digest}`);
  expect([got.status, got.headers.get('content-type'), got.headers.get('content-disposition')]).toEqual([
    200,
    'text/html',
    'attachment',
  ]);
  expect(Buffer.from(await got.arrayBuffer())).toEqual(bytes);
  const other = await call('GET', `/sessions/another/values/${digest}`);
  expect([other.status, await other.json()]).toMatchObject([404, { error: { code: 'VALUE_NOT_FOUND' } }]);
  // A tool can return a file of any media type.
  const odd = await new Values(values, client).put({ bytes, mediaType: 'text/plain\nx' }, id);
  const served = await call('GET', `/sessions/${id}/values/${odd.digest}`);
  expect([served.status, served.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
  for (const mediaType of ['text/plain\nx', 'текст/простой', '']) {
    const file = { type: 'file', data: 'AAAA', mediaType };
    const refused = await call('POST', `/sessions/${id}/messages`, { text: 'x', parts: [file] });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'INVALID_ARGUMENT', details: { field: 'parts.0.mediaType' } } },
    ]);
  }
  const wrong = await call('POST', `/sessions/${id}/messages`, {
    text: 'x',
    parts: [{ type: 'file', data: '!', mediaType: 'text/plain' }],
  });
  expect([wrong.status, await wrong.json()]).toMatchObject([
    400,
    { error: { code: 'INVALID_ARGUMENT', details: { field: 'parts.0' } } },
  ]);
});
