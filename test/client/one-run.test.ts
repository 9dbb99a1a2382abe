/** A handle of one run of a session that went on in others. */
import { expect, test } from 'vitest';
import { defineAgent, Session } from '../../src/index.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';

test('answers for its run, from a worker and from the history', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const agent = defineAgent({
    name: 'roller',
    model: stage.provider('m'),
    instructions: 'Listen.',
    runTurns: 1,
  });
  const worker = await stage.startWorker([agent]);
  const session = await stage.sessions.start('roller', { id: stage.id(), message: 'one' });
  const { runId } = await untilPhase(session, 'idle');
  await session.send('two');
  await until(session, (view) => view.runId !== runId && view.phase === 'idle');
  const first = new Session(stage.client, session.id, runId);
  const live = await first.state();
  expect(live).toMatchObject({ runId, lastText: 'heard one' });

  await worker.stop();
  expect(await first.state()).toEqual(live);
  expect((await first.snapshot()).runId).toBe(runId);
  expect(await first.read()).toMatchObject({ source: 'history', view: live, run: 'continued_as_new' });
  expect(await first.cursor()).toMatch(new RegExp(`^${runId}:`));
  expect((await session.state()).runId).not.toBe(runId);
});
