/** Which values a store may lose. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DirectoryValues, defineAgent, Sessions, TemporalSaver } from '../../src/index.ts';
import { pruneValues, Values } from '../../src/values/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('prune removes what no session refers to and what is old, and counts first', async () => {
  const stage = await openStage(() => ({ text: 'A file.' }));
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = new DirectoryValues(folder);
  const { client } = stage;
  const values = new Values(store, client);
  await stage.startWorker([defineAgent({ name: 'a', model: stage.provider('m'), instructions: 'Go.' })], {
    values: store,
  });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue, values: store });
  const file = (text: string) => ({ bytes: Buffer.from(text), mediaType: 'text/plain' });
  const message = { parts: [{ type: 'file', data: Buffer.from('kept'), mediaType: 'text/plain' }] } as const;
  const session = await sessions.start('a', { id: stage.id(), message });
  await untilPhase(session, 'idle', 'waiting');
  const gone = stage.id('gone');
  await values.put(file('lost'), gone);
  await store.put('e'.repeat(64), Buffer.from('foreign'), 'another-namespace/x');
  const archived = stage.id('archived');
  const kept = await values.put(file('archived'), archived);
  const isKept = async (id: string): Promise<boolean> => id === archived;
  const prune = (olderThanMs: number, remove: boolean) =>
    pruneValues(client, store, { olderThanMs, remove, isKept });
  const one = { values: 1, bytes: expect.any(Number) };
  const two = { values: 2, bytes: expect.any(Number) };
  const none = { values: 0, bytes: 0 };
  expect(await prune(60_000, true)).toEqual({ referred: two, young: one, foreign: one, unreferred: none });
  expect(await prune(-1_000, false)).toEqual({ referred: two, young: none, foreign: one, unreferred: one });
  expect(await prune(-1_000, true)).toEqual({ referred: two, young: none, foreign: one, unreferred: one });
  expect(await prune(-1_000, true)).toEqual({ referred: two, young: none, foreign: one, unreferred: none });
  expect(Buffer.from((await values.get(kept.digest, archived)).bytes).toString()).toBe('archived');
  // What a deleted session alone refers to goes with it.
  await new TemporalSaver(client, { values: store }).delete(session.id, { end: true });
  expect(await prune(-1_000, false)).toEqual({ referred: one, young: none, foreign: one, unreferred: none });
});
