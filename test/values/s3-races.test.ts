/** The protocol of values in S3. */
import { expect, test, vi } from 'vitest';
import { S3Values } from '../../src/index.ts';
import type { S3Object } from '../../src/values/s3-bucket.ts';
import { expectNoneLost, type Step } from './support/races.ts';

const objects = vi.hoisted(() => new Map<string, Uint8Array>());

/** A bucket in memory: a request happens at once, when it is its turn. */
vi.mock('../../src/values/s3-bucket.ts', async () => {
  const { turn } = await import('./support/races.ts');
  return {
    S3Bucket: class {
      async write(key: string, bytes: Uint8Array): Promise<void> {
        await turn();
        objects.set(key, bytes);
      }
      async read(key: string): Promise<Uint8Array | null> {
        await turn();
        return objects.get(key) ?? null;
      }
      async has(key: string): Promise<boolean> {
        await turn();
        return objects.has(key);
      }
      async remove(...keys: string[]): Promise<void> {
        for (const key of keys) {
          await turn();
          objects.delete(key);
        }
      }
      /** Walks the keys one by one, as servers over a file system do: it may miss what comes or goes meanwhile. */
      async *list(beginning: string): AsyncGenerator<S3Object> {
        for (let last = ''; ; ) {
          await turn();
          const [next] = [...objects.keys()].filter((key) => key.startsWith(beginning) && key > last).sort();
          if (next === undefined) return;
          last = next;
          yield { key: next, bytes: objects.get(next)?.length ?? 0, storedAt: 1 };
        }
      }
    },
  };
});

/** A copy and its note leave while they are listed, so that the list shows the copy alone. */
const LISTED_MEANWHILE: Step[] = [
  [3, 7],
  [2, 3],
  [3, 2],
  [2, 3],
];

test('whoever has stored or shared a value has it, however others remove it, and at last nothing is left', async () => {
  const open = () => {
    objects.clear();
    return { store: new S3Values('s3://bucket'), left: () => [...objects.keys()] };
  };
  await expect(expectNoneLost(open, 2_000, LISTED_MEANWHILE)).resolves.toBeUndefined();
});
