import type { Context } from '@temporalio/activity';
import { PerdureError } from '../contract/errors.ts';
import { isNotFound } from '../temporal/index.ts';
import { encodeDetails, type HeartbeatAnswer, recordHeartbeat } from './heartbeats.ts';
import { type Instant, instant } from './issued-calls.ts';

/** How long the server's answer about a call is trusted, in milliseconds. */
const FRESH_MS = 100;

/**
 * Checks whether a call still belongs to this worker: it asks the server, or knows because this process has just issued
 * the call.
 *
 * The answer is a lease. Without a heartbeat for the heartbeat time-out, the server gives the call to another worker.
 * So a worker that could not reach the server for that long must stop by itself: {@link held}.
 */
export class Fence {
  readonly #context: Context;
  readonly #lost = new AbortController();
  /** When the call was last known to be ours. */
  #ours: Instant | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #asking = false;
  readonly #details: unknown;

  /**
   * @param issued - when this process issued the call, if it did. The server scheduled the call after that, so no other
   * worker can have it before a heartbeat is missed. This is as good as the server's answer at that moment.
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

  /** Aborts once the server no longer knows the call, or may have given it to another worker. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Resolves while the call is ours. An answer is trusted for {@link FRESH_MS}, far less than the server waits before
   * it gives a call to another worker.
   *
   * @param stop - what else ends the attempt. Default: its cancellation.
   * @throws PerdureError `FENCED` when the call was cancelled, paused, timed out or given to another worker, and when
   * the server does not answer.
   */
  async pass(stop: AbortSignal = this.#context.cancellationSignal): Promise<void> {
    if (this.#context.cancellationSignal.aborted) throw fenced('the call was cancelled');
    if (stop.aborted) throw fenced('it timed out, or the server may have given it to another worker');
    const freshMs = Math.min(FRESH_MS, this.#heartbeatMs / 4);
    if (this.#ours !== undefined && elapsed(this.#ours) < freshMs) return;
    await this.#ask();
  }

  /** Renews the lease while `run` runs. Call it after {@link pass}. */
  async held<T>(run: () => Promise<T>): Promise<T> {
    // Without a heartbeat time-out, the server gives the call to no other worker.
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
   * Like {@link pass}, but without a request while the attempt is too young to have missed a heartbeat: no other worker
   * can have it yet.
   *
   * @throws PerdureError `FENCED`, as {@link pass} does.
   */
  async passOnceOld(): Promise<void> {
    // The other half of the time-out allows for a difference between the clocks of worker and server.
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
      // Without an answer, the lease stays as it is. A cancellation arrives with Temporal's own heartbeats.
      if (isNotFound((error as Error).cause)) this.#lost.abort();
    } finally {
      this.#asking = false;
    }
  }

  /** Aborts when the lease ends. After a freeze, this timer fires before anything else runs. */
  #expireLater(): void {
    clearTimeout(this.#expiry);
    if (this.#ours === undefined) return;
    const leftMs = Math.max(0, this.#heartbeatMs - elapsed(this.#ours));
    this.#expiry = setTimeout(() => this.#lost.abort(), leftMs);
  }

  async #ask(): Promise<void> {
    const payloads = this.#details === undefined ? [] : await encodeDetails(this.#context, this.#details);
    const asked = instant();
    let answer: HeartbeatAnswer;
    try {
      answer = await recordHeartbeat(this.#context, payloads);
    } catch (error) {
      throw fenced('the server no longer knows the call, or did not answer', error);
    }
    if (answer.cancelRequested === true) throw fenced('the call was cancelled');
    if (answer.activityPaused === true) throw fenced('the activity was paused');
    this.#ours = asked;
    if (this.#expiry !== undefined) this.#expireLater();
  }
}

/** The larger of two clocks' differences, so that neither a freeze nor a changed wall clock hides time. */
function elapsed({ monotonic, wall }: Instant): number {
  return Math.max(performance.now() - monotonic, Math.abs(Date.now() - wall));
}

function fenced(reason: string, cause?: unknown): PerdureError {
  return new PerdureError('FENCED', `The call must stop: ${reason}.`, cause === undefined ? {} : { cause });
}
