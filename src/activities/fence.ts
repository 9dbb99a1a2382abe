import type { Context } from '@temporalio/activity';
import { PerdureError } from '../contract/errors.ts';

/** How long an answer of the server stands before a tool's own `fence()` asks again, in milliseconds. */
const FRESH_MS = 100;

/** Whether a call is still its worker's to make: asked of the server, never guessed from a clock. */
export class Fence {
  readonly #context: Context;
  #askedMonotonic = Number.NEGATIVE_INFINITY;
  #askedWall = Number.NEGATIVE_INFINITY;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Passes while the call is ours. The answer is remembered for a moment, on the monotonic and on the wall
   * clock, because a process that was stopped and woken notices it on one of them only.
   *
   * @throws PerdureError `FENCED` when it was cancelled, paused, timed out, or given to another worker.
   */
  pass = async (): Promise<void> => {
    if (this.#context.cancellationSignal.aborted) throw fenced('the call was cancelled');
    const fresh =
      performance.now() - this.#askedMonotonic < FRESH_MS &&
      Math.abs(Date.now() - this.#askedWall) < FRESH_MS;
    if (fresh) return;
    await this.ask();
  };

  /**
   * As {@link pass}, but without asking while the attempt is so young that no heartbeat of it can have been
   * missed: nobody else can have it by then. For calls that may not cost a question each time.
   *
   * @throws PerdureError `FENCED` as {@link pass}.
   */
  async passOnceOld(): Promise<void> {
    const { currentAttemptScheduledTimestampMs, heartbeatTimeoutMs = 0 } = this.#context.info;
    // Half of it, so that the clocks of worker and server may differ by as much.
    const age = Math.abs(Date.now() - currentAttemptScheduledTimestampMs);
    if (age > heartbeatTimeoutMs / 2) await this.pass();
  }

  /** Asks the server, whatever it said before. */
  async ask(): Promise<void> {
    const { client, info } = this.#context;
    const askedMonotonic = performance.now();
    const askedWall = Date.now();
    let answer: { cancelRequested?: boolean | null; activityPaused?: boolean | null };
    try {
      answer = await client.workflowService.recordActivityTaskHeartbeat({
        namespace: client.options.namespace,
        taskToken: info.taskToken,
      });
    } catch (error) {
      throw fenced('the server does not know the call any more, or could not be asked', error);
    }
    if (answer.cancelRequested === true) throw fenced('the call was cancelled');
    if (answer.activityPaused === true) throw fenced('the activity was paused');
    this.#askedMonotonic = askedMonotonic;
    this.#askedWall = askedWall;
  }
}

function fenced(reason: string, cause?: unknown): PerdureError {
  return new PerdureError(
    'FENCED',
    `The call may not go on: ${reason}.`,
    cause === undefined ? {} : { cause },
  );
}
