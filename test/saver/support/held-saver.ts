/** A saver whose first write stops on its way. */
import { Client } from '@temporalio/client';
import { TemporalSaver } from '../../../src/index.ts';
import type { Threads } from './threads.ts';

/**
 * A saver whose first write waits, once it knows all that it goes by, until it is let go; `reached` is when it waits.
 */
export function heldSaver(threads: Threads): {
  saver: TemporalSaver;
  reached: Promise<void>;
  release: () => void;
} {
  let [reach, release] = [(): void => undefined, (): void => undefined];
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const client = new Client({
    connection: threads.client.connection,
    namespace: threads.client.options.namespace,
    interceptors: {
      workflow: [
        {
          startUpdateWithStart: async (input, next) => {
            reach();
            await released;
            return next(input);
          },
        },
      ],
    },
  });
  return { saver: new TemporalSaver(client, { taskQueue: threads.taskQueue }), reached, release };
}
