import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool, isPerdureError, type Session } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage } from '../support/stage.ts';
import { expectSound, lookOn } from './support/sound.ts';

/** What a client does next; `gap` is how many answers of the server it waits for before. */
type Action = { gap: number } & (
  | { do: 'send' | 'interrupt' | 'signal-send'; text: string }
  | { do: 'pause' | 'pause-now' | 'resume' | 'query' | 'snapshot' | 'malformed' | 'unknown-signal' }
  | { do: 'approve' | 'reject' | 'respond' | 'edit' | 'bad-edit' }
  | { do: 'raise' }
);

const gap = fc.integer({ min: 0, max: 4 });
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      gap,
      do: fc.constantFrom('send', 'interrupt', 'signal-send'),
      text: fc.constantFrom('a', 'b', 'c'),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      gap,
      do: fc.constantFrom('pause', 'pause-now', 'resume', 'query', 'snapshot', 'malformed', 'unknown-signal'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ gap, do: fc.constantFrom('approve', 'reject', 'respond', 'edit', 'bad-edit') }),
  },
  { weight: 1, arbitrary: fc.record({ gap, do: fc.constant('raise') }) },
);

/** Three steps a turn with local and remote calls beside each other, then an answer. */
const script: Script = ({ stepInTurn, assistantCount }) => {
  const look = (id: string): { name: string; args: { id: string } } => ({
    name: 'look',
    args: { id: `${assistantCount}${id}` },
  });
  switch (stepInTurn) {
    case 0:
      return { text: 'looking', toolCalls: [look('a'), look('b'), { name: 'fetch', args: { id: 'f' } }] };
    case 1:
      return {
        toolCalls: [
          { name: 'pay', args: { cents: 5 } },
          look('c'),
          { name: 'note', args: { id: `n${assistantCount}` } },
        ],
      };
    case 2:
      return { toolCalls: [look('d'), { name: 'pay', args: { cents: 5 } }, { name: 'look', args: {} }] };
    default:
      return { text: 'done', chunks: 3 };
  }
};

