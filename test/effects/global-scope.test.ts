import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { herald } from '../support/herald.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';

test('equal calls of many sessions at once are one effect, whose record answers all of them', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? { toolCalls: [{ name: 'announce', args: { text: 'We moved.' } }] }
      : { text: 'Done.' },
  );
  const announced: string[] = [];
  const agent = herald(stage, (text, { idempotencyKey }) => {
    announced.push(idempotencyKey);
    return { announced: text };
  });
  await stage.startWorker([agent]);
  const sessions = await Promise.all(
    Array.from({ length: 5 }, () => stage.sessions.start('herald', { id: stage.id(), message: 'Go.' })),
  );
  await Promise.all(sessions.map((session) => untilPhase(session, 'idle')));

  expect(announced).toHaveLength(1);
  const contents = await Promise.all(
    sessions.map(async (session) => (await session.calls()).items[0]?.result?.content),
  );
  const own = { announced: 'We moved.' };
  expect(contents).toContainEqual(own);
  const told = { notice: expect.stringContaining('by another session'), result: own };
  expect(
    contents.filter((content) => content !== null && typeof content === 'object' && 'notice' in content),
  ).toEqual(Array(4).fill(told));
  const effect = stage.sessions.get(`effect:${announced[0]}`);
  expect(await effect.state()).toMatchObject({ mode: 'effect', status: { kind: 'active' }, phase: 'idle' });
  await expect(effect.send('hello')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await effect.cancel();
  expect(await effect.result()).toMatchObject({ status: 'cancelled' });
});

test('a session that is cancelled while its global effect waits for a person ends, and says that nobody knows', async () => {
  const { stage, session, effect } = await openAnnouncement();
  // The call is lost, nobody can verify it: a person is asked, in the session of the effect.
  await untilPhase(effect, 'unknown_effect');
  await untilPhase(session, 'unknown_effect');
  // The inbox asks once, in the session of the call.
  const asked = async (): Promise<string[]> => {
    const { items } = await stage.sessions.inbox({ limit: 1_000 });
    return items.filter(({ call }) => call?.next.sessionId === effect.id).map(({ sessionId }) => sessionId);
  };
  await expect.poll(asked).toEqual([session.id]);
  await session.cancel();

  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  const [call] = (await stage.sessions.get(session.id).calls()).items;
  expect(call).toMatchObject({ status: { kind: 'failed', certain: false }, result: { isError: true } });
  expect(call?.result?.content).toContain('may still happen');
});

test('a model whose global call was interrupted hears that its effect may still happen, and not its key', async () => {
  const { stage, session, effect } = await openAnnouncement();
  await untilPhase(session, 'unknown_effect');
  await session.send({ text: 'Never mind.', mode: 'interrupt' });
  await untilPhase(session, 'idle');

  const asked = stage.model.requests.at(-1)?.request;
  expect(asked?.toolResults[0]?.text).toContain('may still happen');
  expect(JSON.stringify(stage.model.requests)).not.toContain(effect.id.slice('effect:'.length));
  await expectFoldEqualsLive(stage.client, session);
});

test('a cancelled session does not wait for ever for a global effect whose session was terminated', async () => {
  const { stage, session, effect } = await openAnnouncement();
  await untilPhase(effect, 'acting');
  await stage.client.workflow.getHandle(effect.id).terminate('by hand');
  await session.cancel();

  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  const [call] = (await stage.sessions.get(session.id).calls()).items;
  expect(call).toMatchObject({ status: { kind: 'failed', certain: false } });
  expect(call?.result?.content).toContain('may still happen');
});

test('a global effect whose session was terminated is looked for, and not done again', async () => {
  const { stage, session, effect, executed } = await openAnnouncement({ verify: true });
  await untilPhase(effect, 'acting');
  await stage.client.workflow.getHandle(effect.id).terminate('by hand');

  await untilPhase(session, 'idle');
  const [call] = (await session.calls()).items;
  expect(call).toMatchObject({ status: { kind: 'completed' }, result: { content: 'seen', isError: false } });
  expect(executed).toHaveLength(1);
  // Its record answers others, too, whoever ends its workflow.
  await stage.client.workflow.getHandle(effect.id).terminate('once more');
  const other = await stage.sessions.start('herald', { id: stage.id(), message: 'Go.' });
  await untilPhase(other, 'idle');
  expect((await other.calls()).items[0]?.result?.content).toMatch(
    new RegExp(`^\\[idempotent replay of ${session.id}/call_1_0\\] .*\nseen$`),
  );
  expect(executed).toHaveLength(1);
  await expectFoldEqualsLive(stage.client, effect);
});

