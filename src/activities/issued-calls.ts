import { LRUCache } from 'lru-cache';
import type { ToolInput } from '../contract/activities.ts';

/** A moment on both clocks of the process, in milliseconds. A process that was stopped and woken notices it on one only. */
export interface Instant {
  monotonic: number;
  wall: number;
}

/** Now, on both clocks. */
export function instant(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}

/** More calls than can be on their way to a worker's activities. For a forgotten call the worker asks the server. */
const KEPT = 2_000;

/** A call that this process has issued itself. */
export interface IssuedHere {
  at: Instant;
  /** Whether its run is known to be the first of its session: a reset begins another one with what a run has done. */
  firstRun: boolean;
}

/**
 * The mutating calls that this process has issued, so that it recognises them when they arrive as activities.
 *
 * Noted before the workflow task that issues a call is completed, and found by a mark that is in the call's input:
 * the call that arrives is then the one that was scheduled by this process, after the moment noted. A workflow task
 * that two workers have carried out, one of them too late, has two marks, of which the history took one.
 *
 * Figure: a turn with a mutation is two Actions of Temporal Cloud with the marks, and three without: the third asks the
 * server whether the call is still this worker's (`npm run bench -- --only actions`).
 */
export class IssuedCalls {
  readonly #calls = new LRUCache<string, IssuedHere & { mark: number }>({ max: KEPT });

  /** Notes a call that the workflow is about to issue. */
  note(
    { runId, firstExecutionRunId }: { runId: string; firstExecutionRunId: string },
    { activityId, mark }: { activityId: string; mark: number },
  ): void {
    const firstRun = runId === firstExecutionRunId;
    this.#calls.set(`${runId} ${activityId}`, { mark, at: instant(), firstRun });
  }

  /** Takes what this process knows about a call that it issued; `undefined` for any other call. */
  take(runId: string, activityId: string, { issueMark }: ToolInput): IssuedHere | undefined {
    const key = `${runId} ${activityId}`;
    const noted = this.#calls.get(key);
    this.#calls.delete(key);
    return noted !== undefined && noted.mark === issueMark ? noted : undefined;
  }
}
