/** Follows one session for all streams of it in this process. */
import type { Client } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import type { SessionState } from '../contract/state.ts';
import { Folder, type RunEnd } from '../history/index.ts';
import { isAnswering } from '../session/aside.ts';
import { sessionView } from '../session/views.ts';
import { sessionError } from '../temporal/errors.ts';
import { followPages } from '../temporal/follow-events.ts';
import { isNotFound, previousRun } from '../temporal/index.ts';
import { withEnd } from './ended.ts';
import { describeSession } from './read-session.ts';
import type { LivePart } from './stream-answer.ts';
import { LiveAnswer } from './stream-live.ts';
import {
  partsBetween,
  type RunCause,
  type SessionNews,
  type Told,
  toldOf,
  toldToNewcomer,
} from './stream-parts.ts';
import { type Cursor, firstRun, nextRun, parseCursor, presentHead, successorOf } from './stream-runs.ts';
import {
  type Batch,
  type DurablePart,
  type Head,
  type Rest,
  restOf,
  Subscription,
} from './stream-subscription.ts';

/** Parts that are kept for readers who reconnect while others read. */
const KEPT = 50;

/** How many parts wait at most for the fastest reader before more is read. A page of the history is read as a whole. */
export const readAhead = { parts: 1_000 };

interface Run {
  runId: string;
  cause?: RunCause;
}

const shared = new WeakMap<Client, Map<string, Follower>>();

/** Subscribes to a session, after a cursor or from now on. */
export function subscribe(
  client: Client,
  id: string,
  since: string | undefined,
  live: LiveChannel | undefined,
): Subscription {
  const all = shared.get(client) ?? new Map<string, Follower>();
  shared.set(client, all);
  const follower = all.get(id);
  const joined = follower?.join(since);
  if (joined !== undefined && joined !== null) return joined;
  const cursor = since === undefined || since === 'start' ? since : parseCursor(since);
  const gone = (): void => {
    if (all.get(id) === own) all.delete(id);
  };
  const own = new Follower(client, { id, since: cursor, live, gone });
  // A reader of the far past has a follower of its own.
  if (follower === undefined) all.set(id, own);
  return own.first;
}

class Follower {
  /** The subscription that this follower was made for. */
  readonly first: Subscription;
  readonly #client: Client;
  readonly #id: string;
  readonly #gone: () => void;
  readonly #stop = new AbortController();
  readonly #readers = new Set<Subscription>();
  /** New readers, who get the present state once it is known. */
  readonly #newcomers = new Set<Subscription>();
  readonly #live: LiveAnswer;
  #recent: DurablePart[] = [];
  /** The session's last event when following began. Once it is read, the present is known. */
  #head: Head = { runId: '', events: 0 };
  #isPresent = false;
  /** The last event that was read. */
  #read: Head = { runId: '', events: 0 };
  readonly #passed = new Set<string>();
  #isFolding = false;
  /** The parts after this cursor are sent; `now`: the parts after the present. */
  #from: Cursor | 'start' | 'now';
  #told: Told | null = null;
  #cursor = '';
  #state: SessionState | null = null;
  #rest: Rest = null;
  /** Reads on when a reader may have room again. */
  #goOn: () => void = () => undefined;
  /** Set after a rewind or reset: the new run's parts come in one go, without those of each past task. */
  #jump: RunCause | undefined;

  constructor(
    client: Client,
    {
      id,
      since,
      live,
      gone,
    }: {
      id: string;
      since: Cursor | 'start' | undefined;
      live: LiveChannel | undefined;
      gone: () => void;
    },
  ) {
    this.#client = client;
    this.#id = id;
    this.#gone = gone;
    this.#from = since ?? 'now';
    this.#live = new LiveAnswer(client, id, live, (part) => this.#push({ parts: [part] }));
    this.first = this.#subscription();
    (since === undefined ? this.#newcomers : this.#readers).add(this.first);
    void this.#run(since).then(
      () => this.#over({}),
      (error: unknown) => this.#over({ error: this.#known(error) }),
    );
  }

