import { WorkflowUpdateFailedError } from '@temporalio/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, isPerdureError, type Session } from '../../src/index.ts';
import { HEADROOM, headroomProblem } from '../../src/session/headroom.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const large = 'x'.repeat(370_000);
const LARGE_SIGNAL = 900_000;
const full = { code: 'SESSION_FULL' };

/** Asks again, as it is told to, while the worker reads all of that history anew. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isPerdureError(error, 'NO_WORKER')) throw error;
    }
  }
}

/** Sends large messages until one is refused. @returns how many were taken */
async function fill(session: Session): Promise<number> {
  for (let taken = 0; taken < 60; taken++) {
    const refused = await session.send({ text: large, id: `m${taken}` }).then(
      () => null,
      (error: unknown) => error,
    );
    if (refused === null) continue;
    expect(refused).toMatchObject(full);
    return taken;
  }
  throw new Error('it has taken everything');
}

test('a session that is full refuses a message by name, keeps what it has, and can be decided and cancelled', async () => {
  const paid: string[] = [];
  const stage = await openStage(
    scriptedTurns([{ toolCalls: [{ name: 'pay', args: { to: 'ada' } }] }, { text: 'done' }]),
  );
  const pay = defineTool({
    description: 'Pay somebody',
    inputSchema: z.object({ to: z.string() }),
    effect: 'mutate',
    needsApproval: true,
    execute: ({ to }) => {
      paid.push(to);
      return 'paid';
    },
  });
  await stage.startWorker([
    defineAgent({
      name: 'payer',
      model: stage.provider('m'),
      instructions: 'Pay.',
      tools: { pay },
      runTurns: false,
    }),
  ]);
  // A busy machine may take longer than two seconds to replay 20 MB.
  const id = stage.id();
  const session = await stage.sessions.start('payer', { id, message: 'pay', workflowTaskTimeout: '30s' });
  await untilPhase(session, 'approval');

  const taken = await fill(session);
  expect(taken).toBeGreaterThanOrEqual(42);
  const handle = stage.client.workflow.getHandle(id);
  const before = await handle.describe();
  expect(before.historySize).toBeGreaterThanOrEqual(HEADROOM.content.bytes);
  // However it is sent: as small as it may be, by a plain client, as an edit, with a start.
  const refused = await rejection(session.send('small'));
  expect(refused).toMatchObject({
    ...full,
    details: {
      next: { action: 'fork', sessionId: id },
      limit: HEADROOM.content,
      history: { events: expect.any(Number) },
    },
  });
  const plain = await rejection(handle.executeUpdate('sendMessage', { args: [{ text: 'small' }] }));
  expect(plain).toBeInstanceOf(WorkflowUpdateFailedError);
  expect(plain).toMatchObject({ cause: { type: 'SESSION_FULL' } });
  const used = stage.sessions.start('payer', { id, message: 'small', onExisting: 'use' });
  expect(await rejection(used)).toMatchObject({ ...full, details: { limit: HEADROOM.content } });
  // Nothing of it is on record, and nothing is lost.
  expect(await handle.describe()).toMatchObject({
    historyLength: before.historyLength,
    historySize: before.historySize,
  });
  expect(await session.state()).toMatchObject({ phase: 'approval', queued: taken });
  // A message that was taken is told so when it is sent again.
  expect(await session.send({ text: large, id: 'm0' })).toMatchObject({ queued: taken });

  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  const waiting = await untilPhase(session, 'waiting');
  expect(waiting).toMatchObject({ queued: 0, messages: 3 + taken, wait: { reason: 'history_limit' } });
  expect(paid).toEqual(['ada']);
  expect(await rejection(session.send('small'))).toMatchObject(full);
  expect(await rejection(session.edit({ plan: [] }))).toMatchObject(full);
  await session.setBudget({ limits: { turns: 5 } });

  // A plain client's signals cannot be refused; ours looks before it sends one.
  const missing = Math.ceil(
    (HEADROOM.steering.bytes - ((await handle.describe()).historySize ?? 0)) / LARGE_SIGNAL,
  );
  for (let n = 0; n < missing; n++) await handle.signal('send', { text: 'x'.repeat(LARGE_SIGNAL) });
  await until(session, ({ queued }) => queued === missing);
  expect(await rejection(session.resume())).toMatchObject({ ...full, details: { limit: HEADROOM.steering } });
  expect(await rejection(session.setBudget({ limits: { turns: 6 } }))).toMatchObject(full);
  expect(await session.state()).toMatchObject({ messages: 3 + taken, queued: missing });
  await session.cancel({ by: 'ada' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  await expectSound(stage, session);
}, 120_000);

test('messages leave updates over for decisions, of which the server takes so many', async () => {
  const stage = await openStage(() => ({ text: 'hello' }));
  // In one run: otherwise it goes on in a new one before it is full.
  const agent = { name: 'a', model: stage.provider('m'), instructions: 'Greet.', runTurns: false } as const;
  await stage.startWorker([defineAgent(agent)]);
  // As above, of thousands of tasks.
  const id = stage.id();
  const session = await stage.sessions.start('a', { id, message: 'hi', workflowTaskTimeout: '30s' });
  await untilPhase(session, 'idle');
  await session.pause();
  await untilPhase(session, 'paused');
  /** Asks again and again, some at a time, until it is refused. */
  const untilRefused = async (ask: (n: number) => Promise<unknown>): Promise<void> => {
    let asked = 0;
    const lane = async (): Promise<never> => {
      while (asked < 2_500) {
        const n = asked++;
        await answered(() => ask(n));
      }
      throw new Error('it has taken everything');
    };
    const refusals = await Promise.all(Array.from({ length: 8 }, () => rejection(lane())));
    for (const refusal of refusals) expect(refusal).toMatchObject(full);
  };
  await untilRefused(() => session.setBudget({ limits: { turns: 1_000 } }).then(() => session.send('more')));
  const { queued } = await answered(() => session.state());
  expect(queued).toBeGreaterThan(890);
  await answered(() => session.setBudget({ limits: { turns: 1_001 } }));
  await untilRefused((n) => session.setBudget({ limits: { turns: 2_000 + n } }));
  expect(await answered(() => session.state())).toMatchObject({ phase: 'paused', queued });
  await session.cancel({ by: 'ada' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
}, 240_000);

test('the number of events fills a session as their bytes do, and its cancellation is refused last', () => {
  const roomFor = (name: string, events: number): unknown =>
    headroomProblem('s', name, { events, bytes: 1_000, updates: 1 });
  const ends = { content: ['send', 'sendMessage', 'edit'], cancel: ['cancel'] };
  const steering = ['pause', 'resume', 'decide', 'resolve', 'budget', 'seal'];
  for (const [kind, names] of Object.entries({ ...ends, steering })) {
    const { events } = HEADROOM[kind as keyof typeof HEADROOM];
    for (const name of names) {
      expect(roomFor(name, events - 1), name).toBeNull();
      expect(roomFor(name, events), name).toMatchObject({ ...full, details: { history: { events } } });
    }
  }
  expect(roomFor('cancel', HEADROOM.cancel.events)).toMatchObject({
    message: expect.stringContaining('Cancel its workflow in Temporal'),
  });
});
