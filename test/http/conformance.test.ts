/** The saver's contract, held over HTTP by the saver that `perdure serve` has. */

import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, test } from 'vitest';
import { type Checkpoint, createWorker, TemporalSaver } from '../../src/index.ts';
import { checkpointSaverConformance } from '../../src/testing/index.ts';
import { openApi, type ServedApi } from './support/api.ts';
import { HttpSaver } from './support/http-saver.ts';

const taskQueue = `http-${process.pid}-${Date.now()}`;
let saver: TemporalSaver;
let api: ServedApi;
let stop: () => Promise<void>;

beforeAll(async () => {
  const { address, namespace } = inject('temporal');
  const [connection, native] = await Promise.all([
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
  const running = worker.run();
  saver = new TemporalSaver(new Client({ connection, namespace }), { taskQueue });
  api = await openApi(saver);
  stop = async () => {
    await api.close();
    worker.shutdown();
    await running;
    await Promise.all([native.close(), connection.close()]);
  };
});
afterAll(() => stop());

test('the same put twice, by header or by id, stores once, also when the server was started anew', async () => {
  const path = `/threads/put-${taskQueue}/checkpoints`;
  const headers = { 'idempotency-key': 'turn-1' };
  const json = { state: { a: 1, b: [{ c: 2 }] }, metadata: { m: 1 } };
  const first = await api.call<Checkpoint>(`PUT ${path}`, { json, headers });
  expect(first).toMatchObject({ status: 200, body: { id: 'turn-1', state: json.state } });
  const later = await openApi(saver);
  onTestFinished(() => later.close());
  const turned = { metadata: { m: 1 }, state: { b: [{ c: 2 }], a: 1 } };
  for (const { call } of [api, later]) {
    for (const sent of [{ json: turned, headers }, { json: { ...json, id: 'turn-1' } }]) {
      expect(await call(`PUT ${path}`, sent)).toMatchObject({ status: 200, body: first.body });
    }
    for (const other of [{ state: { a: 2 } }, { ...json, metadata: {} }, { ...json, parent_id: 'turn-0' }]) {
      const refused = await call(`PUT ${path}`, { json: other, headers });
      expect(refused).toMatchObject({ status: 409, code: 'CONFLICT' });
    }
  }
  expect((await api.call(`GET ${path}`)).body).toEqual({ items: [first.body], next: null });
});

test('puts at one time with one key store once; of two contents one is stored, and the other a conflict', async () => {
  const path = `/threads/once-${taskQueue}/checkpoints`;
  const headers = { 'idempotency-key': 'once' };
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      api.call<Checkpoint>(`PUT ${path}`, { json: { state: { side: i % 2 } }, headers }),
    ),
  );
  const stored = answers.filter(({ status }) => status === 200);
  expect(stored).toHaveLength(6);
  expect(new Set(stored.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  const refused = answers.filter(({ status, code }) => status === 409 && code === 'CONFLICT');
  expect(refused).toHaveLength(6);
  expect((await api.call(`GET ${path}`)).body).toEqual({ items: [stored[0]?.body], next: null });
});

const newSaver = (): HttpSaver => new HttpSaver(api.url, api.token);

checkpointSaverConformance(
  { name: 'TemporalSaver over HTTP', create: newSaver, reopen: newSaver },
  { describe, it },
);
