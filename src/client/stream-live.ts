/** What the model says at this moment: from a worker in this process, or from one elsewhere by a channel or its heartbeats. */
import type { Client } from '@temporalio/client';
import {
  addDelta,
  type LiveChannel,
  type LiveDelta,
  type LiveKey,
  type LiveText,
} from '../contract/live-text.ts';
import { isLiveHere, listen } from '../temporal/live-channel.ts';
import { activityContext, liveCoding } from '../temporal/payloads.ts';
import { decodeOptionalSinglePayload } from '../temporal/sdk-internals.ts';

/** Pause between two looks at the heartbeats of a model call elsewhere, in milliseconds. */
const LOOK_MS = 250;
/** The same, when the last looks have found nothing new. */
const SLOW_LOOK_MS = 1_000;

/** Pieces of an answer, and `reset`: what was said so far is void. */
export type LivePart = LiveDelta | { type: 'reset' };

/** The answer that a session is getting. */
export class LiveAnswer {
  readonly #client: Client;
  readonly #sessionId: string;
  readonly #channel: LiveChannel | undefined;
  readonly #tell: (part: LivePart) => void;
  #key: LiveKey | null = null;
  #stop: () => void = () => undefined;
  #request = '';
  #said: LiveDelta[] = [];

  constructor(
    client: Client,
    sessionId: string,
    channel: LiveChannel | undefined,
    tell: (part: LivePart) => void,
  ) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#channel = channel;
    this.#tell = tell;
  }

  /** What was said so far. */
  get said(): LiveDelta[] {
    return this.#said.map((delta) => ({ ...delta }));
  }

  get #text(): string {
    return this.#said.map((delta) => (delta.type === 'text' ? delta.text : '')).join('');
  }

  /** Follows the model call that is in flight, or none. */
  follow(key: LiveKey | null): void {
    if (key?.runId === this.#key?.runId && key?.activityId === this.#key?.activityId) return;
    this.stop();
    // The call before has ended without a reply.
    this.#void();
    this.#key = key;
    if (key !== null) this.#stop = this.#listen(key);
  }

  /** The answer is recorded. Its text follows as far as it was not said, and is said anew if something else was. */
  finish(whole: string): void {
    if (!whole.startsWith(this.#text)) this.#void();
    const said = this.#text.length;
    if (said < whole.length) this.#tell({ type: 'text', text: whole.slice(said) });
    this.#said = [];
    this.stop();
  }

  /** Hears no more. */
  stop(): void {
    this.#stop();
    this.#stop = () => undefined;
    this.#key = null;
    this.#request = '';
  }

  #listen(key: LiveKey): () => void {
    /** The requests that this process makes. The channel may tell them once more. */
    const own = new Set<string>();
    const stop = listen(key, {
      begin: (request) => {
        own.add(request);
        this.#begin(request);
      },
      say: (delta) => this.#say(delta),
    });
    const leave = this.#channel === undefined ? this.#look(key) : this.#hear(this.#channel, key, own);
    return () => {
      leave();
      stop();
    };
  }

  /** Hears the channel. @returns what ends it */
  #hear(channel: LiveChannel, key: LiveKey, own: ReadonlySet<string>): () => void {
    let isOther = false;
    return channel.read(key, liveCoding(this.#client.options, this.#sessionId, key), {
      begin: (request) => {
        isOther = !own.has(request);
        if (isOther) this.#begin(request);
      },
      say: (delta) => {
        if (isOther) this.#say(delta);
      },
    });
  }

  /** Looks at the heartbeats. @returns what ends it */
  #look(key: LiveKey): () => void {
    let pause = LOOK_MS;
    let timer: NodeJS.Timeout | undefined;
    const look = async (): Promise<void> => {
      const before = this.#text;
      const window = isLiveHere(key)
        ? null
        : await heartbeatOf(this.#client, this.#sessionId, key).catch(() => null);
      if (this.#key !== key) return;
      if (window !== null && !isLiveHere(key)) this.#read(window);
      // The call may wait for a worker, or think for long.
      pause = this.#text === before ? Math.min(pause * 1.5, SLOW_LOOK_MS) : LOOK_MS;
      timer = setTimeout(() => void look(), pause);
    };
    timer = setTimeout(() => void look(), pause);
    return () => clearTimeout(timer);
  }

  #read({ attempt, request = 0, offset, text }: LiveText): void {
    this.#begin(`${attempt}.${request}`);
    const said = this.#text;
    // The window is beyond what was said: the gap comes with the whole answer.
    if (offset > said.length) return;
    const whole = said.slice(0, offset) + text;
    if (whole.length > said.length) this.#say({ type: 'text', text: whole.slice(said.length) });
  }

  #begin(request: string): void {
    if (request !== this.#request) this.#void();
    this.#request = request;
  }

  #say(delta: LiveDelta): void {
    addDelta(this.#said, delta);
    this.#tell(delta);
  }

  #void(): void {
    if (this.#said.length > 0) this.#tell({ type: 'reset' });
    this.#said = [];
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
