/** Heartbeats of an activity that has not asked a model yet. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import { defined } from '../contract/json.ts';
import type { LiveText } from '../contract/live-text.ts';
import type { NoReplyReason } from '../contract/model-call.ts';
import { QUERY } from '../contract/names.ts';
import { recordDetails } from './heartbeats.ts';

/** What takes longer than this before the model is asked is marked in heartbeats. */
const LONG_MS = 1_000;
/** The SDK sends its heartbeat at once. The mark follows it, so a successor finds the mark. */
const MARK_AFTER_MS = 100;
/** How long the session may take to say whether it wants a reply. */
const ASK_MS = 1_000;

/**
 * The part of an activity before it asks a model: it reads the transcript, runs reads, loads files.
 *
 * After {@link LONG_MS} its heartbeats say `reading`: a successor that finds this knows that no model was asked, so
 * `asking` is recorded before it is. Until then a successor cannot know. Only this class sends `reading`, one request
 * after the other, and none after `asking`.
 */
export class Unasked {
  /** What the heartbeats say of reads. */
  reads: () => Pick<LiveText, 'reads' | 'running'>;
  readonly #context: Context;
  /** Whether a successor can conclude that no model was asked. */
  #isMarked: boolean;
  /** Whether a mark got no answer: it may be recorded after later ones. */
  #isUnsure = false;
  #marking: Promise<unknown> = Promise.resolve();

  /** @param before - the heartbeat details of the previous attempt */
  constructor(context: Context, { reads, stage }: Partial<LiveText>) {
    this.#context = context;
    this.#isMarked = stage === 'reading';
    this.reads = () => defined({ reads });
  }

  /** Runs this part with its heartbeats. */
  async during<T>(run: () => Promise<T>): Promise<T> {
    const every = this.#heartbeatMs / 4;
    const sign = (): void => this.#sign();
    const first = setTimeout(sign, Math.min(LONG_MS, every));
    const signs = setInterval(sign, every);
    try {
      return await run();
    } finally {
      clearTimeout(first);
      clearInterval(signs);
      await this.#marking;
    }
  }

  /**
   * Ends this part: a model is asked next.
   *
   * @param hasRead - the session decides again after its reads, and is asked whether it wants a reply
   * @returns why no model may be asked, or `null`
   */
  async pass(hasRead: boolean): Promise<Extract<NoReplyReason, 'not_wanted' | 'cancelled'> | null> {
    if (!this.#isMarked) return null;
    if (this.#isUnsure || (hasRead && !(await this.#isWanted()))) return 'not_wanted';
    return this.#markAsking();
  }

  get #heartbeatMs(): number {
    return this.#context.info.heartbeatTimeoutMs ?? 10_000;
  }

  /** Sends a heartbeat of the SDK, which brings cancellations, and then the mark. */
  #sign(): void {
    this.#context.heartbeat(this.#details());
    this.#isMarked = true;
    this.#marking = this.#marking
      .then(async () => {
        await delay(MARK_AFTER_MS);
        await recordDetails(this.#context, { ...this.#details(), stage: 'reading' });
      })
      .catch(() => {
        this.#isUnsure = true;
      });
  }

  #details(): LiveText {
    const { attempt } = this.#context.info;
    return { attempt, offset: 0, text: '', ...this.reads() };
  }

  /** Asks the session. No answer in time counts as a no. */
  async #isWanted(): Promise<boolean> {
    const { client, info } = this.#context;
    const { workflowId = '', runId } = info.workflowExecution ?? {};
    const send = (): void => this.#context.heartbeat(this.#details());
    const signs = setInterval(send, this.#heartbeatMs / 4);
    try {
      return await client.withDeadline(Date.now() + ASK_MS, () =>
        client.workflow.getHandle(workflowId, runId).query<boolean>(QUERY.wantsReply),
      );
    } catch {
      return false;
    } finally {
      clearInterval(signs);
    }
  }

  async #markAsking(): Promise<'not_wanted' | 'cancelled' | null> {
    // The SDK sends this with its next heartbeat, too.
    this.#context.heartbeat({ ...this.#details(), stage: 'asking' });
    try {
      const answer = await recordDetails(this.#context, { ...this.#details(), stage: 'asking' });
      if (answer.cancelRequested === true) return 'cancelled';
      return answer.activityPaused === true ? 'not_wanted' : null;
    } catch {
      return 'not_wanted';
    }
  }
}
