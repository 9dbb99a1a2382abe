/** What a read of a session asks of the server. */
import { expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('the state of an open session takes one description of its run, from a worker or from the history', async () => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  const agent = defineAgent({ name: 'host', model: stage.provider('m'), instructions: 'Greet.' });
  const worker = await stage.startWorker([agent]);
  const session = await stage.sessions.start('host', { id: stage.id(), message: 'hi' });
  await untilPhase(session, 'idle');
  const describes = vi.spyOn(stage.client.workflowService, 'describeWorkflowExecution');
  expect((await session.state()).phase).toBe('idle');
  expect(describes).toHaveBeenCalledTimes(1);
  await worker.stop();
  describes.mockClear();
  expect((await session.state()).phase).toBe('idle');
  expect(describes).toHaveBeenCalledTimes(1);
});
