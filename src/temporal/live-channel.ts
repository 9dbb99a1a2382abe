/** What the model calls of this process say, for streams in the same process. It may be lost: the history has the answer. */
import type { LiveDelta } from '../contract/live-text.ts';

/** Which model call: the activity of a run. */
export interface LiveKey {
  runId: string;
  activityId: string;
}

/** Hears an answer. */
export interface LiveListener {
  /** A request begins. When its name differs from the last, what was said before is void. */
  begin(request: string): void;
  say(delta: LiveDelta): void;
}

interface Answer {
  request: string;
  said: LiveDelta[];
}

const answers = new Map<string, Answer>();
const listeners = new Map<string, Set<LiveListener>>();

/** The end of the channel that a model call writes to. */
export class LiveSource implements LiveListener {
  readonly #key: string;
  #own: Answer | null = null;

  constructor(key: LiveKey) {
    this.#key = keyOf(key);
  }

  begin(request: string): void {
    this.#own = { request, said: [] };
    answers.set(this.#key, this.#own);
    for (const listener of listeners.get(this.#key) ?? []) listener.begin(request);
  }

  say(delta: LiveDelta): void {
    // Another attempt may have taken its place.
    if (this.#own === null || answers.get(this.#key) !== this.#own) return;
    addDelta(this.#own.said, delta);
    for (const listener of listeners.get(this.#key) ?? []) listener.say(delta);
  }

  end(): void {
    if (answers.get(this.#key) === this.#own) answers.delete(this.#key);
    this.#own = null;
  }
}

/** Whether this process has the model call. */
export function isLiveHere(key: LiveKey): boolean {
  return answers.has(keyOf(key));
}

/** Listens to a model call of this process: to what it has said, and then to the rest. @returns what ends it */
export function listen(key: LiveKey, listener: LiveListener): () => void {
  const name = keyOf(key);
  const all = listeners.get(name) ?? new Set();
  listeners.set(name, all.add(listener));
  const answer = answers.get(name);
  if (answer !== undefined) {
    listener.begin(answer.request);
    for (const delta of answer.said) listener.say(delta);
  }
  return () => {
    all.delete(listener);
    if (all.size === 0 && listeners.get(name) === all) listeners.delete(name);
  };
}

/** Adds a piece to what was said: pieces of one text become one. */
export function addDelta(said: LiveDelta[], delta: LiveDelta): void {
  const last = said.at(-1);
  const isSame =
    last?.type === delta.type &&
    (last.type !== 'tool_input' || delta.type !== 'tool_input' || last.id === delta.id);
  if (last !== undefined && isSame) last.text += delta.text;
  else said.push({ ...delta });
}

function keyOf({ runId, activityId }: LiveKey): string {
  return `${runId}/${activityId}`;
}
