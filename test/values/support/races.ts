/** Runs calls of a store at once, in orders that a real store would rarely see, with removals that are cut short anywhere. */
import { AsyncLocalStorage } from 'node:async_hooks';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { ValueStore } from '../../../src/index.ts';
import { listed, textIn } from './store-behaviour.ts';

/** In this step a process makes so many requests. A process that waits for none is passed over. */
export type Step = [process: number, requests: number];

class Process {
  readonly #waiting: (() => void)[] = [];
  /** Resolves when the process has ended or is dead. */
  readonly over: Promise<void>;
  /** How many requests it makes before it dies. */
  #life: number;
  #die: () => void = () => undefined;

  constructor(run: () => Promise<unknown>, life = Infinity) {
    this.#life = life;
    const dead = new Promise<void>((resolve) => {
      this.#die = resolve;
    });
    this.over = Promise.race([running.run(this, run).then(() => undefined), dead]);
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#life-- > 0) this.#waiting.push(resolve);
      else this.#die();
    });
  }

  next(): void {
    this.#waiting.shift()?.();
  }
}

const running = new AsyncLocalStorage<Process>();

/** Resolves when it is the turn of this process's next request. What no process requests has its turn at once. */
export async function turn(): Promise<void> {
  await running.getStore()?.wait();
}

/** Runs processes until all have ended or are dead, also if one fails. All that they await is a {@link turn}. */
async function interleave(processes: readonly Process[], order: Iterator<Step>): Promise<void> {
  const ends = processes.map(({ over }) => over);
  const end = Promise.allSettled(ends);
  const settled = (): Promise<void> => new Promise(setImmediate);
  await settled();
  while (processes.some(({ isWaiting }) => isWaiting)) {
    const [index, requests] = order.next().value as Step;
    const process = processes[index];
    for (let i = 0; i < requests && process?.isWaiting === true; i++) {
      process.next();
      await settled();
    }
  }
  await end;
  await Promise.all(ends);
}

/** These steps, and then all processes in a circle. */
function* withRest(steps: readonly Step[]): Generator<Step> {
  yield* steps;
  for (let i = 0; ; i++) yield [i % PROCESSES, 8];
}

const DIGEST = 'd'.repeat(64);
const BYTES = Buffer.from('the value');
const PROCESSES = 5;

/** A store for one run. */
export interface Raced {
  store: ValueStore;
  /** Makes all that is stored old, for a store with a clock. */
  age?: () => void;
  /** What is left in it. */
  left: () => readonly string[];
}

/**
 * Who has stored or shared a value has it, however others remove it, and it is young. At last nothing is left.
 *
 * @param known - orders in which a store once failed. Processes 0 and 1 share and store the value, 2 stores and removes
 * it, 3 and 4 remove it.
 */
export async function expectNoneLost(open: () => Raced, runs: number, ...known: Step[][]): Promise<void> {
  const life = fc.oneof(fc.nat(14), fc.constant(Infinity));
  const step = fc.tuple(fc.nat(PROCESSES - 1), fc.integer({ min: 1, max: 8 }));
  const steps = fc.array(step, { maxLength: 40, size: 'max' });
  await fc.assert(
    fc.asyncProperty(steps, life, life, async (order, life3, life4) => {
      const { store, age, left } = open();
      await store.put(DIGEST, BYTES, 'old');
      age?.();
      const expectIts = async (owner: string): Promise<void> => {
        expect(await store.has(DIGEST, owner)).toBe(true);
        expect(await textIn(store, DIGEST)).toBe('the value');
      };
      const put = async (owner: string): Promise<void> => {
        await store.put(DIGEST, BYTES, owner);
        await expectIts(owner);
      };
      let isShared = false;
      const share = async (): Promise<void> => {
        isShared = await store.share(DIGEST, 's');
        if (isShared) await expectIts('s');
      };
      const processes = [
        new Process(share),
        new Process(() => put('p')),
        new Process(() => put('q').then(() => store.release(DIGEST, 'q'))),
        new Process(() => store.release(DIGEST, 'old'), life3),
        new Process(() => store.release(DIGEST, null), life4),
      ];
      await interleave(processes, withRest(order));
      await expectIts('p');
      if (isShared) await expectIts('s');
      expect((await listed(store))[0]?.storedAt).toBeGreaterThan(0);
      for (const owner of ['s', 'old']) expect(await store.release(DIGEST, owner)).toBe(false);
      expect(await store.release(DIGEST, 'p')).toBe(true);
      expect(left()).toEqual([]);
    }),
    { numRuns: runs, examples: known.map((order) => [order, Infinity, Infinity]) },
  );
}
