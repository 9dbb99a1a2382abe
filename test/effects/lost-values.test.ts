/** A worker dies while it stores a large result, or its store is down: the effect happens once, and its result is not lost. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import {
  DirectoryValues,
  type PartsInput,
  type Session,
  type SessionState,
  Sessions,
} from '../../src/index.ts';
import { createHarness, type Harness, type ScriptedTurn } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { heartbeats } from '../support/heartbeats.ts';
import { effectsIn, LARGE } from '../support/value-agents.ts';

interface Place extends Harness {
  folder: string;
  begin(agent?: string, message?: string | PartsInput): Promise<Session>;
  /** Waits for the end, and checks that the fold is the live state. */
  end(session: Session): Promise<SessionState>;
  /** The digests in the store. */
  stored(): Promise<string[]>;
}

/** Bytes that begin like a PNG. */
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('a picture of a cat')]);

const calling = (tool: 'order' | 'look'): ScriptedTurn[] => [
  { toolCalls: [{ name: tool, args: {} }] },
  { text: 'Done.' },
];

async function openPlace(script: readonly ScriptedTurn[]): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const harness = await createHarness({
    script,
    module: new URL('../support/value-agents.ts', import.meta.url),
    server: inject('temporal'),
    env: { VALUES: folder },
  });
  onTestFinished(() => harness.stop());
  const values = new DirectoryValues(join(folder, 'values'));
  const sessions = new Sessions(harness.client, { taskQueue: harness.taskQueue, values });
  return {
    ...harness,
    folder,
    begin: (agent = 'large', message = 'Go.') =>
      sessions.start(agent, { id: `values-${harness.taskQueue}`, message }),
    end: async (session) => {
      await harness.until(session, 'idle');
      return expectFoldEqualsLive(harness.client, session);
    },
    stored: async () => {
      const digests: string[] = [];
      for await (const { digest } of values.list()) digests.push(digest);
      return digests;
    },
  };
}

const text = ({ bytes }: { bytes: Uint8Array }): string => Buffer.from(bytes).toString();

test.each(['storing', 'stored'])(
  'killed at %s, after a mutation: it happened once, and verify stores the same value once',
  async (point) => {
    const place = await openPlace(calling('order'));
    const first = await place.startWorkerProcess({ breakAt: [point] });
    const session = await place.begin();
    await first.reached(point);
    await first.crash();
    await place.startWorkerProcess();
    const { calls } = await place.end(session);
    expect(effectsIn(place.folder)).toEqual([calls[0]?.idempotencyKey]);
    expect(calls[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['landed']);
    const value = calls[0]?.result?.value;
    expect(await place.stored()).toEqual([value?.digest]);
    expect(text(await session.value(value?.digest ?? ''))).toBe(LARGE);
  },
);

test.each(['storing', 'stored'])(
  'killed at %s, after a read: it is read again, and the same value is stored once',
  async (point) => {
    const place = await openPlace(calling('look'));
    const first = await place.startWorkerProcess({ breakAt: [point] });
    const session = await place.begin();
    await first.reached(point);
    await first.crash();
    await place.startWorkerProcess();
    const { calls } = await place.end(session);
    expect(await place.stored()).toEqual([calls[0]?.result?.value?.digest]);
    expect(text(await session.value(calls[0]?.result?.value?.digest ?? ''))).toBe(LARGE);
  },
);

test('a store that is down: the mutation happened once, its result is shortened, and the model is told why', async () => {
  const place = await openPlace(calling('order'));
  writeFileSync(join(place.folder, 'down'), '');
  await place.startWorkerProcess();
  const session = await place.begin();
  const { calls } = await place.end(session);
  expect(effectsIn(place.folder)).toEqual([calls[0]?.idempotencyKey]);
  expect(calls[0]).toMatchObject({ status: { kind: 'completed' }, result: { isError: false } });
  expect(calls[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['returned']);
  expect(calls[0]?.result?.content).toMatch(
    /^A large report\. .*\[shortened: this result had 320002 bytes, \d+ are kept, the store of values failed: the disk is gone\]$/,
  );
  expect(calls[0]?.result).not.toHaveProperty('value');
});

test('frozen while it loads a file: the next worker asks the model, and nothing is charged twice', async () => {
  const place = await openPlace([{ text: 'A cat.' }]);
  const first = await place.startWorkerProcess({ breakAt: ['fetching', 'after model'] });
  const session = await place.begin('viewer', { parts: [{ type: 'image', image: PNG }] });
  await first.reached('fetching');
  await heartbeats(place, session, '"stage":"reading"');
  first.freeze();
  first.release('fetching');
  await place.startWorkerProcess();
  expect((await place.end(session)).budget.spent).toMatchObject({ turns: 1, lostReplies: 0 });
  expect(place.model.requests).toHaveLength(1);

  first.wake();
  const { detail } = await first.reached('after model');
  expect(JSON.parse(detail)).toMatchObject({ kind: 'failed', maybeBilled: 0 });
  expect(place.model.requests).toHaveLength(1);
});
