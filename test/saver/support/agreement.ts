/** Two savers that are given the same calls give the same answers. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { CheckpointSaver, JsonObject } from '../../../src/index.ts';
import { isPerdureError } from '../../../src/index.ts';

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const thread = fc.constantFrom('t', 'u');
const value = fc.jsonValue({ maxDepth: 2 });
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

type Call = (saver: CheckpointSaver, prefix: string) => Promise<unknown>;

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .record({
        thread,
        id,
        parentId: optional(id),
        state: fc.dictionary(fc.string(), value, { maxKeys: 2 }),
      })
      .map(
        ({ thread, state, id, parentId }): Call =>
          (saver, prefix) =>
            saver.put(prefix + thread, state as JsonObject, { id, parentId }),
      ),
  },
  fc.record({ thread, id: optional(id) }).map(
    ({ thread, id }): Call =>
      (saver, prefix) =>
        saver.get(prefix + thread, { checkpointId: id }),
  ),
  fc.record({ thread, before: optional(id), limit: fc.integer({ min: -1, max: 4 }) }).map(
    ({ thread, before, limit }): Call =>
      (saver, prefix) =>
        saver.list(prefix + thread, { before, limit }),
  ),
  thread.map(
    (thread): Call =>
      (saver, prefix) =>
        saver.delete(prefix + thread),
  ),
  fc.record({ thread, id, value }).map(
    ({ thread, id, value }): Call =>
      (saver, prefix) =>
        saver.putStep(prefix + thread, id, value as JsonObject),
  ),
  fc.record({ thread, id }).map(
    ({ thread, id }): Call =>
      (saver, prefix) =>
        saver.getStep(prefix + thread, id),
  ),
  thread.map(
    (thread): Call =>
      (saver, prefix) =>
        saver.listSteps(prefix + thread),
  ),
);

/** Gives both savers the same random calls and holds their answers against each other, times aside. Returns how many. */
export async function agree(
  a: CheckpointSaver,
  b: CheckpointSaver,
  options: { runs?: number; calls?: number } = {},
): Promise<number> {
  let run = 0;
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 10, maxLength: options.calls ?? 30 }), async (calls) => {
      const prefix = `run-${run++}-`;
      for (const one of calls) {
        expect(await answer(one(a, prefix))).toEqual(await answer(one(b, prefix)));
        compared += 1;
      }
    }),
    { numRuns: options.runs ?? 100 },
  );
  return compared;
}

async function answer(result: Promise<unknown>): Promise<unknown> {
  try {
    return JSON.parse(JSON.stringify((await result) ?? null), (key, item: unknown) =>
      key === 'created_at' || key === 'updated_at' ? '' : item,
    );
  } catch (error) {
    return isPerdureError(error) ? { code: error.code } : error;
  }
}
