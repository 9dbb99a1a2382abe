/** The tenant of a session: part of global keys, and what global tools are handed. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, untilPhase } from '../support/stage.ts';

const Customer = z.object({ tenant: z.string().optional(), userId: z.string() });

test('equal global calls are one effect within a tenant, and two in two tenants; each has the context of who asked first', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'close', args: { month: 'May' } }] } : { text: 'Done.' },
  );
  const closed: [string, z.infer<typeof Customer>][] = [];
  const close = defineTool({
    context: Customer,
    inputSchema: z.object({ month: z.string() }),
    idempotency: { scope: 'global', ttl: '1h' },
    execute: (_, { context, idempotencyKey }) => closed.push([idempotencyKey, context]),
  });
  await stage.startWorker([
    defineAgent({ name: 'books', model: stage.provider('m'), instructions: 'Close.', tools: { close } }),
  ]);
  const run = async (context: z.infer<typeof Customer>): Promise<void> => {
    const session = await stage.sessions.start('books', { id: stage.id(), context, message: 'go' });
    await untilPhase(session, 'idle');
    await expectFoldEqualsLive(stage.client, session);
  };
  await run({ tenant: 'acme', userId: 'ann' });
  await run({ tenant: 'acme', userId: 'bob' });
  await run({ tenant: 'umbrella', userId: 'cleo' });
  await run({ userId: 'dan' });
  expect(closed.map(([, context]) => context)).toEqual([
    { tenant: 'acme', userId: 'ann' },
    { tenant: 'umbrella', userId: 'cleo' },
    { userId: 'dan' },
  ]);
  const keys = new Set(closed.map(([key]) => key));
  expect(keys.size).toBe(3);
  for (const key of keys) await stage.sessions.get(`effect:${key}`).cancel();
});
