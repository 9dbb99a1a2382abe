import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { isFinal, type ToolCall } from '../contract/calls.ts';
import type { LiveText } from '../contract/live-text.ts';
import { ACTIVITY } from '../contract/names.ts';
import type { Notice, Phase } from '../contract/state.ts';
import type { CallsPage, PageInput, SessionView, TranscriptPage } from '../contract/views.ts';
import { decodeOptionalSinglePayload } from '../temporal/sdk-internals.ts';

/** A part of a live session. */
export type StreamPart =
  /** More of the answer's text. */
  | { type: 'text'; text: string }
  /** The text so far is void, because the attempt is repeated. */
  | { type: 'reset' }
  /** The answer is recorded. This is its whole text. */
  | { type: 'message'; id: string; text: string }
  /** Something people may want to see, such as a call that was answered from the record of an equal one. */
  | { type: 'notice'; notice: Notice }
  /** A tool call that is new or has changed. */
  | { type: 'call'; call: ToolCall }
  /** What the session does now. */
  | { type: 'phase'; phase: Phase; view: SessionView };

/** Pause between two looks at a running session, in milliseconds. */
const LOOK_MS = 200;

/** Phases in which nothing happens without a person. */
const RESTING: ReadonlySet<Phase> = new Set([
  'idle',
  'approval',
  'unknown_effect',
  'waiting',
  'paused',
  'closed',
]);

/** What a stream reads besides heartbeats. */
interface Source {
  readonly id: string;
  state(): Promise<SessionView>;
  transcript(page: PageInput): Promise<TranscriptPage>;
  calls(page: PageInput): Promise<CallsPage>;
}

/** Follows a session live until it rests. */
export async function* streamSession(
  client: Client,
  session: Source,
  { signal }: { signal?: AbortSignal },
): AsyncGenerator<StreamPart> {
  let phase: Phase | undefined;
  let seen = (await session.transcript({ limit: 0 })).total;
  let noticed: ReadonlySet<string> | undefined;
  const reader = new WindowReader();
  const calls = new CallWatch(session);
  await calls.begin();
  while (signal?.aborted !== true) {
    const live = await liveText(client, session.id);
    if (live !== undefined) yield* reader.read(live);
    const view = await session.state();
    if (view.messages > seen) {
      const page = await session.transcript({ limit: view.messages - seen });
      seen = page.total;
      for (const { id, role, blocks } of page.items) {
        if (role !== 'assistant') continue;
        const text = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])).join('');
        yield* reader.finish(text);
        if (text !== '') yield { type: 'message', id, text };
      }
    }
    for (const notice of view.notices) {
      if (noticed?.has(JSON.stringify(notice)) === false) yield { type: 'notice', notice };
    }
    noticed = new Set(view.notices.map((notice) => JSON.stringify(notice)));
    for (const call of await calls.changed(view.calls)) yield { type: 'call', call };
    if (view.phase !== phase) {
      phase = view.phase;
      yield { type: 'phase', phase, view };
    }
    // An idle session takes queued messages at once. Other rests last.
    if (RESTING.has(view.phase) && (view.queued === 0 || view.phase !== 'idle')) return;
    await delay(LOOK_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

/** Finds the tool calls that have changed. */
class CallWatch {
  readonly #session: Source;
  /** The index of the first open call. Calls before it do not change. */
  #from = 0;
  readonly #seen = new Map<string, string>();

  constructor(session: Source) {
    this.#session = session;
  }

  /** Skips the calls that have ended. */
  async begin(): Promise<void> {
    const { items, first, total } = await this.#session.calls({});
    const open = items.findIndex((call) => !isFinal(call));
    this.#from = open < 0 ? total : first + open;
  }

  async changed(total: number): Promise<ToolCall[]> {
    if (total <= this.#from) return [];
    const { items, first } = await this.#session.calls({ limit: total - this.#from });
    const changed = items.filter((call) => {
      const now = JSON.stringify([call.status, call.dispatches, call.decision, call.resolutions]);
      const same = this.#seen.get(call.id) === now;
      this.#seen.set(call.id, now);
      return !same;
    });
    const open = items.findIndex((call) => !isFinal(call));
    this.#from = open < 0 ? first + items.length : first + open;
    for (const call of items.slice(0, this.#from - first)) this.#seen.delete(call.id);
    return changed;
  }
}

/** Follows the sliding window of one answer. */
class WindowReader {
  #attempt = 0;
  #text = '';

  *read({ attempt, offset, text }: LiveText): Generator<StreamPart> {
    if (attempt !== this.#attempt) {
      if (this.#text !== '') yield { type: 'reset' };
      this.#attempt = attempt;
      this.#text = '';
    }
    if (offset > this.#text.length) {
      // The window is beyond our text: the gap comes with the whole message.
      return;
    }
    yield* this.#grow(this.#text.slice(0, offset) + text);
  }

  /** Shows the rest of a recorded answer, or all of it again when the windows showed another attempt. */
  *finish(whole: string): Generator<StreamPart> {
    if (!whole.startsWith(this.#text)) {
      yield { type: 'reset' };
      this.#text = '';
    }
    yield* this.#grow(whole);
    this.#attempt = 0;
    this.#text = '';
  }

  *#grow(whole: string): Generator<StreamPart> {
    if (whole.length <= this.#text.length) return;
    yield { type: 'text', text: whole.slice(this.#text.length) };
    this.#text = whole;
  }
}

async function liveText(client: Client, sessionId: string): Promise<LiveText | undefined> {
  const { raw } = await client.workflow.getHandle(sessionId).describe();
  const model = raw.pendingActivities?.find(({ activityType }) => activityType?.name === ACTIVITY.model);
  const payload = model?.heartbeatDetails?.payloads?.[0];
  if (payload === undefined) return undefined;
  const decoded = await decodeOptionalSinglePayload<LiveText>(client.options.loadedDataConverter, payload);
  return decoded ?? undefined;
}
