/** Puts the answer that a session is getting together from all its sources. Pure. */
import {
  addDelta,
  isOlder,
  type LiveDelta,
  type LiveListener,
  type LiveText,
} from '../contract/live-text.ts';

/** Pieces of an answer, and `reset`: what was said so far is void. */
export type LivePart = LiveDelta | { readonly type: 'reset' };

/** A source of an answer: this process, a channel, or heartbeats. */
export interface AnswerSource extends LiveListener {
  /** Takes the window of a heartbeat. */
  show(window: LiveText): void;
}

/**
 * An answer so far. Several sources may send it: a worker in this process and the channel send the same request, and a
 * worker that was frozen may go on with an older one. Only the first source of the newest request counts.
 */
export class AnswerSoFar {
  readonly #tell: (part: LivePart) => void;
  #said: LiveDelta[] = [];
  #request = '';
  #source: AnswerSource | null = null;

  constructor(tell: (part: LivePart) => void) {
    this.#tell = tell;
  }

  get said(): readonly LiveDelta[] {
    return [...this.#said];
  }

  get text(): string {
    return this.#said.map((delta) => (delta.type === 'text' ? delta.text : '')).join('');
  }

  /** Adds a source. */
  source(): AnswerSource {
    let told = '';
    const say = (delta: LiveDelta): void => {
      if (this.#source !== source || this.#request !== told) return;
      addDelta(this.#said, delta);
      this.#tell(delta);
    };
    const begin = (request: string): void => {
      told = request;
      if (request === this.#request || isOlder(request, this.#request)) return;
      this.drop();
      this.#request = request;
      this.#source = source;
    };
    const show = ({ attempt, request = 0, offset, text }: LiveText): void => {
      begin(`${attempt}.${request}`);
      const said = this.text;
      // The window may be beyond what was said: the gap comes with the whole answer.
      const rest = offset > said.length ? '' : text.slice(said.length - offset);
      if (rest !== '') say({ type: 'text', text: rest });
    };
    const source: AnswerSource = { begin, say, show };
    return source;
  }

  /** Ends with the recorded answer: sends the missing text, or all of it after a reset if other text was sent. */
  finish(whole: string): void {
    if (!whole.startsWith(this.text)) this.drop();
    const said = this.text.length;
    if (said < whole.length) this.#tell({ type: 'text', text: whole.slice(said) });
    this.#said = [];
    this.forget();
  }

  /** Voids what was said. */
  drop(): void {
    if (this.#said.length > 0) this.#tell({ type: 'reset' });
    this.#said = [];
  }

  /** Ignores all its sources from now on. */
  forget(): void {
    this.#request = '';
    this.#source = null;
  }
}
