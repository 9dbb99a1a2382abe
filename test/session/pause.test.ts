import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  effectsSince,
  type Session,
  TemporalSaver,
} from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type RunningWorker, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

interface Work {
  stage: Stage;
  session: Session;
  worker: RunningWorker;
  agents: DefinedAgent[];
}

async function work(script: Script, reads: string[] = []): Promise<Work> {
  const stage = await openStage(script);
  const look = defineTool({
    inputSchema: z.object({ n: z.string() }),
    effect: 'read',
    execute: ({ n }) => reads.push(n),
  });
  const agents = [
    defineAgent({ name: 'worker', model: stage.provider('m'), instructions: 'Work.', tools: { look } }),
  ];
  const worker = await stage.startWorker(agents);
  const session = await stage.sessions.start('worker', { id: stage.id(), message: 'go' });
  return { stage, session, worker, agents };
}

const pauses = async (session: Session): Promise<unknown[]> => (await session.snapshot()).pauses;

test('a pause during a model call keeps the reply and issues nothing; resume goes on from there', async () => {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const reads: string[] = [];
  const { stage, session } = await work(async ({ assistantCount }) => {
    if (assistantCount > 0) return { text: 'done' };
    await released;
    return { toolCalls: [{ name: 'look', args: { n: 'a' } }] };
  }, reads);
  await untilPhase(session, 'thinking');
  await session.pause({ by: 'ada', reason: 'lunch' });
  const paused = await untilPhase(session, 'paused');
  expect(paused.paused).toMatchObject({ by: 'ada', reason: 'lunch' });
  release();
  await until(session, ({ turn }) => turn === 1);
  // The reply was paid for and is kept; its call waits.
  expect(reads).toEqual([]);
  expect((await session.calls()).items).toMatchObject([{ status: { kind: 'ready' } }]);
  await session.send('while you pause');
  expect(await session.state()).toMatchObject({ phase: 'paused', queued: 1 });
  await session.resume({ by: 'bob' });
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'done', queued: 0 });
  expect(reads).toEqual(['a']);
  expect(stage.model.requests).toHaveLength(2);
  await expectSound(stage, session);
});

test('pause now cancels the model call, which is charged; resume asks again', async () => {
  const { stage, session } = await work(({ repeat }) =>
    repeat === 0 ? { fault: 'hang', afterChunks: 1 } : { text: 'again' },
  );
  await stage.model.waitFor((requests) => requests.length === 1);
  await session.pause({ now: true });
  await stage.model.waitFor(([first]) => first?.state === 'gone');
  const { budget } = await until(
    session,
    (view) => view.phase === 'paused' && view.budget.reserved.tokens === 0,
  );
  expect(budget.spent.inputTokens).toBeGreaterThan(0);
  await session.resume();
  expect((await untilPhase(session, 'idle')).lastText).toBe('again');
  await expectSound(stage, session);
});

