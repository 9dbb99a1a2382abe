/** The order within a batch: reads beside each other, what changes the world one after the other, unless the agent says otherwise. */
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { type DefinedTool, defineAgent, defineTool, type Effect, type Session } from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** What was seen from within a call: its name, and where each call of its batch stood. */
interface Seen {
  name: string;
  statuses: string[];
}

/** Resolves for each of so many calls when all of them have come. */
function gate(size: number): () => Promise<void> {
  const opened = new EventEmitter();
  let come = 0;
  return async () => {
    come += 1;
    if (come === size) opened.emit('open');
    else if (come < size) await once(opened, 'open');
  };
}

/** One batch of calls of tools that are named by their effects; each does what `within` says. */
async function batch(
  names: readonly Effect[],
  toolOrder: 'ordered' | 'parallel',
  within: (effect: Effect) => Promise<void>,
): Promise<{ stage: Stage; session: Session; seen: Seen[] }> {
  const stage = await openStage(({ assistantCount, toolResults }) =>
    assistantCount === 0
      ? { toolCalls: names.map((name, n) => ({ name, args: { n } })) }
      : { text: toolResults.map(({ text }) => text).join(' ') },
  );
  const seen: Seen[] = [];
  const toolOf = (effect: Effect): DefinedTool<{ n: number }, string> =>
    defineTool({
      inputSchema: z.object({ n: z.number() }),
      effect,
      timeout: '60s',
      execute: async ({ n }, { sessionId }) => {
        await within(effect);
        const { items } = await stage.sessions.get(sessionId).calls();
        seen.push({ name: `${effect} ${n}`, statuses: items.map(({ status }) => status.kind) });
        return `${effect} ${n}`;
      },
    });
  const tools = { read: toolOf('read'), idempotent: toolOf('idempotent'), mutate: toolOf('mutate') };
  await stage.startWorker([
    defineAgent({ name: 'batch', model: stage.provider('m'), instructions: 'Do it.', tools, toolOrder }),
  ]);
  const session = await stage.sessions.start('batch', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  return { stage, session, seen };
}

test('reads run beside each other; an idempotent call and a mutation wait for all before them, and hold up all after them', async () => {
  const names = ['read', 'read', 'idempotent', 'mutate', 'mutate', 'read', 'read'] as const;
  // Each read waits until the other one beside it has come.
  const gates = [gate(2), gate(2)];
  let reads = 0;
  const { stage, session, seen } = await batch(names, 'ordered', async (effect) => {
    if (effect === 'read') await gates[reads++ < 2 ? 0 : 1]?.();
  });

  // The results are in the model's order, whichever of two reads ended first.
  expect((await session.state()).lastText).toBe('read 0 read 1 idempotent 2 mutate 3 mutate 4 read 5 read 6');
  const changes = seen.filter(({ name }) => !name.startsWith('read'));
  const ready = (count: number): string[] => Array.from({ length: count }, () => 'ready');
  const done = (count: number): string[] => Array.from({ length: count }, () => 'completed');
  expect(changes).toEqual([
    { name: 'idempotent 2', statuses: [...done(2), 'running', ...ready(4)] },
    { name: 'mutate 3', statuses: [...done(3), 'running', ...ready(3)] },
    { name: 'mutate 4', statuses: [...done(4), 'running', ...ready(2)] },
  ]);
  const order = seen.map(({ name }) => name);
  expect(order.slice(0, 2).toSorted()).toEqual(['read 0', 'read 1']);
  expect(order.slice(5).toSorted()).toEqual(['read 5', 'read 6']);
  await expectSound(stage, session);
});

test('with toolOrder parallel, idempotent calls and mutations run beside each other, too', async () => {
  const names = ['idempotent', 'mutate', 'mutate', 'read'] as const;
  const all = gate(names.length);
  const { stage, session, seen } = await batch(names, 'parallel', all);

  expect(seen).toHaveLength(names.length);
  expect((await session.state()).lastText).toBe('idempotent 0 mutate 1 mutate 2 read 3');
  expect((await session.calls()).items.map(({ dispatches }) => dispatches.length)).toEqual([1, 1, 1, 1]);
  await expectSound(stage, session);
});
