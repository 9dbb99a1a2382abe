/** A replay does not ask the thread of the sandbox for calls of sinks, see `worker/sdk-internals.ts`. */
import { VMWorkflowThreadProxy } from '@temporalio/worker/lib/workflow/threaded-vm.js';
import { expect, onTestFinished, test, vi } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('a worker asks for calls of sinks after each workflow task of its own, and after none that it replays', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  const agents = [defineAgent({ name: 'quiet', model: stage.provider('m'), instructions: 'Answer.' })];
  const first = await stage.startWorker(agents);
  const session = await stage.sessions.start('quiet', { id: stage.id(), message: 'one' });
  await untilPhase(session, 'idle');
  await first.stop();

  const activate = vi.spyOn(VMWorkflowThreadProxy.prototype, 'activate');
  const ask = vi.spyOn(VMWorkflowThreadProxy.prototype, 'getAndResetSinkCalls');
  onTestFinished(() => void vi.restoreAllMocks());
  // In a thread, as it is by default.
  await stage.startWorker(agents, { debugMode: false });
  await session.send('two');
  await untilPhase(session, 'idle');
  const replayed = activate.mock.calls.filter(([{ isReplaying }]) => isReplaying);
  expect(replayed.length).toBeGreaterThan(0);
  expect(ask).toHaveBeenCalledTimes(activate.mock.calls.length - replayed.length);
});