test('pausing twice is one pause, resuming twice is one resume, by signals of a plain client', async () => {
  const { stage, session } = await work(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await untilPhase(session, 'idle');
  const handle = stage.client.workflow.getHandle(session.id);
  for (let cycle = 1; cycle <= 2; cycle++) {
    await handle.signal('pause', { by: 'ada' });
    await handle.signal('pause', { by: 'bob' });
    await untilPhase(session, 'paused');
    expect(await session.state()).toMatchObject({ paused: { by: 'ada' } });
    expect(await pauses(session)).toHaveLength(cycle);
    await handle.signal('resume', {});
    await handle.signal('resume', {});
    await handle.signal('resume');
    await untilPhase(session, 'idle');
  }
  const records = await pauses(session);
  expect(records).toMatchObject([{ by: 'ada' }, { by: 'ada' }]);
  for (const record of records as { pausedAt: string; resumedAt: string | null }[]) {
    expect(Date.parse(record.resumedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(record.pausedAt));
  }
  await session.send('alive');
  await until(session, ({ lastText }) => lastText === 'heard alive');
  await expectSound(stage, session);
});

test('a resume without a pause changes nothing', async () => {
  const { stage, session } = await work(() => ({ text: 'ok' }));
  await untilPhase(session, 'idle');
  const before = await session.snapshot();
  await session.resume();
  await session.resume();
  expect(await session.snapshot()).toEqual(before);
  await expectSound(stage, session);
});

test('a session that is started paused by a signal does nothing until it is resumed', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  const session = await stage.sessions.start('worker', { id: stage.id(), message: 'go' });
  await session.pause({ by: 'ada' });
  await stage.startWorker([
    defineAgent({ name: 'worker', model: stage.provider('m'), instructions: 'Work.' }),
  ]);
  await untilPhase(session, 'paused');
  expect(stage.model.requests).toHaveLength(0);
  await session.resume();
  expect((await untilPhase(session, 'idle')).lastText).toBe('ok');
  await expectSound(stage, session);
});

test('a cancel during a pause, a wait and a model call ends the session, and says by whom', async () => {
  const hanging = await work(() => ({ fault: 'hang' }));
  await hanging.stage.model.waitFor((requests) => requests.length === 1);
  await hanging.session.cancel({ by: 'ada', reason: 'enough' });
  expect(await hanging.session.result()).toMatchObject({ status: 'cancelled' });
  expect((await hanging.session.state()).status).toMatchObject({
    kind: 'cancelled',
    by: 'ada',
    reason: 'enough',
  });
  await expectSound(hanging.stage, hanging.session);

  const paused = await work(() => ({ text: 'ok' }));
  await untilPhase(paused.session, 'idle');
  await paused.session.pause();
  // With no worker both are there before the session ends; it refuses what comes later.
  await paused.worker.stop();
  await paused.session.cancel({ by: 'bob' });
  await paused.session.cancel({ by: 'eve' });
  await paused.stage.startWorker(paused.agents);
  expect(await paused.session.result()).toMatchObject({ status: 'cancelled', text: 'ok' });
  expect((await paused.session.state()).status).toMatchObject({ by: 'bob' });
  await expectSound(paused.stage, paused.session);

  const waiting = await work(() => ({ fault: 'status', status: 400 }));
  await untilPhase(waiting.session, 'waiting');
  await waiting.session.cancel();
  expect(await waiting.session.result()).toMatchObject({ status: 'cancelled' });
  await expectSound(waiting.stage, waiting.session);
});

test("Temporal's own cancellation is an orderly end, too", async () => {
  const { stage, session } = await work(() => ({ fault: 'hang' }));
  await stage.model.waitFor((requests) => requests.length === 1);
  await stage.client.workflow.getHandle(session.id).cancel();
  await expect
    .poll(async () => (await stage.client.workflow.getHandle(session.id).describe()).status.name)
    .toBe('CANCELLED');
  expect((await session.state()).status).toMatchObject({ kind: 'cancelled', by: 'temporal' });
  await expectSound(stage, session);
});

test.each(['cancelled', 'interrupted'])(
  'a write that a pause stopped while it ran, and that is then %s, is told as one that may have happened',
  async (how) => {
    const stage = await openStage(({ assistantCount, toolResults }) =>
      assistantCount === 0
        ? { toolCalls: [{ name: 'save', args: {} }] }
        : { text: toolResults.map(({ text }) => text).join('|') },
    );
    let started = (): void => {};
    const running = new Promise<void>((resolve) => {
      started = resolve;
    });
    const save = defineTool({
      inputSchema: z.object({}),
      effect: 'idempotent',
      execute: (_, { abortSignal }) =>
        new Promise((_, reject) => {
          abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
          started();
        }),
    });
    await stage.startWorker([
      defineAgent({
        name: 'worker',
        model: stage.provider('m'),
        instructions: 'Work.',
        tools: { save },
        heartbeat: '1s',
      }),
    ]);
    const session = await stage.sessions.start('worker', { id: stage.id(), message: 'go' });
    await running;
    await session.pause({ now: true });
    await expect
      .poll(async () => (await session.calls()).items, { timeout: 60_000 })
      .toMatchObject([{ status: { kind: 'ready' } }]);
    // Who goes back from here is told of it.
    const [now, ...past] = await new TemporalSaver(stage.client).list(session.id);
    const first = past.at(-1);
    expect(now && first && (await effectsSince(stage.client, first, now))).toMatchObject([
      { tool: 'save', again: 'repeated' },
    ]);
    const why = how === 'cancelled' ? 'The session was cancelled.' : 'A new message of the user came first.';
    const told = `${why} It was stopped after its dispatch, and may have happened`;
    if (how === 'cancelled') {
      await session.cancel();
      await session.result().catch(() => {});
    } else {
      await session.send({ text: 'leave it', mode: 'interrupt' });
      await session.resume();
      expect((await untilPhase(session, 'idle')).lastText).toBe(told);
    }
    expect((await session.calls()).items).toMatchObject([
      {
        status: { kind: 'failed', certain: false },
        result: { content: told, isError: true },
        dispatches: [{ outcome: 'unknown' }],
      },
    ]);
    await expectSound(stage, session);
  },
);
