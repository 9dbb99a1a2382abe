/** LangGraph's own validation of checkpointers, whole and with what it leaves to choice. */
import * as validation from '@langchain/langgraph-checkpoint-validation';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LangGraphSaver } from '../../../src/saver/langgraph/index.ts';

/** Declares all tests of the validation. `runner` is the `it` that they are declared with. */
export function validateAll(
  initializer: validation.CheckpointSaverTestInitializer<LangGraphSaver>,
  runner: typeof it = it,
): void {
  // The validation is written for a runner that has its verbs as globals.
  Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it: runner });
  validation.validate(initializer);
  validation.deltaChannelHistoryTests(initializer);
}

/**
 * `it` that runs one of 13 cases of a long table. The validation calls `list` with 648 combinations of five arguments,
 * and what our saver makes of them does not depend on the store. Since 13 divides none of the arguments' counts, each
 * value of each argument is still tried.
 */
export const itSampled: typeof it = new Proxy(it, {
  get: (target, name): unknown =>
    name === 'each'
      ? (cases: readonly object[]) => it.each(cases.filter((_, at) => cases.length < 100 || at % 13 === 0))
      : Reflect.get(target, name),
});
