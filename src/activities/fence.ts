import type { Context } from '@temporalio/activity';
import { PerdureError } from '../contract/errors.ts';
import { type Instant, instant } from './issued-calls.ts';

/** For how long a call that was the worker's own still is, before the server is asked again, in milliseconds. */
const FRESH_MS = 100;

/** Whether a call is still its worker's to make: asked of the server, or known because it was just issued here. */
export class Fence {
  readonly #context: Context;
  /** When the call was known to be ours. */
  #ours: Instant | undefined;

  /**
   * @param issued - when this process issued the call, if it did. The server has scheduled it after that, so it can
   * be nobody else's before a heartbeat of it is missed: as good as an answer of the server at that moment.
   */
  constructor(context: Context, issued?: Instant) {
    this.#context = context;
    this.#ours = issued;
  }

  /**
   * Passes while the call is ours: known for a moment, then asked. A moment is far less than what passes before
   * the server gives a silent call to another.
   *
   * @throws PerdureError `FENCED` when it was cancelled, paused, timed out, or given to another worker.
   */
  pass = async (): Promise<void> => {
    if (this.#context.cancellationSignal.aborted) throw fenced('the call was cancelled');
    const freshMs = Math.min(FRESH_MS, (this.#context.info.heartbeatTimeoutMs ?? 0) / 4);
    if (this.#ours !== undefined && elapsed(this.#ours) < freshMs) return;
    await this.#ask();
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

  async #ask(): Promise<void> {
    const { client, info } = this.#context;
    const asked = instant();
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
    this.#ours = asked;
  }
}

/** By the clock that says more; a wall clock that was set back says it too. */
function elapsed({ monotonic, wall }: Instant): number {
  return Math.max(performance.now() - monotonic, Math.abs(Date.now() - wall));
}

function fenced(reason: string, cause?: unknown): PerdureError {
  return new PerdureError(
    'FENCED',
    `The call may not go on: ${reason}.`,
    cause === undefined ? {} : { cause },
  );
}
