/** What went wrong elsewhere when another process took over. `docs/comparison.md` says where. */
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool, Sessions } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

/** How many redeploys hit each call: more than any of our own bounds on attempts. */
const REDEPLOYS = 4;

test('a resume that opens another session', async () => {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'pay', args: { cents: 5 } }] },
      ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
      { text: 'And again.' },
    ]),
  );
  const pay = defineTool({
    inputSchema: z.object({ cents: z.number() }),
    needsApproval: true,
    execute: ({ cents }) => `paid ${cents}`,
  });
  const agent = defineAgent({
    name: 'payer',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: { pay },
  });
  const first = await stage.startWorker([agent]);
  const id = stage.id();
  const { runId } = await untilPhase(
    await stage.sessions.start('payer', { id, message: { text: 'pay', id: 'm1' } }),
    'approval',
  );
  await first.stop();

  // Another worker, another connection, and a client that knows nothing but the id.
  await stage.startWorker([agent]);
  const { address, namespace } = inject('temporal');
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  const client = new Client({ connection, namespace });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const session = sessions.get(id);
  await decide(session, 'call_1_0', { decision: 'approve' });
  await untilPhase(session, 'idle');
  // A client that starts it again, as one does that cannot know, gets the same one, and its message counts once.
  const same = await sessions.start('payer', {
    id,
    message: { text: 'pay', id: 'm1' },
    onExisting: 'use',
  });
  await same.resume();
  await same.send('more');
  expect(same.id).toBe(id);
  expect(await until(same, ({ lastText }) => lastText === 'And again.')).toMatchObject({
    runId,
    messages: 6,
  });
  await expectSound(stage, same);

  // An id that is wrong is an error, and makes no session.
  const stranger = sessions.get(`${id}-typo`);
  for (const act of [() => stranger.resume(), () => stranger.send('hi'), () => stranger.state()]) {
    expect(await rejection(act())).toMatchObject({ code: 'SESSION_NOT_FOUND' });
  }
  expect(await rejection(client.workflow.getHandle(stranger.id).describe())).toMatchObject({
    name: 'WorkflowNotFoundError',
  });
});

/** Deploys again and again, each time as soon as `held` says that the call is in the worker's hands. */
async function redeploy(
  stage: Stage,
  agent: DefinedAgent,
  held: (times: number) => Promise<unknown>,
): Promise<void> {
  for (let i = 1; i <= REDEPLOYS; i++) {
    // No grace: a call that takes longer than the grace is what every deploy hits.
    const worker = await stage.startWorker([agent], { shutdownGraceTime: 1 });
    await held(i);
    await worker.stop();
  }
  await stage.startWorker([agent]);
}

test.each(['read', 'idempotent', 'mutate'] as const)(
  'a redeploy that burns the retry budget of a tool: %s',
  async (effect) => {
    const stage = await openStage(
      scriptedTurns([
        { toolCalls: [{ name: 'slow', args: {} }] },
        ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
      ]),
    );
    let started = 0;
    const slow = defineTool<object, string>({
      inputSchema: z.object({}),
      effect,
      settle: 0,
      execute: (_, { abortSignal }) => {
        if (++started > REDEPLOYS) return 'done';
        return new Promise((_resolve, reject) => {
          abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
        });
      },
      ...(effect === 'mutate' ? { verify: () => ({ outcome: 'absent' as const }) } : {}),
    });
    const agent = defineAgent({
      name: 'slow',
      model: stage.provider('m'),
      instructions: 'Go.',
      tools: { slow },
    });
    const session = await stage.sessions.start('slow', { id: stage.id(), message: 'go' });
    await redeploy(stage, agent, async (i) => {
      await expect.poll(() => started, { interval: 20 }).toBe(i);
    });
    expect(await untilPhase(session, 'idle', 'waiting', 'unknown_effect')).toMatchObject({
      phase: 'idle',
      lastText: 'done',
    });
    expect(started).toBe(REDEPLOYS + 1);
    const { state } = await expectSound(stage, session);
    // Nobody can tell of an idempotent call that was stopped while it ran.
    const stopped = effect === 'idempotent' ? 'unknown' : 'absent';
    // A read has nothing to lose: no word is kept of how its worker stopped.
    const released = effect === 'read' ? undefined : true;
    expect(state?.calls[0]?.dispatches.map((dispatch) => [dispatch.outcome, dispatch.released])).toEqual([
      ...Array.from({ length: REDEPLOYS }, () => [stopped, released]),
      ['returned', undefined],
    ]);
  },
);

test('a redeploy that burns the retry budget of a model call', async () => {
  const stage = await openStage(({ repeat }) =>
    repeat < REDEPLOYS ? { fault: 'hang', afterChunks: 1 } : { text: 'done' },
  );
  const agent = defineAgent({ name: 'slow', model: stage.provider('m'), instructions: 'Go.' });
  const session = await stage.sessions.start('slow', { id: stage.id(), message: 'go' });
  await redeploy(stage, agent, (i) => stage.model.waitFor((requests) => requests.length === i));
  expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ phase: 'idle', lastText: 'done' });
  expect(stage.model.requests).toHaveLength(REDEPLOYS + 1);
  await expectSound(stage, session);
});
