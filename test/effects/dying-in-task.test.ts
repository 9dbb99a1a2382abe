/** Workers die with a session's workflow task open: the healthy one after them has it soon, and who asks is told why not yet. */
import { expect, inject, onTestFinished, test } from 'vitest';
import { whyUnanswered } from '../../src/temporal/unanswered.ts';
import { createHarness } from '../../src/testing/index.ts';

const DEATHS = 9;

test('a worker is killed nine times in a session`s workflow task: the healthy one has it soon', async () => {
  const harness = await createHarness({
    module: new URL('../support/dying-agents.ts', import.meta.url),
    server: inject('temporal'),
    script: [{ text: 'Hello.' }],
  });
  onTestFinished(() => harness.stop());
  const session = await harness.startSession('effects', { message: 'Hi.' });
  for (let death = 1; death <= DEATHS; death++) {
    const worker = await harness.startWorkerProcess({ breakAt: ['task'] });
    await worker.reached('task');
    await worker.crash();
  }
  const asked = { workflowId: session.id, what: `session ${session.id}`, askedMs: Date.now() };
  const why = await whyUnanswered(harness.client, asked);
  expect(why).toMatchObject({ code: expect.stringMatching(/^(WORKER_LOST|NO_WORKER)$/) });
  expect(why.details).toMatchObject({ task: { attempt: expect.any(Number) } });

  await harness.startWorkerProcess();
  // With the pauses of an untuned server it would wait for longer than this does.
  const { lastText } = await harness.until(session, 'idle');
  expect(lastText).toBe('Hello.');
}, 180_000);
