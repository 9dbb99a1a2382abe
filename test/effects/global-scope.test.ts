import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('equal calls of many sessions at once are one effect, whose record answers all of them', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? { toolCalls: [{ name: 'announce', args: { text: 'We moved.' } }] }
      : { text: 'Done.' },
  );
  const announced: string[] = [];
  const herald = defineAgent({
    name: 'herald',
    model: stage.provider('scripted'),
    instructions: 'Announce.',
    tools: {
      announce: defineTool({
        inputSchema: z.object({ text: z.string() }),
        idempotency: { scope: 'global', ttl: '1h' },
        execute: ({ text }, { idempotencyKey }) => {
          announced.push(idempotencyKey);
          return { announced: text };
        },
      }),
    },
  });
  await stage.startWorker([herald]);
  const sessions = await Promise.all(
    Array.from({ length: 5 }, () => stage.sessions.start('herald', { id: stage.id(), message: 'Go.' })),
  );
  await Promise.all(sessions.map((session) => untilPhase(session, 'idle')));

  expect(announced).toHaveLength(1);
  const contents = await Promise.all(
    sessions.map(async (session) => (await session.calls()).items[0]?.result?.content),
  );
  expect(contents.filter((content) => typeof content !== 'string')).toEqual([{ announced: 'We moved.' }]);
  expect(contents.filter((content) => typeof content === 'string')).toHaveLength(4);
  const effect = stage.sessions.get(`effect:${announced[0]}`);
  expect(await effect.state()).toMatchObject({ mode: 'effect', status: { kind: 'active' }, phase: 'idle' });
  await expect(effect.send('hello')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await effect.cancel();
  expect(await effect.result()).toMatchObject({ status: 'cancelled' });
});
