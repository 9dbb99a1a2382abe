/** One activity for reads and the reply that follows. */

import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { activityKind } from '../../src/contract/names.ts';
import {
  defineAgent,
  defineTool,
  NotAttemptedError,
  type Session,
  type ToolContext,
} from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const inputSchema = z.object({ id: z.string() });
type Execute = (id: string, context: ToolContext) => unknown;

/** Calls tools in the first reply, and says in the second what they returned. */
const calling =
  (...calls: [name: string, id: string][]): Script =>
  ({ assistantCount, toolResults }) =>
    assistantCount === 0
      ? { toolCalls: calls.map(([name, id]) => ({ name, args: { id } })) }
      : { text: toolResults.map(({ text }) => text).join('|') };

async function begin(
  script: Script,
  execute: Execute,
  options: { tokens?: number; maxAttempts?: number; timeout?: number } = {},
): Promise<{ stage: Stage; session: Session }> {
  const { tokens, ...tool } = options;
  const stage = await openStage(script);
  const agent = defineAgent({
    name: 'reader',
    model: stage.provider('m'),
    instructions: 'Read.',
    heartbeat: '1s',
    ...(tokens === undefined ? {} : { budget: { tokens } }),
    tools: {
      look: defineTool({
        inputSchema,
        effect: 'read',
        ...tool,
        execute: ({ id }, context) => execute(id, context),
      }),
      pay: defineTool({ inputSchema, execute: ({ id }) => `paid ${id}` }),
      note: defineTool({ inputSchema, effect: 'idempotent', execute: ({ id }) => `noted ${id}` }),
      ask: defineTool({
        inputSchema,
        effect: 'read',
        needsApproval: true,
        execute: ({ id }) => `asked ${id}`,
      }),
    },
  });
  await stage.startWorker([agent]);
  return { stage, session: await stage.sessions.start('reader', { id: stage.id(), message: 'read' }) };
}

/** The activities of a session, in their order, once its history has replayed. */
async function activities(stage: Stage, session: Session): Promise<(string | null | undefined)[]> {
  const { history } = await expectSound(stage, session);
  return history.events.flatMap(({ activityTaskScheduledEventAttributes: event }) =>
    event ? [activityKind(event.activityType?.name)] : [],
  );
}

test('reads run side by side in the activity that asks the model next, and have no activity of their own', async () => {
  let running = 0;
  const all = new EventEmitter();
  const seen: { from: number; to: number }[] = [];
  const { stage, session } = await begin(calling(['look', 'a'], ['look', 'b'], ['look', 'c']), async (id) => {
    const from = Date.now();
    const together = once(all, 'run');
    // None of them returns before all run.
    if (++running === 3) all.emit('run');
    await together;
    seen['abc'.indexOf(id)] = { from, to: Date.now() };
    return id;
  });
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('a|b|c');
  expect(await activities(stage, session)).toEqual(['describe', 'model', 'model']);
  const { items } = await session.calls();
  for (const [n, { issuedAt, completedAt, dispatches }] of items.entries()) {
    const [dispatch] = dispatches;
    expect(dispatch).toMatchObject({ no: 1, outcome: 'returned' });
    const times = [issuedAt, dispatch?.startedAt, completedAt].map((time) => Date.parse(time ?? ''));
    expect([...times].sort((x, y) => x - y)).toEqual(times);
    expect(times[1]).toBeLessThanOrEqual((seen[n]?.from ?? 0) + 1);
    // The worker's clock and `Date` round apart by one.
    expect(times[2]).toBeGreaterThanOrEqual((seen[n]?.to ?? Number.NaN) - 1);
  }
  expect((await session.budget()).spent).toMatchObject({ turns: 2, toolCalls: 3 });
});

test('a mutation never shares an activity: reads around it run before and after it', async () => {
  const { stage, session } = await begin(
    calling(['look', 'a'], ['pay', 'x'], ['look', 'b'], ['note', 'y'], ['look', 'c']),
    (id) => id,
  );
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('a|paid x|b|noted y|c');
  expect(await activities(stage, session)).toEqual([
    'describe',
    'model',
    'reads',
    'tool',
    'reads',
    'tool',
    'model',
  ]);
});

test('a read that needs approval runs alone, and so does one that a person has edited', async () => {
  const { stage, session } = await begin(calling(['look', 'a'], ['ask', 'b']), (id) => id);
  await untilPhase(session, 'approval');
  const [call] = await session.approvals();
  if (call === undefined) return expect.fail('no call waits for approval');
  await session.decide(call, { decision: 'edit', args: { id: 'edited' } });
  const { lastText } = await untilPhase(session, 'idle', 'waiting');
  expect(lastText).toMatch(/^a\|\[edited by a person\] .*\{"id":"edited"\}.*\nasked edited$/);
  expect(await activities(stage, session)).toEqual([
    'describe',
    'model',
    'reads',
    'prepare',
    'reads',
    'model',
  ]);
});

test.each([
  [{}, 70_000],
  [{ tokens: 1_000_000 }, 20_000],
])(
  'results that are larger than what is reserved with %o come back before the model is asked',
  async (options, size) => {
    const { stage, session } = await begin(
      calling(['look', 'a'], ['look', 'b']),
      () => 'x'.repeat(size / 2),
      options,
    );
    await untilPhase(session, 'idle', 'waiting');
    expect(await activities(stage, session)).toEqual(['describe', 'model', 'model', 'model']);
    expect((await session.state()).turn).toBe(2);
  },
);

