/** The queue of a stream's reader. */
import { needsPerson } from '../contract/state.ts';
import type { SessionView } from '../contract/views.ts';
import type { LivePart } from './stream-answer.ts';
import type { SessionNews } from './stream-parts.ts';

/** A part that the history records. */
export type DurablePart = SessionNews & {
  /** To go on after this part: `stream({ since: cursor })`. Empty for parts of a present state, except the last. */
  cursor: string;
};

/** Where a session rests: `idle` has nothing to do, `rest` waits for somebody, `closed` has ended. `null`: it works. */
export type Rest = 'idle' | 'rest' | 'closed' | null;

/** Where a session rests, by its view. */
export function restOf({ phase, queued }: SessionView): Rest {
  if (phase === 'closed') return 'closed';
  if (phase === 'idle') return queued === 0 ? 'idle' : null;
  return needsPerson(phase) ? 'rest' : null;
}

/** What a subscriber gets at once. `rest` is absent while the session is not at rest or not read up to the present. */
export interface Batch {
  parts: (LivePart | DurablePart)[];
  rest?: Rest;
}

/** The last event of a session at a moment. */
export interface Head {
  runId: string;
  events: number;
}

/** A reader's queue. */
export class Subscription {
  /** Up to where the follower must read before it can tell this reader that the session rests. */
  head: Head | null = null;
  readonly #leave: () => void;
  readonly #taken: () => void;
  #batches: Batch[] = [];
  #parts = 0;
  #end: { error?: Error } | null = null;
  #wake: () => void = () => undefined;

  /** @param taken - called when the reader has taken a batch. */
  constructor(leave: (subscription: Subscription) => void, taken: () => void) {
    this.#leave = () => leave(this);
    this.#taken = taken;
  }

  /** How many parts the reader has not taken yet. */
  get behind(): number {
    return this.#parts;
  }

  push(batch: Batch): void {
    this.#batches.push(batch);
    this.#parts += batch.parts.length;
    this.#wake();
  }

  /** Ends it after what is in the queue. */
  end(end: { error?: Error }): void {
    this.#end ??= end;
    this.#wake();
  }

  close(): void {
    this.#batches = [];
    this.#parts = 0;
    this.end({});
    this.#leave();
  }

  /** The next batch, or `null` at the end. */
  async next(): Promise<Batch | null> {
    for (;;) {
      const batch = this.#batches.shift();
      if (batch !== undefined) {
        this.#parts -= batch.parts.length;
        this.#taken();
        return batch;
      }
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end !== null) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