  /** Adds a reader. @returns `null` when this follower no longer has the parts after the cursor */
  join(since: string | undefined): Subscription | null {
    if (this.#stop.signal.aborted) return null;
    const at = this.#recent.findLastIndex(({ cursor }) => cursor === since);
    if (since !== undefined && (!this.#isPresent || at < 0)) return null;
    const reader = this.#subscription();
    (since === undefined ? this.#newcomers : this.#readers).add(reader);
    this.#goOn();
    if (since !== undefined) {
      const parts = this.#recent.slice(at + 1).flatMap((part) => [...textOf(part), part]);
      reader.push({ parts: [{ type: 'reset' }, ...parts, ...this.#live.said] });
    }
    void this.#admit(reader);
    return reader;
  }

  /** Finds the present for a reader who joins: what was just sent to the session may not be read yet. */
  async #admit(reader: Subscription): Promise<void> {
    try {
      reader.head = await presentHead(this.#client, this.#id);
      this.#tellRest();
    } catch (error) {
      reader.end({ error: this.#known(error) });
    }
  }

  #hasReached({ head }: Subscription): boolean {
    if (head === null || !this.#isPresent || this.#isFolding) return false;
    const { runId, events } = this.#read;
    return this.#passed.has(head.runId) || (head.runId === runId && head.events <= events);
  }

  #subscription(): Subscription {
    const leave = (reader: Subscription): void => {
      this.#readers.delete(reader);
      this.#newcomers.delete(reader);
      if (this.#readers.size + this.#newcomers.size === 0) this.#over({});
      this.#goOn();
    };
    return new Subscription(leave, () => this.#goOn());
  }

  /** Waits while every reader is far behind, so that a long history is not in memory for readers who do not read. */
  async #room(): Promise<void> {
    const isFull = (): boolean =>
      !this.#stop.signal.aborted &&
      this.#newcomers.size === 0 &&
      [...this.#readers].every(({ behind }) => behind > readAhead.parts);
    while (isFull()) {
      await new Promise<void>((resolve) => {
        this.#goOn = resolve;
      });
    }
  }

  #push(batch: Batch): void {
    for (const reader of this.#readers) reader.push(batch);
  }

  #over(end: { error?: Error }): void {
    this.#stop.abort();
    this.#gone();
    this.#live.stop();
    for (const reader of [...this.#readers, ...this.#newcomers]) reader.end(end);
  }

  #known(error: unknown): Error {
    if (!isNotFound(error)) return sessionError(this.#id, error) as Error;
    return new PerdureError('SESSION_NOT_FOUND', `There is no session ${this.#id}`, { cause: error });
  }

  async #run(since: Cursor | 'start' | undefined): Promise<void> {
    this.#head = await presentHead(this.#client, this.#id);
    this.first.head = this.#head;
    let run: Run | null = { runId: await firstRun(this.#client, this.#id, this.#head, since) };
    // The reader may hold a part of an answer, which is void.
    if (typeof since === 'object') this.first.push({ parts: [{ type: 'reset' }] });
    while (run !== null && !this.#stop.signal.aborted) run = await this.#follow(run);
  }

  /** Follows one run to its end. @returns the run after it */
  async #follow({ runId, cause }: Run): Promise<Run | null> {
    const execution = { workflowId: this.#id, runId };
    const folder = new Folder(this.#client.options, {
      runId,
      onTask: ({ eventId, state }) => this.#take({ runId, eventId }, state),
    });
    if (cause === 'rewound' || cause === 'reset') {
      this.#jump = cause;
      this.#isPresent = false;
    }
    const known = runId === this.#head.runId ? this.#head.events : 1;
    this.#passed.add(this.#read.runId);
    this.#read = { runId, events: 0 };
    for await (const page of followPages(this.#client, execution, known, this.#stop.signal)) {
      let { events } = page;
      this.#isFolding = true;
      if (this.#read.events === 0) {
        await folder.take(events.slice(0, 1));
        const start = folder.start();
        // This event has one part: the session goes on in this run. The reader has it, and knows the state.
        if (this.#fromIn(runId)?.eventId === 1 && previousRun(events[0]) !== null) this.#told = toldOf(start);
        this.#take({ runId, eventId: 1 }, start, cause);
        events = events.slice(1);
      }
      await folder.take(events);
      await folder.closeTask();
      this.#read = { runId, events: page.seen };
      this.#isFolding = false;
      const { end } = folder.result();
      if (!this.#isPresent && runId === this.#head.runId && page.seen >= this.#head.events) this.#arrive();
      if (end !== null) {
        await this.#room();
        return this.#after(end, nextRun(page.events));
      }
      this.#settle(folder.awaitsTask);
      await this.#room();
    }
    return null;
  }

  /** Takes the state after the task that event `eventId` completed. Event 1 stands for the state at the start. */
  #take(at: { runId: string; eventId: number }, state: SessionState, cause?: RunCause): void {
    this.#state = state;
    this.#cursor = `${at.runId}:${at.eventId}`;
    const isSilent = !this.#isPresent && (this.#from === 'now' || this.#jump !== undefined);
    if (isSilent) return;
    const from = this.#fromIn(at.runId);
    if (from === null || at.eventId >= from.eventId) {
      this.#tell(at, partsBetween(this.#told, state, cause));
    }
    this.#told = toldOf(state, this.#told);
  }

  /** The cursor that the stream began with, when it is in this run. */
  #fromIn(runId: string): Cursor | null {
    return typeof this.#from === 'object' && this.#from.runId === runId ? this.#from : null;
  }

  /** Sends the parts of an event that come after the cursor. */
  #tell({ runId, eventId }: { runId: string; eventId: number }, news: readonly SessionNews[]): void {
    const from = this.#fromIn(runId);
    const told = from?.eventId === eventId ? from.index : 0;
    const parts = news.map((part, i): DurablePart => ({ ...part, cursor: `${runId}:${eventId}:${i + 1}` }));
    for (const part of parts.slice(told)) this.#say(part);
  }

  #say(part: DurablePart): void {
    if (part.type === 'message' && part.role === 'assistant' && part.aside !== true)
      this.#live.finish(part.text);
    this.#recent.push(part);
    if (this.#recent.length > 2 * KEPT) this.#recent = this.#recent.slice(-KEPT);
    this.#push({ parts: [part] });
  }

  /** Called once the history is read up to the present. */
  #arrive(): void {
    this.#isPresent = true;
    const state = this.#state;
    const jump = this.#jump;
    if (state === null || (this.#from !== 'now' && jump === undefined)) return;
    this.#jump = undefined;
    if (jump !== undefined) {
      const news = partsBetween(this.#told, state, jump);
      const before = this.#recent.at(-1)?.cursor ?? '';
      // These parts are not of one task: a reader who is cut off between them cannot go on from there.
      for (const [i, part] of news.entries())
        this.#say({ ...part, cursor: i < news.length - 1 ? before : this.#cursor });
      // Who comes back from before the end of the jump is refused, as without an open stream.
      this.#recent = this.#recent.slice(-1);
    }
    this.#told = toldOf(state, this.#told);
  }

  #settle(awaitsTask: boolean): void {
    const state = this.#state;
    if (!this.#isPresent || state === null) return;
    const call = state.inFlight.find(({ kind }) => kind === 'model');
    this.#live.follow(call === undefined ? null : { runId: state.runId, activityId: String(call.seq) });
    this.#rest = awaitsTask || isAnswering(state) ? null : restOf(sessionView(state));
    this.#tellRest();
  }

  #tellRest(): void {
    this.#welcome([...this.#newcomers].filter((reader) => this.#hasReached(reader)));
    for (const reader of this.#readers) {
      if (this.#hasReached(reader)) reader.push({ parts: [], rest: this.#rest });
    }
  }

  /** Sends the present state to newcomers. */
  #welcome(newcomers: readonly Subscription[]): void {
    const state = this.#state;
    if (state === null || newcomers.length === 0) return;
    const news = partsBetween(toldToNewcomer(state), state);
    const parts = news.map((part, i): DurablePart => {
      return { ...part, cursor: i < news.length - 1 ? '' : this.#cursor };
    });
    for (const reader of newcomers) {
      reader.push({ parts: [...parts, ...this.#live.said] });
      this.#newcomers.delete(reader);
      this.#readers.add(reader);
    }
  }

  /** Finds the run that follows a run that has ended, or closes the stream. */
  async #after(end: RunEnd, next: string): Promise<Run | null> {
    const { runId } = this.#read;
    this.#live.follow(null);
    if (end === 'continued_as_new') {
      if (runId === this.#head.runId) this.#head = { runId: next, events: 1 };
      return { runId: next, cause: 'continued' };
    }
    const found = await successorOf(this.#client, this.#id, { runId, end });
    if (found !== null) {
      this.#head = found.head;
      return { runId: found.head.runId, cause: found.cause };
    }
    await this.#close();
    return null;
  }

  /** Sends the end of a session. If it was ended from outside, its history has no news of that. */
  async #close(): Promise<void> {
    const state = this.#state;
    if (state === null) return;
    this.#rest = 'closed';
    const execution = await describeSession(this.#client, this.#id);
    const view = await withEnd(this.#client, sessionView(state), execution);
    if (view.status.kind === 'ended') {
      for (const reader of this.#newcomers) this.#readers.add(reader);
      this.#newcomers.clear();
      const { runId, events: eventId } = this.#read;
      this.#tell({ runId, eventId }, [
        { type: 'closed', status: view.status },
        { type: 'phase', phase: 'closed', view: structuredClone(view) },
      ]);
    }
    this.#welcome([...this.#newcomers]);
    this.#push({ parts: [], rest: 'closed' });
  }
}

/** The text that comes before the message of an answer. */
function textOf(part: DurablePart): LivePart[] {
  const isAnswer =
    part.type === 'message' && part.role === 'assistant' && part.aside !== true && part.text !== '';
  return isAnswer ? [{ type: 'text', text: part.text }] : [];
}
