/** Checks of a call that give no answer: the reply that asked for it is paid for, and is kept. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { outlives } from '../support/heartbeats.ts';
import { openStage, type RunningWorker, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

interface Hanging {
  stage: Stage;
  session: Session;
  /** Another worker, whose checks hang alike. */
  startWorker: () => Promise<RunningWorker>;
  worker: RunningWorker;
  paid: string[];
  asked: string[];
}

/** A session whose model has asked for two payments; nobody says whether, or with what, the first may be made. */
async function hanging(check: 'needsApproval' | 'schema'): Promise<Hanging> {
  const stage = await openStage(({ assistantCount, lastUserText }) =>
    assistantCount === 0 && lastUserText === 'go'
      ? { toolCalls: ['a', 'b'].map((to) => ({ name: 'pay', args: { to } })) }
      : { text: 'Done.' },
  );
  const paid: string[] = [];
  const asked: string[] = [];
  const hang = (which: string): ((to: string) => boolean | Promise<boolean>) => {
    return (to) => {
      // The other check lets everything pass: what fits needs nobody's approval.
      if (which !== check) return which === 'schema';
      asked.push(to);
      return to === 'b' ? true : new Promise<boolean>(() => {});
    };
  };
  const approve = hang('needsApproval');
  const pay = defineTool({
    inputSchema: z.object({ to: z.string().refine(hang('schema')) }),
    needsApproval: ({ to }) => approve(to),
    execute: ({ to }) => {
      paid.push(to);
      return 'paid';
    },
  });
  const agent = defineAgent({
    name: 'payer',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: { pay },
    heartbeat: '2s',
  });
  const startWorker = (): Promise<RunningWorker> =>
    stage.startWorker([agent], { shutdownGraceTime: '100ms', shutdownForceTime: '20s' });
  const worker = await startWorker();
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  await expect.poll(() => asked).toEqual(['a']);
  return { stage, session, startWorker, worker, paid, asked };
}

test('paused at once: the reply is kept, and a person looks at what was not decided', async () => {
  const { stage, session, paid, asked } = await hanging('needsApproval');
  await session.pause({ now: true });
  await expect
    .poll(async () => (await session.calls()).items.map(({ status }) => status.kind))
    .toEqual(['approval', 'approval']);
  await session.resume();
  await decide(session, 'call_1_0', { decision: 'approve' });
  await decide(session, 'call_1_1', { decision: 'reject', reason: 'no' });
  expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ phase: 'idle', lastText: 'Done.' });
  expect(paid).toEqual(['a']);
  expect(asked).toEqual(['a', 'b']);
  expect(stage.model.requests).toHaveLength(2);
  await expectSound(stage, session);
});

test('cancelled: the session ends, with the reply on record', async () => {
  const { stage, session, paid } = await hanging('needsApproval');
  await session.cancel();
  expect(await session.result()).toMatchObject({ status: 'cancelled', turns: 1 });
  expect(paid).toEqual([]);
  await expectSound(stage, session);
});

test('interrupted: the next message is answered', async () => {
  const { stage, session, paid } = await hanging('needsApproval');
  await session.send({ text: 'stop', mode: 'interrupt' });
  expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ lastText: 'Done.', turn: 2 });
  expect(paid).toEqual([]);
  await expectSound(stage, session);
});

test('shut down with its worker: the next one has the reply and does not pay for it again', async () => {
  const { stage, session, startWorker, worker, asked } = await hanging('needsApproval');
  await worker.stop();
  await startWorker();
  await untilPhase(session, 'approval', 'waiting');
  expect((await session.calls()).items.map(({ status }) => status.kind)).toEqual(['approval', 'approval']);
  expect(asked).toEqual(['a', 'b']);
  expect(stage.model.requests).toHaveLength(1);
  await expectSound(stage, session);
});

test('left alone: a person is asked after a while', async () => {
  const { stage, session, asked } = await hanging('needsApproval');
  await untilPhase(session, 'approval', 'waiting');
  expect(asked).toEqual(['a', 'b']);
  expect(stage.model.requests).toHaveLength(1);
  await expectSound(stage, session);
});