test('the record of a global effect answers equal calls until its time to live is over, and then the effect happens again', async () => {
  const gate = new EventEmitter();
  const stage = await openStage(({ assistantCount, lastUserText }) => {
    if (assistantCount > 0) return { text: 'Done.' };
    const announcement = { name: 'announce', args: { text: stage.taskQueue } };
    // So that nothing but the call itself is left to do within the time to live.
    return {
      toolCalls: lastUserText === 'Wait.' ? [{ name: 'hold', args: {} }, announcement] : [announcement],
    };
  });
  const executed: string[] = [];
  const announce = defineTool({
    inputSchema: z.object({ text: z.string() }),
    idempotency: { scope: 'global', ttl: '5s' },
    execute: (_, { idempotencyKey }) => {
      executed.push(idempotencyKey);
      return `announcement ${executed.length}`;
    },
  });
  const hold = defineTool({
    inputSchema: z.object({}),
    effect: 'read',
    execute: async () => {
      const opened = once(gate, 'open');
      gate.emit('held');
      await opened;
      return 'go on';
    },
  });
  await stage.startWorker([
    defineAgent({
      name: 'herald',
      model: stage.provider('scripted'),
      instructions: 'Announce.',
      tools: { announce, hold },
    }),
  ]);
  const start = (message: string): Promise<Session> =>
    stage.sessions.start('herald', { id: stage.id(), message });
  const resultOf = async (session: Session): Promise<unknown> => {
    await untilPhase(session, 'idle');
    return (await session.calls()).items.at(-1)?.result?.content;
  };
  const held = once(gate, 'held');
  const second = await start('Wait.');
  await held;
  const first = await start('Go.');
  expect(await resultOf(first)).toBe('announcement 1');
  gate.emit('open');
  const effect = stage.sessions.get(`effect:${executed[0]}`);
  expect(await resultOf(second)).toMatch(
    new RegExp(`^\\[idempotent replay of ${first.id}/call_1_0\\] .*by another session.*\nannouncement 1$`),
  );
  expect(executed).toHaveLength(1);

  expect(await effect.result()).toMatchObject({ status: 'completed' });
  const { runId } = await effect.state();
  expect(await resultOf(await start('Go.'))).toBe('announcement 2');
  expect(executed).toEqual([executed[0], executed[0]]);
  // That one has a session of its own, under the same id.
  const anew = await effect.state();
  expect(anew.mode).toBe('effect');
  expect(anew.runId).not.toBe(runId);
  for (const session of [first, second]) await expectFoldEqualsLive(stage.client, session);
});

/** A session with a global call that is under way and never returns; it gives up after a second. */
async function openAnnouncement({ verify = false } = {}): Promise<{
  stage: Stage;
  session: Session;
  effect: Session;
  executed: string[];
}> {
  const executed: string[] = [];
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? { toolCalls: [{ name: 'announce', args: { text: stage.taskQueue } }] }
      : { text: 'Done.' },
  );
  const underWay = new EventEmitter();
  const key = once(underWay, 'key');
  const agent = herald(
    stage,
    async (_, { idempotencyKey, abortSignal }) => {
      executed.push(idempotencyKey);
      underWay.emit('key', idempotencyKey);
      await once(abortSignal, 'abort');
      return 'late';
    },
    {
      timeout: '1s',
      settle: '100ms',
      ...(verify
        ? {
            verify: (_, { idempotencyKey }) =>
              executed.includes(idempotencyKey)
                ? { outcome: 'landed', output: 'seen' }
                : { outcome: 'absent' },
          }
        : {}),
    },
  );
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('herald', { id: stage.id(), message: 'Go.' });
  const effect = stage.sessions.get(`effect:${String((await key)[0])}`);
  return { stage, session, effect, executed };
}
