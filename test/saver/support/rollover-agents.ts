/** The module of worker processes that can be held wherever a thread rolls over. */
import type { InjectedSinks } from '@temporalio/worker';
import { type DefinedAgent, defineAgent, type SessionWorkerOptions } from '../../../src/index.ts';
import { breakpoint } from '../../../src/testing/index.ts';
import type { RolloverSinks } from './rollover-interceptors.ts';

/** A worker has at least one; nobody starts it. */
export const nobody: DefinedAgent = defineAgent({
  name: 'nobody',
  model: 'scripted',
  instructions: 'Nothing.',
});

const sinks: InjectedSinks<RolloverSinks> = {
  // What a workflow task has come to is sent when its sinks have returned: here it is held back.
  rollover: { at: { fn: (_, place) => breakpoint(place), callDuringReplay: false } },
};

export const workerOptions: Partial<SessionWorkerOptions> = {
  workflowBundle: { codePath: process.env['ROLLOVER_BUNDLE'] ?? '' },
  sinks,
};
