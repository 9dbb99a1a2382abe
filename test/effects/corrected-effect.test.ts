/** A tool was declared `read` or `idempotent`, and a new worker says `mutate`: the stricter of both holds. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { calls, openWorld } from '../support/world.ts';

test.each(['read', 'idempotent'] as const)(
  'a call recorded %s that the definition now calls mutate is dispatched as a mutation',
  async (effect) => {
    const stage = await openStage(
      scriptedTurns([{ toolCalls: [{ name: 'pay', args: { id: 'a' } }] }, { text: 'Paid.' }]),
    );
    const attempts: number[] = [];
    const worker = (declared: 'read' | 'idempotent' | 'mutate'): ReturnType<typeof stage.startWorker> => {
      const pay = defineTool({
        description: 'Pays',
        inputSchema: z.object({ id: z.string() }),
        effect: declared,
        needsApproval: true,
        execute: (_, { attempt }) => attempts.push(attempt),
      });
      const model = stage.provider('m');
      return stage.startWorker([defineAgent({ name: 'clerk', model, instructions: 'Pay.', tools: { pay } })]);
    };
    const first = await worker(effect);
    const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'pay a' });
    await untilPhase(session, 'approval');
    await first.stop();
    await worker('mutate');
    await decide(session, 'call_1_0', { decision: 'approve' });
    expect((await untilPhase(session, 'idle')).lastText).toBe('Paid.');

    const { calls: log } = await expectFoldEqualsLive(stage.client, session);
    expect(log).toMatchObject([
      {
        effect: 'mutate',
        status: { kind: 'completed' },
        decision: { decision: 'approve' },
        dispatches: [
          { no: 1, outcome: 'absent', unbegun: true, reason: 'the worker has another definition' },
          { no: 2, outcome: 'returned' },
        ],
      },
    ]);
    expect(attempts).toEqual([2]);
  },
);

test.each(['read', 'idempotent'] as const)(
  'a call recorded %s whose worker dies, and whose next worker calls it mutate, is verified and not repeated',
  async (effect) => {
    const world = await openWorld([calls('refund'), { text: 'Refunded.' }], {
      ignoreKeys: true,
      module: new URL('../support/corrected-agents.ts', import.meta.url),
    });
    const old = await world.startWorkerProcess({ breakAt: ['refunded'], env: { REFUND_EFFECT: effect } });
    const session = await world.begin('corrected');
    await old.reached('refunded');
    await old.crash();
    await world.startWorkerProcess({ env: { REFUND_EFFECT: 'mutate' } });
    await world.until(session, 'idle');

    const { calls: log } = await world.check(session);
    expect(log).toMatchObject([{ effect: 'mutate', status: { kind: 'completed' } }]);
    expect(await world.control.refunds()).toHaveLength(1);
  },
);
