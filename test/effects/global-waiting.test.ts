/** A call of scope `global` waits as state: no worker's slot is held, whoever ends whatever on the way. */
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { type NextStep, NotAttemptedError } from '../../src/index.ts';
import { resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { herald } from '../support/herald.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

/** A model that announces the text of the user's last message, once. */
function openHeralds(): Promise<Stage> {
  return openStage(({ messages, lastUserText }) =>
    messages.at(-1)?.role === 'user'
      ? { toolCalls: [{ name: 'announce', args: { text: lastUserText } }] }
      : { text: 'Done.' },
  );
}

for (const { slots, sessions: count } of [
  { slots: 1, sessions: 1 },
  { slots: 4, sessions: 8 },
]) {
  test(`${slots} slots are enough for global effects of ${count} sessions at once`, async () => {
    const stage = await openHeralds();
    const announced: string[] = [];
    const agent = herald(stage, (text) => announced.push(text));
    await stage.startWorker([agent], { maxConcurrentActivityTaskExecutions: slots });
    const sessions = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        // Each text is announced by two of them.
        stage.sessions.start('herald', { id: stage.id(), message: `${stage.taskQueue} ${i >> 1}` }),
      ),
    );
    for (const session of sessions) {
      await untilPhase(session, 'idle');
      expect((await session.calls()).items[0]?.status).toEqual({ kind: 'completed' });
      await expectFoldEqualsLive(stage.client, session);
    }
    expect(new Set(announced).size).toBe(Math.ceil(count / 2));
    expect(announced).toHaveLength(new Set(announced).size);
  });
}

test('a global effect that certainly failed ends at once, and the next call executes', async () => {
  const stage = await openHeralds();
  let tries = 0;
  const agent = herald(stage, () => {
    tries += 1;
    if (tries <= 3) throw new NotAttemptedError('no connection', { retryable: true });
    return 'announced';
  });
  await stage.startWorker([agent]);
  const text = stage.taskQueue;
  const first = await stage.sessions.start('herald', { id: stage.id(), message: text });
  await untilPhase(first, 'idle');
  const [failed] = (await first.calls()).items;
  expect(failed).toMatchObject({ status: { kind: 'failed', certain: true } });
  expect(failed?.result?.content).toContain('was not executed');
  expect(tries).toBe(3);

  await first.send(text);
  await until(first, ({ calls, phase }) => calls === 2 && phase === 'idle');
  expect((await first.calls()).items[1]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: 'announced' },
  });
  expect(tries).toBe(4);
  await expectFoldEqualsLive(stage.client, first);
});

/** Each dispatch of the effect is lost, the second one when the gate opens. */
async function openLost(): Promise<{ stage: Awaited<ReturnType<typeof openHeralds>>; gate: EventEmitter }> {
  const stage = await openHeralds();
  const gate = new EventEmitter();
  const opened = once(gate, 'open');
  let dispatches = 0;
  const agent = herald(
    stage,
    async () => {
      dispatches += 1;
      if (dispatches === 2) await opened;
      throw new Error('the connection was lost');
    },
    { settle: '100ms' },
  );
  await stage.startWorker([agent]);
  return { stage, gate };
}

/** The next step that asks about one dispatch. */
function dispatch(dispatchNo: number): unknown[] {
  return [expect.objectContaining({ action: 'resolve', dispatchNo })];
}

test('the inbox asks about the dispatch of a global effect that is in question now', async () => {
  const { stage, gate } = await openLost();
  const tenant = stage.id('tenant');
  const start = { id: stage.id(), message: stage.taskQueue, context: { tenant } };
  const session = await stage.sessions.start('herald', start);
  const asked = async (): Promise<NextStep[]> => {
    const { items } = await stage.sessions.inbox({ tenant });
    return items.flatMap(({ call }) => call?.next ?? []);
  };
  await expect.poll(asked).toEqual(dispatch(1));

  const { pending } = await until(session, (view) => view.pending.length > 0);
  const effect = stage.sessions.get(pending[0]?.next.sessionId ?? '');
  await resolve(effect, 'call_0_0', { outcome: 'absent' }, { by: 'ada' });
  // While it runs again nobody is asked.
  await expect.poll(asked).toEqual([]);
  gate.emit('open');
  await expect.poll(asked).toEqual(dispatch(2));
  await effect.cancel();
});

test('a session shows where its global effect waits for a person, and goes on when that is resolved', async () => {
  const stage = await openHeralds();
  let key = '';
  const agent = herald(stage, (_, { idempotencyKey }) => {
    key = idempotencyKey;
    throw new Error('the connection was lost');
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('herald', { id: stage.id(), message: stage.taskQueue });
  const { pending } = await untilPhase(session, 'unknown_effect');
  const effect = stage.sessions.get(`effect:${key}`);
  const seen = { callId: 'call_0_0', argsDigest: pending[0]?.argsDigest, dispatchNo: 1 };
  expect(pending[0]).toMatchObject({
    status: { kind: 'awaiting', person: { kind: 'unknown', call: seen } },
    next: { action: 'resolve', sessionId: effect.id, ...seen },
  });

  const [asked] = await effect.approvals();
  if (asked === undefined) throw new Error('the effect asks nobody');
  await effect.resolve(asked, { outcome: 'landed', output: 'seen by a person' }, { by: 'ada' });
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: 'seen by a person' },
  });
  await expectFoldEqualsLive(stage.client, session);
  await expectFoldEqualsLive(stage.client, effect);
});

test('a session shows each dispatch of its global effect that is in question, and no other', async () => {
  const { stage, gate } = await openLost();
  const session = await stage.sessions.start('herald', { id: stage.id(), message: stage.taskQueue });
  const shown = async (): Promise<NextStep[]> => (await session.approvals()).map(({ next }) => next);
  // Well before the session looks by itself.
  const soon = { timeout: 20_000 };
  await expect.poll(shown, soon).toEqual(dispatch(1));
  const [asked] = await session.approvals();
  const effect = stage.sessions.get(asked?.next.sessionId ?? '');
  await resolve(effect, 'call_0_0', { outcome: 'absent' }, { by: 'ada' });
  await expect.poll(shown, soon).toEqual([]);
  gate.emit('open');
  await expect.poll(shown, soon).toEqual(dispatch(2));
  await resolve(effect, 'call_0_0', { outcome: 'landed', output: 'done' }, { by: 'ada' });
  await untilPhase(session, 'idle');
  await expectFoldEqualsLive(stage.client, session);
  await expectFoldEqualsLive(stage.client, effect);
});
