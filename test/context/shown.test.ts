/** Where a session's context is stored and shown, and where it is not. */
import { inspect } from 'node:util';
import { Runtime } from '@temporalio/worker';
import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import { defineAgent, TemporalSaver } from '../../src/index.ts';
import { runCheckpoint } from '../../src/saver/records/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('a context is in checkpoints and run records; neither the model nor the log of its worker gets it', async () => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  const logged = vi.spyOn(Runtime.instance().logger, 'log');
  const context = z.object({ userId: z.string(), seat: z.number() });
  const agent = defineAgent({ name: 'host', model: stage.provider('m'), instructions: 'Greet.', context });
  await stage.startWorker([agent]);
  const given = { userId: 'u-secret', seat: 7 };
  const session = await stage.sessions.start(agent, { id: stage.id(), context: given, message: 'hi' });
  await untilPhase(session, 'idle');
  const checkpoint = await new TemporalSaver(stage.client).get(session.id);
  expect(checkpoint?.state).toMatchObject({ context: given });
  expect(checkpoint && runCheckpoint(checkpoint)).toMatchObject({ payload: { context: { session: given } } });

  // Why it waits is logged, with the field and without a value.
  const misfit = { id: stage.id(), context: { userId: 'u-secret' }, message: 'hi' };
  await untilPhase(await stage.sessions.start('host', misfit), 'waiting');
  await expect.poll(() => inspect(logged.mock.calls, { depth: 8 })).toContain('context.seat: ');
  expect(inspect(logged.mock.calls, { depth: 8 })).not.toContain('u-secret');
  expect(JSON.stringify(stage.model.requests)).not.toContain('u-secret');
});
