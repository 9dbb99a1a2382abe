/**
 * The conformance kit of checkpoint savers: one specification for each method.
 *
 * ```ts
 * import { describe, it, beforeAll, afterAll } from 'vitest'; // or jest
 * import { checkpointSaverConformance } from 'perdure/testing';
 *
 * checkpointSaverConformance(
 *   // The clock tells your saver the time, and steps back, to test how the saver handles it.
 *   { name: 'MySaver', create: (clock) => new MySaver({ now: clock.now }) },
 *   { describe, it, beforeAll, afterAll }, // of mocha and node:test: beforeAll: before, afterAll: after
 * );
 * ```
 */
import { randomUUID } from 'node:crypto';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { PerdureError } from '../../contract/errors.ts';
import { deleteSpec } from './delete.ts';
import { getSpec } from './get.ts';
import type { Runner, SaverUnderTest, Spec, SpecContext } from './kit.ts';
import { listSpec } from './list.ts';
import { putSpec } from './put.ts';
import { stepsSpec } from './steps.ts';

export type { Runner, SaverUnderTest } from './kit.ts';

const SPECS: Record<string, Spec> = {
  put: putSpec,
  get: getSpec,
  list: listSpec,
  delete: deleteSpec,
  steps: stepsSpec,
};

/**
 * Declares the tests that every checkpoint saver passes. Each test creates its own saver and removes it.
 *
 * @param runner - the test runner's functions.
 * @throws PerdureError `INVALID_ARGUMENT` when the saver has a hook that the runner does not support.
 */
export function checkpointSaverConformance(subject: SaverUnderTest, runner: Runner): void {
  for (const hook of ['beforeAll', 'afterAll'] as const) {
    if (subject[hook] === undefined || runner[hook] !== undefined) continue;
    throw new PerdureError('INVALID_ARGUMENT', `runner.${hook} is missing: ${subject.name} needs it`);
  }
  runner.describe(`${subject.name} as a checkpoint saver`, () => {
    const { beforeAll, afterAll } = subject;
    if (beforeAll !== undefined) runner.beforeAll?.(async () => beforeAll());
    if (afterAll !== undefined) runner.afterAll?.(async () => afterAll());
    for (const [verb, spec] of Object.entries(SPECS)) {
      runner.describe(verb, () => {
        spec((name, body) => runner.it(name, () => runTest(subject, body)), subject);
      });
    }
  });
}

async function runTest(
  subject: SaverUnderTest,
  body: (context: SpecContext) => Promise<void>,
): Promise<void> {
  let at: number | null = null;
  const saver = await subject.create({ now: () => at ?? Date.now() });
  const made: CheckpointSaver[] = [saver];
  const thread = `conformance-${randomUUID()}`;
  try {
    await body({
      saver,
      thread,
      otherThread: (suffix) => `other-${suffix}-${thread}`,
      clock: {
        set: (ms) => {
          at = ms;
        },
      },
      reopen: async () => {
        if (subject.reopen === undefined) throw new Error(`${subject.name} cannot be reopened`);
        const next = await subject.reopen(saver);
        made.push(next);
        return next;
      },
      many: subject.many ?? 25,
    });
  } finally {
    for (const one of made) await subject.destroy?.(one);
  }
}
