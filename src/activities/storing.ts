/** Stores what a tool returned, from within its activity: the effect has happened, and waits to be recorded. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import { messageOf } from '../contract/errors.ts';
import type { ValueRef, ValueStore } from '../contract/values.ts';
import { type Value, Values } from '../values/index.ts';

/** The longest time that one value may take, in milliseconds. */
const STORE_MS = 30_000;
/** How much of the activity's time is left for reporting the result, in milliseconds. */
export const REPORT_MS = 1_500;
/** How long an activity tries even when its time is over, in milliseconds. */
const LEAST_MS = 500;
const BACKOFF = { firstMs: 250, maxMs: 4_000 };

/** Stores a value. It never throws: a store that cannot be used is a `problem`. */
export type Storing = (value: Value) => Promise<ValueRef | { problem: string }>;

/** Stores values for the session of an activity that begins now; `undefined` without a store. */
export function storingOf({ client, info }: Context, store: ValueStore | undefined): Storing | undefined {
  if (store === undefined) return undefined;
  const values = new Values(store, client);
  const sessionId = info.workflowExecution?.workflowId ?? '';
  const end = Date.now() + info.startToCloseTimeoutMs - REPORT_MS;
  return async (value) => {
    const stop = Math.max(Date.now() + LEAST_MS, Math.min(end, Date.now() + STORE_MS));
    let problem = 'it did not answer in time';
    for (let pause = BACKOFF.firstMs; Date.now() < stop; pause = Math.min(BACKOFF.maxMs, 2 * pause)) {
      const late = new AbortController();
      try {
        const stored = await Promise.race([
          values.put(value, sessionId),
          delay(stop - Date.now(), null, { signal: late.signal }),
        ]);
        if (stored !== null) return stored;
        break;
      } catch (error) {
        problem = messageOf(error);
      } finally {
        late.abort();
      }
      await delay(Math.min(pause, Math.max(0, stop - Date.now())));
    }
    return { problem: problem.slice(0, 200) };
  };
}
