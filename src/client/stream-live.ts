/** Reads live text: from a worker in this process, or from other workers by a channel or by heartbeats. */
import type { Client } from '@temporalio/client';
import type { LiveChannel, LiveDelta, LiveKey, LiveText } from '../contract/live-text.ts';
import { isLiveHere, listen } from '../temporal/live-channel.ts';
import { activityContext, liveCoding } from '../temporal/payloads.ts';
import { decodeOptionalSinglePayload } from '../temporal/sdk-internals.ts';
import { AnswerSoFar, type LivePart } from './stream-answer.ts';

/** Pause between two looks at the heartbeats of a model call in another process, in milliseconds. */
const LOOK_MS = 250;
/** The pause when the last looks have found nothing new, in milliseconds. */
const SLOW_LOOK_MS = 1_000;

/** Follows the answer that a session is getting, wherever it comes from. */
export class LiveAnswer {
  readonly #client: Client;
  readonly #sessionId: string;
  readonly #channel: LiveChannel | undefined;
  readonly #answer: AnswerSoFar;
  #key: LiveKey | null = null;
  #leave: () => void = () => undefined;

  constructor(
    client: Client,
    sessionId: string,
    channel: LiveChannel | undefined,
    tell: (part: LivePart) => void,
  ) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#channel = channel;
    this.#answer = new AnswerSoFar(tell);
  }

  /** What was said so far. */
  get said(): readonly LiveDelta[] {
    return this.#answer.said;
  }

  /** Follows the model call that is in flight, or none. */
  follow(key: LiveKey | null): void {
    if (key?.runId === this.#key?.runId && key?.activityId === this.#key?.activityId) return;
    this.stop();
    // The previous call has ended without a reply.
    this.#answer.drop();
    this.#key = key;
    if (key !== null) this.#leave = this.#listen(key);
  }

  /** Ends with the recorded answer: sends the missing text, or all of it after a reset if other text was sent. */
  finish(whole: string): void {
    this.#answer.finish(whole);
    this.stop();
  }

  /** Stops listening. */
  stop(): void {
    this.#leave();
    this.#leave = () => undefined;
    this.#key = null;
    this.#answer.forget();
  }

  #listen(key: LiveKey): () => void {
    const stop = listen(key, this.#answer.source());
    const coding = liveCoding(this.#client.options, this.#sessionId, key);
    const leave = this.#channel?.read(key, coding, this.#answer.source()) ?? this.#look(key);
    return () => {
      leave();
      stop();
    };
  }

  /** Looks at the heartbeats again and again. @returns a function that stops it */
  #look(key: LiveKey): () => void {
    const source = this.#answer.source();
    let pause = LOOK_MS;
    let timer: NodeJS.Timeout | undefined;
    const look = async (): Promise<void> => {
      const before = this.#answer.text;
      const window = isLiveHere(key)
        ? null
        : await heartbeatOf(this.#client, this.#sessionId, key).catch(() => null);
      if (this.#key !== key) return;
      if (window !== null) source.show(window);
      // The call may wait for a worker, or think for long.
      pause = this.#answer.text === before ? Math.min(pause * 1.5, SLOW_LOOK_MS) : LOOK_MS;
      timer = setTimeout(() => void look(), pause);
    };
    timer = setTimeout(() => void look(), pause);
    return () => clearTimeout(timer);
  }
}

async function heartbeatOf(client: Client, sessionId: string, key: LiveKey): Promise<LiveText | null> {
  const { raw } = await client.workflow.getHandle(sessionId, key.runId).describe();
  const activity = raw.pendingActivities?.find(({ activityId }) => activityId === key.activityId);
  const payload = activity?.heartbeatDetails?.payloads?.[0];
  if (payload === undefined) return null;
  const { loadedDataConverter, namespace } = client.options;
  const context = activityContext(namespace, sessionId, key.activityId);
  const decoded = await decodeOptionalSinglePayload<LiveText>(loadedDataConverter, payload, context);
  return decoded ?? null;
}
