import type { Context } from '@temporalio/activity';
import { PerdureError } from '../contract/errors.ts';
import { isNotFound } from '../temporal/index.ts';
import { encodeToPayloads } from '../temporal/sdk-internals.ts';
import { type Instant, instant } from './issued-calls.ts';

/** For how long a call that was the worker's own still is, before the server is asked again, in milliseconds. */
const FRESH_MS = 100;

/**
 * Whether a call is still its worker's to make: asked of the server, or known because it was just issued here.
 *
 * What is known is a lease. The server gives a call that is silent for its heartbeat time-out to another; so a worker
 * that has not been heard for as long, however alive, has to stop by itself: {@link held}.
 */
export class Fence {
  readonly #context: Context;
  readonly #lost = new AbortController();
  /** When the call was known to be ours. */
  #ours: Instant | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #asking = false;
  readonly #details: unknown;

  /**
   * @param issued - when this process issued the call, if it did. The server has scheduled it after that, so it can
   * be nobody else's before a heartbeat of it is missed: as good as an answer of the server at that moment.
   * @param details - the heartbeat details to send with each question.
   */
  constructor(
    context: Context,
    { issued, details }: { issued?: Instant | undefined; details?: unknown } = {},
  ) {
    this.#context = context;
    this.#ours = issued;
    this.#details = details;
  }

  /** Aborts once the server does not know the call any more, or may have given it to another. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Passes while the call is ours: known for a moment, then asked. A moment is far less than what passes before
   * the server gives a silent call to another.
   *
   * @param stop - what ends the attempt besides; default: its cancellation
   * @throws PerdureError `FENCED` when it was cancelled, paused, timed out, or given to another worker.
   */
  async pass(stop: AbortSignal = this.#context.cancellationSignal): Promise<void> {
    if (this.#context.cancellationSignal.aborted) throw fenced('the call was cancelled');
    if (stop.aborted) throw fenced('it timed out, or the server may have given it to another worker');
    const freshMs = Math.min(FRESH_MS, this.#heartbeatMs / 4);
    if (this.#ours !== undefined && elapsed(this.#ours) < freshMs) return;
    await this.#ask();
  }

  /** Keeps the lease while `run` runs, once {@link pass} has passed. */
  async held<T>(run: () => Promise<T>): Promise<T> {
    // A call whose silence the server does not mind is given to nobody.
    if (this.#heartbeatMs === 0) return run();
    this.#expireLater();
    const renewals = setInterval(() => void this.#renew(), this.#heartbeatMs / 4);
    try {
      return await run();
    } finally {
      clearInterval(renewals);
      clearTimeout(this.#expiry);
    }
  }

  /**
   * As {@link pass}, but without asking while the attempt is so young that no heartbeat of it can have been
   * missed: nobody else can have it by then. For calls that may not cost a question each time.
   *
   * @throws PerdureError `FENCED` as {@link pass}.
   */
  async passOnceOld(): Promise<void> {
    // Half of it, so that the clocks of worker and server may differ by as much.
    const age = Math.abs(Date.now() - this.#context.info.currentAttemptScheduledTimestampMs);
    if (age > this.#heartbeatMs / 2) await this.pass();
  }

  get #heartbeatMs(): number {
    return this.#context.info.heartbeatTimeoutMs ?? 0;
  }

  async #renew(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      await this.#ask();
    } catch (error) {
      // No answer leaves what was known; a cancellation comes with Temporal's own heartbeats.
      if (isNotFound((error as Error).cause)) this.#lost.abort();
    } finally {
      this.#asking = false;
    }
  }

  /** By the clock that a stopped process sees go on: a worker that wakes too late is stopped before all else. */
  #expireLater(): void {
    clearTimeout(this.#expiry);
    if (this.#ours === undefined) return;
    const leftMs = Math.max(0, this.#heartbeatMs - elapsed(this.#ours));
    this.#expiry = setTimeout(() => this.#lost.abort(), leftMs);
  }

  async #ask(): Promise<void> {
    const { client, info } = this.#context;
    const { namespace, loadedDataConverter } = client.options;
    const payloads =
      this.#details === undefined ? [] : await encodeToPayloads(loadedDataConverter, this.#details);
    const asked = instant();
    let answer: { cancelRequested?: boolean | null; activityPaused?: boolean | null };
    try {
      answer = await client.workflowService.recordActivityTaskHeartbeat({
        namespace,
        taskToken: info.taskToken,
        details: { payloads: payloads ?? [] },
      });
    } catch (error) {
      throw fenced('the server no longer knows the call, or did not answer', error);
    }
    if (answer.cancelRequested === true) throw fenced('the call was cancelled');
    if (answer.activityPaused === true) throw fenced('the activity was paused');
    this.#ours = asked;
    if (this.#expiry !== undefined) this.#expireLater();
  }
}

/** By the clock that says more; a wall clock that was set back says it too. */
function elapsed({ monotonic, wall }: Instant): number {
  return Math.max(performance.now() - monotonic, Math.abs(Date.now() - wall));
}

function fenced(reason: string, cause?: unknown): PerdureError {
  return new PerdureError('FENCED', `The call must stop: ${reason}.`, cause === undefined ? {} : { cause });
}
