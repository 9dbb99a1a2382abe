import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, LIMIT, type Session } from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** One turn of fast reads, each of which does what its name says. */
async function read(
  execute: (id: string, signal: AbortSignal) => unknown,
  ids: string[],
): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ assistantCount, toolResults }) =>
    assistantCount === 0
      ? { toolCalls: ids.map((id) => ({ name: 'look', args: { id } })) }
      : { text: toolResults.map(({ text }) => text).join('|') },
  );
  const look = defineTool({
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    fast: true,
    execute: ({ id }, { abortSignal }) => execute(id, abortSignal),
  });
  await stage.startWorker([
    defineAgent({ name: 'reader', model: stage.provider('m'), instructions: 'Read.', tools: { look } }),
  ]);
  const session = await stage.sessions.start('reader', { id: stage.id(), message: 'read' });
  await untilPhase(session, 'idle', 'waiting');
  return { stage, session };
}

test('fast reads cost one workflow task, and no activity of their own', async () => {
  const { stage, session } = await read((id) => id, ['a', 'b', 'c', 'd']);
  expect((await session.state()).lastText).toBe('a|b|c|d');
  const { history } = await expectSound(stage, session);
  const scheduled = history.events.filter(({ activityTaskScheduledEventAttributes: event }) => event);
  expect(
    scheduled.map(({ activityTaskScheduledEventAttributes: event }) => event?.activityType?.name),
  ).toEqual(['model', 'model']);
});

test('a fast read that takes longer than a second runs again, remotely, and its signal is aborted', async () => {
  const runs: string[] = [];
  let aborted = 0;
  const { stage, session } = await read(
    async (id, signal) => {
      runs.push(id);
      if (id !== 'slow' || runs.filter((run) => run === 'slow').length > 1) return id;
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve());
      });
      aborted += 1;
      return 'too late';
    },
    ['a', 'slow', 'b'],
  );
  expect((await session.state()).lastText).toBe('a|slow|b');
  expect(runs.filter((run) => run === 'slow')).toHaveLength(2);
  expect(aborted).toBe(1);
  const [, slow] = (await session.calls()).items;
  expect(slow?.dispatches).toMatchObject([
    { no: 1, outcome: 'absent', reason: 'exceeded the cap of a local call' },
    { no: 2, outcome: 'returned' },
  ]);
  expect((await session.budget()).spent.toolCalls).toBe(3);
  await expectSound(stage, session);
});

test('a fast read that blocks its whole process for longer than its workflow task may take is not fatal', async () => {
  let blocked = 0;
  const { stage, session } = await read(
    (id) => {
      if (id === 'block' && blocked++ === 0) {
        const end = performance.now() + 2_600;
        while (performance.now() < end);
      }
      return id;
    },
    ['a', 'block', 'b'],
  );
  const { lastText, phase } = await session.state();
  expect(phase).toBe('idle');
  expect(lastText).toBe('a|block|b');
  await expectSound(stage, session);
});

test('a signal that comes while a fast read holds up its workflow task past its end is where a replay finds it', async () => {
  const stage = await openStage(({ assistantCount, toolResults }) =>
    assistantCount === 0
      ? { toolCalls: ['slow', 'block', 'c'].map((id) => ({ name: 'look', args: { id } })) }
      : { text: toolResults.map(({ text }) => text).join('|') },
  );
  const id = stage.id();
  let blocked = 0;
  const look = defineTool({
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    fast: true,
    execute: async (input) => {
      // Each stays under the cap of a local call, and both together hold the task for longer than its 2 s.
      if (input.id === 'slow') await new Promise((resolve) => setTimeout(resolve, 900));
      if (input.id === 'block' && blocked++ === 0) {
        await stage.client.workflow.getHandle(id).signal('pause', { by: 'ana' });
        const end = performance.now() + 1_500;
        while (performance.now() < end);
      }
      return input.id;
    },
  });
  await stage.startWorker([
    defineAgent({ name: 'reader', model: stage.provider('m'), instructions: 'Read.', tools: { look } }),
  ]);
  const session = await stage.sessions.start('reader', { id, message: 'read' });
  await untilPhase(session, 'paused');
  await expectSound(stage, session);
  await session.resume();
  await untilPhase(session, 'idle');
  expect((await session.state()).lastText).toBe('slow|block|c');
  await expectSound(stage, session);
});

test('a fast read that throws is told to the model once, and not run again', async () => {
  let runs = 0;
  const { stage, session } = await read(() => {
    runs += 1;
    throw new Error(`no, the ${runs}. time`);
  }, ['a']);
  expect((await session.state()).lastText).toBe('look failed: Error: no, the 1. time');
  expect(runs).toBe(1);
  await expectSound(stage, session);
});

test('fast and remote reads beside each other in many sessions: whenever a result is handed over, its time is its own', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? {
          toolCalls: Array.from({ length: 24 }, (_, i) => ({
            name: i % 4 === 3 ? 'fetch' : 'look',
            args: { i },
          })),
        }
      : { text: 'done' },
  );
  const inputSchema = z.object({ i: z.number() });
  // A third is too large for a local call, and is fetched remotely after all.
  const execute = async ({ i }: { i: number }): Promise<string> => {
    await new Promise((resolve) => setTimeout(resolve, (i * 13) % 40));
    return i % 3 === 0 ? 'x'.repeat(LIMIT.localResult + 1) : 'small';
  };
  const tools = {
    look: defineTool({ inputSchema, effect: 'read', fast: true, execute }),
    fetch: defineTool({ inputSchema, effect: 'read', execute }),
  };
  await stage.startWorker([
    defineAgent({ name: 'mixed', model: stage.provider('m'), instructions: 'Read.', tools }),
  ]);
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let i = 0; i < 5; i++) {
        const session = await stage.sessions.start('mixed', { id: stage.id(), message: 'read' });
        expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('done');
        await expectSound(stage, session);
      }
    }),
  );
});