test('a schema that hangs: the model is told, and what it checks at once goes on', async () => {
  const { stage, session, paid } = await hanging('schema');
  await session.pause({ now: true });
  await session.resume();
  expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ phase: 'idle', lastText: 'Done.' });
  expect((await session.calls()).items).toMatchObject([
    {
      status: { kind: 'skipped' },
      result: { content: 'Invalid arguments for pay: the check did not answer in time', isError: true },
    },
    { status: { kind: 'completed' } },
  ]);
  expect(paid).toEqual(['b']);
  await expectSound(stage, session);
});

/** A check that passes when it is released. */
function openLatch(): { release: () => void; released: Promise<boolean> } {
  let release = (): void => {};
  const released = new Promise<boolean>((resolve) => {
    release = () => resolve(true);
  });
  return { release, released };
}

test.for(['execute', 'repeat', 'verify'] as const)(
  'a schema that takes longer than the heartbeat before %s: the call waits for it, and nobody is asked',
  async (before) => {
    const stage = await openStage(({ assistantCount }) =>
      assistantCount === 0 ? { toolCalls: [{ name: 'pay', args: { to: 'a' } }] } : { text: 'Done.' },
    );
    const { release, released } = openLatch();
    let checks = 0;
    let runs = 0;
    // The first check is of the reply, the second one of the dispatch.
    const slow = before === 'verify' ? 3 : 2;
    const pay = defineTool({
      inputSchema: z.object({
        to: z.string().refine(() => {
          checks += 1;
          return checks === slow ? released : true;
        }),
      }),
      effect: before === 'repeat' ? 'idempotent' : 'mutate',
      settle: 0,
      execute: () => {
        runs += 1;
        if (before === 'verify') throw new Error('the connection was reset');
        return 'paid';
      },
      ...(before === 'verify' ? { verify: () => ({ outcome: 'landed', output: 'paid' }) as const } : {}),
    });
    await stage.startWorker([
      defineAgent({
        name: 'payer',
        model: stage.provider('m'),
        instructions: 'Pay.',
        tools: { pay },
        heartbeat: '1s',
      }),
    ]);
    const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
    await expect.poll(() => checks).toBe(slow);
    await outlives(1_000, stage, session);
    release();
    expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ phase: 'idle', lastText: 'Done.' });
    expect((await session.calls()).items).toMatchObject([
      { status: { kind: 'completed' }, result: { content: 'paid' }, dispatches: [{ no: 1 }] },
    ]);
    expect(runs).toBe(1);
    await expectSound(stage, session);
  },
);

test('a schema that takes long: the tool is stopped before the server gives the call up', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'pay', args: { to: 'a' } }] } : { text: 'Done.' },
  );
  const { release, released } = openLatch();
  let checks = 0;
  const pay = defineTool({
    inputSchema: z.object({
      to: z.string().refine(() => {
        checks += 1;
        return checks === 2 ? released : true;
      }),
    }),
    timeout: '6s',
    settle: 0,
    execute: () => new Promise(() => {}),
  });
  const common = { name: 'payer', model: stage.provider('m'), instructions: 'Pay.' };
  await stage.startWorker([defineAgent({ ...common, tools: { pay }, heartbeat: '2s' })]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  // More than the activity has beside the tool's own time.
  await outlives(5_200, stage, session);
  release();
  await untilPhase(session, 'waiting', 'unknown_effect');
  const reason = (await session.calls()).items[0]?.dispatches[0]?.reason ?? '';
  expect(reason).toMatch(/^timed out after [1-5]\d{3} ms$/);
});

test('a context schema that hangs: the session waits, and names it', async () => {
  const stage = await openStage(() => ({ text: 'Done.' }));
  const hangs = z.object({ user: z.string().refine(() => new Promise<boolean>(() => {})) });
  const common = { name: 'payer', model: stage.provider('m'), instructions: 'Pay.' };
  await stage.startWorker([defineAgent({ ...common, context: hangs })]);
  const context = { user: 'ada' };
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go', context });
  expect(await untilPhase(session, 'waiting', 'idle')).toMatchObject({
    phase: 'waiting',
    wait: {
      reason: 'context_invalid',
      message: expect.stringContaining('context: the check did not answer in time'),
    },
  });
});