function racer(stage: Stage): DefinedAgent {
  const inputSchema = z.object({ id: z.string() });
  let n = 0;
  // Not random: the order in which the calls of all sessions come makes it different each time.
  const turns = async (): Promise<void> => {
    for (let i = (n++ * 7) % 5; i > 0; i--) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const answer = async ({ id }: { id: string }): Promise<string> => {
    await turns();
    if (id.endsWith('b')) throw new Error('no b');
    return id;
  };
  return defineAgent({
    name: 'racer',
    model: { model: stage.provider('m'), price: { inputPerMillion: 1, outputPerMillion: 2 } },
    instructions: 'Race.',
    budget: { usd: 1, turns: 30 },
    heartbeat: '1s',
    tools: {
      look: defineTool({ inputSchema, effect: 'read', execute: answer }),
      fetch: defineTool({ inputSchema, effect: 'read', execute: answer }),
      note: defineTool({ inputSchema, effect: 'idempotent', execute: answer }),
      pay: defineTool({
        inputSchema: z.object({ cents: z.number().max(100) }),
        needsApproval: true,
        settle: 20,
        execute: async ({ cents }, { fence }) => {
          await fence();
          await turns();
          return { paid: cents };
        },
        verify: () => ({ outcome: 'absent' }),
      }),
    },
  });
}

/** Does one thing. What the session refuses is fine; anything else is not. */
async function act(stage: Stage, session: Session, next: Action): Promise<void> {
  const handle = stage.client.workflow.getHandle(session.id);
  for (let i = 0; i < next.gap; i++) await handle.describe();
  const decide = async (decision: Parameters<Session['decide']>[1]): Promise<void> => {
    const [pending] = await session.approvals();
    if (pending?.status.kind === 'approval') await session.decide(pending, decision, { by: 'racer' });
  };
  const acts: Record<Action['do'], () => Promise<unknown>> = {
    send: () => session.send('text' in next ? next.text : ''),
    interrupt: () => session.send({ text: 'text' in next ? next.text : '', mode: 'interrupt' }),
    'signal-send': () => handle.signal('send', 'text' in next ? next.text : ''),
    pause: () => session.pause({ by: 'racer' }),
    'pause-now': () => session.pause({ now: true }),
    resume: () => session.resume(),
    query: () => session.state(),
    snapshot: () => session.snapshot(),
    malformed: () => handle.signal('send', { txt: 'oops' }),
    'unknown-signal': () => handle.signal('nobody-home', 1),
    approve: () => decide({ decision: 'approve' }),
    reject: () => decide({ decision: 'reject', reason: 'no' }),
    respond: () => decide({ decision: 'respond', output: { paid: 0 } }),
    edit: () => decide({ decision: 'edit', args: { cents: 7 } }),
    'bad-edit': () => decide({ decision: 'edit', args: { cents: 1_000 } }),
    raise: () => session.setBudget({ limits: { usd: 2 } }),
  };
  await acts[next.do]().catch((error: unknown) => {
    if (!isPerdureError(error)) throw error;
    expect(['CALL_NOT_PENDING', 'INVALID_TOOL_INPUT', 'UNKNOWN_CALL']).toContain(error.code);
  });
}

/** Lets the session come to rest, by giving it whatever it waits for. */
async function settle(session: Session): Promise<void> {
  await expect
    .poll(
      async () => {
        const { phase, pending, queued } = await session.state();
        if (phase === 'paused' || phase === 'waiting') await session.resume();
        for (const call of pending) {
          const { kind } = call.status;
          if (kind === 'approval') await session.decide(call, { decision: 'approve' }).catch(() => {});
          if (kind === 'unknown') await session.resolve(call, { outcome: 'failed' }).catch(() => {});
        }
        return phase === 'idle' && queued === 0;
      },
      { timeout: 60_000, interval: 20 },
    )
    .toBe(true);
}

const SEED = Number(process.env['PERDURE_SEED'] ?? 20_251);
/** Sessions on a busy machine are slow; a failure shows at once. */
vi.setConfig({ testTimeout: 300_000 });

const RUNS = Number(process.env['PERDURE_RUNS'] ?? 8);

test(`whatever a client does and when, the fold is the live state and the history replays (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  await stage.startWorker([racer(stage)]);
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 14 }), async (actions) => {
      const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
      for (const next of actions) {
        await act(stage, session, next);
        await lookOn(stage, session);
      }
      await settle(session);
      expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
    }),
    // A failing schedule is shown as it is: shrinking would run many sessions more.
    { seed: SEED, numRuns: RUNS, endOnFailure: true },
  );
});

test(`several clients at once, in one session (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  await stage.startWorker([racer(stage)], { maxCachedWorkflows: 2 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(action, { maxLength: 6 }), { minLength: 2, maxLength: 4 }),
      async (clients) => {
        const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
        await Promise.all(
          clients.map(async (actions) => {
            for (const next of actions) {
              await act(stage, session, next);
              await lookOn(stage, session);
            }
          }),
        );
        await settle(session);
        expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
      },
    ),
    { seed: SEED + 1, numRuns: Math.ceil(RUNS / 2), endOnFailure: true },
  );
});

test(`workers that forget everything after each task (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  const agents = [racer(stage)];
  const forgetful = { maxCachedWorkflows: 0, memoryBytes: 1 };
  await Promise.all([stage.startWorker(agents, forgetful), stage.startWorker(agents, forgetful)]);
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 10 }), async (actions) => {
      const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
      for (const next of actions) {
        await act(stage, session, next);
        await lookOn(stage, session);
      }
      await settle(session);
      expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
    }),
    { seed: SEED + 2, numRuns: Math.ceil(RUNS / 3), endOnFailure: true },
  );
});
