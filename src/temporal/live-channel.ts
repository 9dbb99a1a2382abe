/** Carries live text of model calls to streams in the same process. It may be lost: the history has the reply. */
import {
  addDelta,
  isOlder,
  type LiveDelta,
  type LiveKey,
  type LiveListener,
  type LiveWriter,
} from '../contract/live-text.ts';

interface Answer {
  request: string;
  said: LiveDelta[];
}

const answers = new Map<string, Answer>();
const listeners = new Map<string, Set<LiveListener>>();

/** The end of the channel that a model call writes to. */
export class LiveSource implements LiveWriter {
  readonly #key: string;
  #own: Answer | null = null;

  constructor(key: LiveKey) {
    this.#key = keyOf(key);
  }

  begin(request: string): void {
    const other = answers.get(this.#key);
    // An earlier attempt of the activity may still run. Its text is dropped.
    this.#own = other !== undefined && isOlder(request, other.request) ? null : { request, said: [] };
    if (this.#own === null) return;
    answers.set(this.#key, this.#own);
    for (const listener of listeners.get(this.#key) ?? []) listener.begin(request);
  }

  say(delta: LiveDelta): void {
    // Another attempt may have taken the place of this one.
    if (this.#own === null || answers.get(this.#key) !== this.#own) return;
    addDelta(this.#own.said, delta);
    for (const listener of listeners.get(this.#key) ?? []) listener.say(delta);
  }

  end(): void {
    if (answers.get(this.#key) === this.#own) answers.delete(this.#key);
    this.#own = null;
  }
}

/** Whether this process runs the model call. */
export function isLiveHere(key: LiveKey): boolean {
  return answers.has(keyOf(key));
}

/** Listens to a model call of this process, from the beginning of its text. @returns a function that stops it */
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

function keyOf({ runId, activityId }: LiveKey): string {
  return `${runId}/${activityId}`;
}
