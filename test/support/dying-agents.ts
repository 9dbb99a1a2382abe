/** Agents of a worker that can be held with a workflow task open: while it decodes the task's input. */
import type { SessionWorkerOptions } from '../../src/index.ts';
import { breakpoint } from '../../src/testing/index.ts';

export { effects } from './effect-agents.ts';

export const workerOptions: Partial<SessionWorkerOptions> = {
  dataConverter: {
    payloadCodecs: [
      {
        encode: async (payloads) => payloads,
        decode: async (payloads) => {
          await breakpoint('task');
          return payloads;
        },
      },
    ],
  },
};
