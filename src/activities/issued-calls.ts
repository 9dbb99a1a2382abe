import { LRUCache } from 'lru-cache';
import type { ToolInput } from '../contract/activities.ts';

/** A moment on both clocks of the process, in milliseconds. Only one of them shows that the process was frozen. */
export interface Instant {
  monotonic: number;
  wall: number;
}

/** Now, on both clocks. */
export function instant(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}

/** More calls than can be in flight to a worker. For a forgotten call the worker asks the server. */
const KEPT = 2_000;

/** A call that this process has issued itself. */
export interface IssuedHere {
  at: Instant;
  /** Whether its run is the first of its session, so that no reset can have left effects behind. */
  firstRun: boolean;
}

/**
 * The mutating calls that this process has issued, so that it recognises them when they arrive as activities.
 *
 * A call is noted before its workflow task completes, and found by a mark in its input. So a call that arrives with the
 * mark was scheduled by this process, after the noted moment. If two workers ran the same workflow task, there are two
 * marks, and the history has one of them.
 *
 * Figure: a turn with a mutation is two Actions of Temporal Cloud with the marks, and three without. The third asks the
 * server whether the call still belongs to this worker (`npm run bench -- --only actions`).
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
