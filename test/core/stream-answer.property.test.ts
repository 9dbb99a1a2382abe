/** What readers see of an answer, in any order of what tells it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AnswerSoFar, type AnswerSource, type LivePart } from '../../src/client/stream-answer.ts';
import {
  addDelta,
  type LiveDelta,
  type LiveListener,
  type LiveText,
  type LiveWriter,
  liveWindow,
} from '../../src/contract/live-text.ts';
import { LiveSource, listen } from '../../src/temporal/live-channel.ts';

/** A channel that is behind: it carries one thing at a time, in the order in which it got them, and keeps the last request. */
class SlowChannel {
  readonly #under: ((to: LiveListener) => void)[] = [];
  #request = '';
  #said: LiveDelta[] = [];
  #listener: LiveListener | null = null;

  writer(): LiveWriter {
    let own = '';
    return {
      begin: (request) => {
        own = request;
        this.#under.push((to) => {
          this.#request = request;
          this.#said = [];
          to.begin(request);
        });
      },
      say: (delta) => {
        const request = own;
        this.#under.push((to) => {
          if (request !== this.#request) return;
          addDelta(this.#said, delta);
          to.say(delta);
        });
      },
      end: () => undefined,
    };
  }

  read(listener: LiveListener): () => void {
    this.#listener = listener;
    if (this.#request !== '') listener.begin(this.#request);
    for (const delta of this.#said) listener.say(delta);
    return () => {
      this.#listener = null;
    };
  }

  carry(): void {
    const nobody: LiveListener = { begin: () => undefined, say: () => undefined };
    this.#under.shift()?.(this.#listener ?? nobody);
  }
}

/** An attempt of a model call. One that was superseded may run on. */
interface Attempt {
  number: number;
  request: number;
  text: string;
  writers: LiveWriter[];
  isHere: boolean;
  isOver: boolean;
}

let keys = 0;

class World {
  readonly wrong: string[] = [];
  readonly #key = { runId: 'run', activityId: String(keys++) };
  readonly #channel: SlowChannel | null;
  readonly #attempts: Attempt[] = [];
  /** All that a request has said, by its name. */
  readonly #texts = new Map<string, string>();
  #described: LiveText | null = null;
  /** Parts that the reader has not taken, and what it has on its screen. */
  readonly #queue: LivePart[] = [];
  #screen = '';
  readonly #answer = new AnswerSoFar((part) => this.#queue.push(part));
  #heartbeats: AnswerSource | null = null;
  #leave: (() => void) | null = null;

  constructor(hasChannel: boolean) {
    this.#channel = hasChannel ? new SlowChannel() : null;
  }

  /** An attempt begins, in this process or elsewhere. */
  attempt(isHere: boolean): void {
    const writers: LiveWriter[] = isHere ? [new LiveSource(this.#key)] : [];
    if (this.#channel !== null) writers.push(this.#channel.writer());
    const number = this.#attempts.length + 1;
    this.#attempts.push({ number, request: -1, text: '', writers, isHere, isOver: false });
    this.begin(0);
  }

  /** The `back`th last attempt asks a model, perhaps another one than before. */
  begin(back: number): void {
    const attempt = this.#running(back);
    if (attempt === null) return;
    attempt.request += 1;
    attempt.text = '';
    for (const writer of attempt.writers) writer.begin(nameOf(attempt));
  }

  say(back: number, length: number): void {
    const attempt = this.#running(back);
    if (attempt === null) return;
    if (length === 0) {
      for (const writer of attempt.writers) writer.say({ type: 'reasoning', text: 'hm' });
      return;
    }
    // A text that no other request has a beginning of.
    const text = `[${nameOf(attempt)}:${attempt.text.length}]🦀${'ź'.repeat(length)}`;
    attempt.text += text;
    this.#texts.set(nameOf(attempt), attempt.text);
    for (const writer of attempt.writers) writer.say({ type: 'text', text });
  }

  end(back: number): void {
    const attempt = this.#running(back);
    if (attempt === null) return;
    attempt.isOver = true;
    for (const writer of attempt.writers) writer.end();
  }

  #running(back: number): Attempt | null {
    const attempt = this.#attempts.at(-1 - back);
    return attempt?.isOver === false ? attempt : null;
  }

  /** The server gets a heartbeat. It takes those of the last attempt only. */
  heartbeat(): void {
    const attempt = this.#attempts.at(-1);
    if (attempt !== undefined) this.#described = liveWindow(attempt.number, attempt.text, attempt.request);
  }

  /** A look at the heartbeats is answered. What it found may be old by now. */
  look(): void {
    if (this.#described !== null) this.#heartbeats?.show(this.#described);
  }

  carry(count: number): void {
    for (let n = 0; n < count; n++) this.#channel?.carry();
  }

  /** The reader follows the call, perhaps late. */
  follow(): void {
    if (this.#leave !== null) return;
    const stop = listen(this.#key, this.#answer.source());
    const leave = this.#channel?.read(this.#answer.source());
    if (this.#channel === null) this.#heartbeats = this.#answer.source();
    this.#leave = () => {
      stop();
      leave?.();
    };
  }

  /** The reader takes what there is. */
  read(): void {
    for (const part of this.#queue.splice(0)) {
      if (part.type === 'reset') this.#screen = '';
      if (part.type === 'text') this.#screen += part.text;
      const wholes = [...this.#texts.values()];
      const isBeginning = wholes.some((text) => text.startsWith(this.#screen));
      if (this.#screen !== '' && !isBeginning) this.wrong.push(`no answer begins with ${this.#screen}`);
    }
  }

  /** The last attempt is recorded. */
  finish(): void {
    this.follow();
    this.read();
    const last = this.#attempts.at(-1);
    const whole = last?.text ?? '';
    // What this process says is complete.
    if (last?.isHere === true && !last.isOver) this.#expect(whole);
    for (const { writers } of this.#attempts) for (const writer of writers) writer.end();
    this.#answer.finish(whole);
    this.#leave?.();
    this.read();
    this.#expect(whole);
  }

  #expect(whole: string): void {
    if (this.#screen !== whole) this.wrong.push(`${this.#screen} is not ${whole}`);
  }
}

function nameOf({ number, request }: Attempt): string {
  return `${number}.${request}`;
}

const back = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2) });
const step = fc.oneof(
  { weight: 1, arbitrary: fc.boolean().map((isHere) => (world: World) => world.attempt(isHere)) },
  { weight: 1, arbitrary: back.map((which) => (world: World) => world.begin(which)) },
  {
    weight: 6,
    arbitrary: fc.tuple(back, fc.oneof(fc.nat(9), fc.constant(4_500))).map(
      ([which, length]) =>
        (world: World) =>
          world.say(which, length),
    ),
  },
  { weight: 1, arbitrary: back.map((which) => (world: World) => world.end(which)) },
  { weight: 2, arbitrary: fc.constant((world: World) => world.heartbeat()) },
  { weight: 2, arbitrary: fc.constant((world: World) => world.look()) },
  { weight: 4, arbitrary: fc.nat(20).map((count) => (world: World) => world.carry(count)) },
  { weight: 1, arbitrary: fc.constant((world: World) => world.follow()) },
  { weight: 2, arbitrary: fc.constant((world: World) => world.read()) },
);

test('in any order of attempts, losses, late readers and slow ones, a screen is the beginning of one answer', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(step, { maxLength: 100, size: 'max' }), (hasChannel, steps) => {
      const world = new World(hasChannel);
      for (const run of steps) run(world);
      world.finish();
      expect(world.wrong).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

test('an attempt that was superseded and asks another model does not take the place of its successor', () => {
  const world = new World(false);
  world.attempt(true);
  world.attempt(true);
  world.say(0, 5);
  world.begin(1);
  world.say(1, 5);
  world.say(0, 5);
  world.finish();
  expect(world.wrong).toEqual([]);
});
