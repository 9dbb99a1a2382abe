/** The protocol of values in S3, in orders that a server would rarely see, with removals that are cut short anywhere. */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { S3Values } from '../../src/index.ts';
import type { S3Object } from '../../src/values/s3-bucket.ts';
import { textIn } from './support/store-behaviour.ts';

const world = vi.hoisted(() => {
  const objects = new Map<string, Uint8Array>();
  /** By stores: the requests that wait for their turns. */
  const waiting = new Map<object, (() => void)[]>();
  /** By stores: how many requests they have left, until they die. */
  const lives = new Map<object, number>();
  let ordered = false;
  return {
    objects,
    /** The requests that the next store makes before it dies. */
    life: Infinity,
    born(bucket: object): void {
      lives.set(bucket, this.life);
    },
    /** Resolves when it is the turn of a store's next request. For a dead store it never does. */
    async turn(bucket: object): Promise<void> {
      if (!ordered) return;
      const left = lives.get(bucket) ?? 0;
      lives.set(bucket, left - 1);
      await new Promise<void>((resolve) => {
        if (left > 0) waiting.set(bucket, [...(waiting.get(bucket) ?? []), resolve]);
      });
    },
    begin(): void {
      objects.clear();
      this.life = Infinity;
    },
    /** Runs what is begun: in each step some requests of one store. */
    async run(begin: () => void, steps: Iterator<[store: number, requests: number]>): Promise<void> {
      ordered = true;
      begin();
      const settled = (): Promise<void> => new Promise(setImmediate);
      await settled();
      while (waiting.size > 0) {
        const [store, requests] = steps.next().value as [number, number];
        const bucket = [...waiting.keys()][store % waiting.size] ?? {};
        for (let i = 0; i < requests; i++) {
          const [next, ...later] = waiting.get(bucket) ?? [];
          waiting.set(bucket, later);
          if (later.length === 0) waiting.delete(bucket);
          next?.();
          await settled();
        }
      }
      ordered = false;
    },
  };
});

/** A bucket in memory: a request happens at once, when it is its turn. */
vi.mock('../../src/values/s3-bucket.ts', () => ({
  S3Bucket: class {
    constructor() {
      world.born(this);
    }
    async write(key: string, bytes: Uint8Array): Promise<void> {
      await world.turn(this);
      world.objects.set(key, bytes);
    }
    async read(key: string): Promise<Uint8Array | null> {
      await world.turn(this);
      return world.objects.get(key) ?? null;
    }
    async has(key: string): Promise<boolean> {
      await world.turn(this);
      return world.objects.has(key);
    }
    async remove(...keys: string[]): Promise<void> {
      for (const key of keys) {
        await world.turn(this);
        world.objects.delete(key);
      }
    }
    /** Walks the keys one by one, as servers over a file system do: it may miss what comes or goes meanwhile. */
    async *list(beginning: string): AsyncGenerator<S3Object> {
      for (let last = ''; ; ) {
        await world.turn(this);
        const [next] = [...world.objects.keys()]
          .filter((key) => key.startsWith(beginning) && key > last)
          .sort();
        if (next === undefined) return;
        last = next;
        yield { key: next, bytes: world.objects.get(next)?.length ?? 0, storedAt: 1 };
      }
    }
  },
}));

const DIGEST = 'd'.repeat(64);
const BYTES = Buffer.from('the value');

/** A store that dies after some requests. */
function open(life = Infinity): S3Values {
  world.life = life;
  return new S3Values('s3://bucket');
}

/** An order in which a copy and its note leave while they are listed, so that the list shows the copy alone. */
function* listedMeanwhile(): Generator<[store: number, requests: number]> {
  yield* [
    [3, 8],
    [0, 5],
    [2, 8],
    [5, 1],
    [5, 5],
    [3, 6],
    [2, 3],
    [2, 5],
    [3, 6],
  ] as [number, number][];
  for (;;) yield [0, 8];
}

test('who has stored or shared a value has it, however others remove it, and at last nothing is left', async () => {
  const life = fc.oneof(fc.nat(9), fc.constant(Infinity));
  const steps = fc.infiniteStream(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 8 })));
  await fc.assert(
    fc.asyncProperty(steps, life, life, async (order, life1, life2) => {
      world.begin();
      const store = open();
      await store.put(DIGEST, BYTES, 'old');
      const [p, q, s] = [open(), open(), open()];
      const done: Promise<unknown>[] = [];
      await world.run(() => {
        done.push(s.share(DIGEST, 's'), p.put(DIGEST, BYTES, 'p'));
        done.push(q.put(DIGEST, BYTES, 'q').then(() => q.release(DIGEST, 'q')));
        void open(life1).release(DIGEST, 'old');
        void open(life2).release(DIGEST, null);
      }, order);
      const [isShared] = await Promise.all(done);
      expect(await store.has(DIGEST, 'p')).toBe(true);
      if (isShared === true) expect(await store.has(DIGEST, 's')).toBe(true);
      expect(await textIn(store, DIGEST)).toBe('the value');
      for (const owner of ['s', 'old', 'p']) await store.release(DIGEST, owner);
      expect([...world.objects.keys()]).toEqual([]);
    }),
    { numRuns: 2_000, examples: [[fc.stream(listedMeanwhile()), Infinity, Infinity]] },
  );
});