test('near a cap the reads run without a reply, and what is reserved never exceeds it', async () => {
  const { stage, session } = await begin(calling(['look', 'a']), (id) => id, { tokens: 12_000 });
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('a');
  expect(await activities(stage, session)).toEqual(['describe', 'model', 'reads', 'model']);
});

test('a read that throws is told to the model once, and one that was not attempted runs again at once', async () => {
  const runs: [string, number][] = [];
  const { stage, session } = await begin(
    calling(['look', 'throws'], ['look', 'refused']),
    (id, { attempt }) => {
      runs.push([id, attempt]);
      if (id === 'throws') throw new Error('no');
      if (attempt < 3) throw new NotAttemptedError('refused at the door');
      return id;
    },
  );
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('look failed: Error: no|refused');
  expect(runs).toEqual([
    ['throws', 1],
    ['refused', 1],
    ['refused', 2],
    ['refused', 3],
  ]);
  const [, refused] = (await session.calls()).items;
  expect(refused?.dispatches).toMatchObject([{ no: 1, outcome: 'returned', attempts: 3 }]);
  expect(await activities(stage, session)).toEqual(['describe', 'model', 'model']);
});

test('a read has its own time-out, and its signal aborts with it', async () => {
  let aborted = 0;
  const { stage, session } = await begin(
    calling(['look', 'slow'], ['look', 'b']),
    (id, { abortSignal }) =>
      id === 'b' ? id : new Promise(() => abortSignal.addEventListener('abort', () => (aborted += 1))),
    { timeout: 300 },
  );
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('look timed out after 300 ms|b');
  expect(aborted).toBe(1);
  expect(await activities(stage, session)).toEqual(['describe', 'model', 'model']);
});

/** A read that ends when the session's test says so, or when it is aborted. */
function gate(): { execute: Execute; started: Promise<void>; open: () => void } {
  let start = (): void => {};
  let open = (): void => {};
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let isFirst = true;
  return {
    started,
    open,
    execute: async (id, { abortSignal }) => {
      if (id !== 'slow' || !isFirst) return id;
      isFirst = false;
      start();
      const aborted = new Promise<never>((_, reject) => {
        abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
      });
      await Promise.race([opened, aborted]);
      return id;
    },
  };
}

test('a pause now while reads run keeps those that have ended; the others run again', async () => {
  const slow = gate();
  const { stage, session } = await begin(calling(['look', 'a'], ['look', 'slow']), slow.execute);
  await slow.started;
  await session.pause({ now: true });
  await expect
    .poll(async () => (await session.calls()).items.map(({ status }) => status.kind))
    .toEqual(['completed', 'ready']);
  expect((await session.state()).turn).toBe(1);
  await session.resume();
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('a|slow');
  expect(stage.model.requests).toHaveLength(2);
  expect(await activities(stage, session)).toEqual(['describe', 'model', 'model', 'reads', 'model']);
});

test('an interruption while reads run ends the turn, and a cancellation the session', async () => {
  const slow = gate();
  const first = await begin(calling(['look', 'a'], ['look', 'slow']), slow.execute);
  await slow.started;
  await first.session.send({ text: 'stop', mode: 'interrupt' });
  await until(first.session, ({ phase, turn }) => phase === 'idle' && turn === 2);
  expect((await first.session.calls()).items.map(({ status }) => status.kind)).toEqual([
    'completed',
    'skipped',
  ]);
  await activities(first.stage, first.session);

  const other = gate();
  const second = await begin(calling(['look', 'slow']), other.execute);
  await other.started;
  await second.session.cancel();
  expect(await second.session.result()).toMatchObject({ status: 'cancelled', turns: 1 });
  await activities(second.stage, second.session);
});

test.each(['pause', 'message'])(
  'a %s that comes while reads run long is heard before the model is asked',
  async (what) => {
    const slow = gate();
    const { stage, session } = await begin(calling(['look', 'slow']), slow.execute);
    await slow.started;
    // Heartbeats show that it takes long, and what runs.
    const pending = async () =>
      (await stage.client.workflow.getHandle(session.id).describe()).raw.pendingActivities?.[0]
        ?.heartbeatDetails;
    await expect
      .poll(async () => Buffer.from((await pending())?.payloads?.[0]?.data ?? []).toString())
      .toContain('"running":["call_1_0"],"stage":"reading"');
    if (what === 'pause') await session.pause();
    else await session.send('And b?');
    slow.open();
    if (what === 'pause') {
      await expect.poll(async () => (await session.calls()).items[0]?.status.kind).toBe('completed');
      expect((await session.state()).turn).toBe(1);
      expect(stage.model.requests).toHaveLength(1);
      await session.resume();
    }
    await until(session, ({ phase, turn }) => phase === 'idle' && turn === 2);
    expect(stage.model.requests).toHaveLength(2);
    expect((await session.state()).queued).toBe(0);
    expect(await activities(stage, session)).toEqual(['describe', 'model', 'model', 'model']);
  },
);
