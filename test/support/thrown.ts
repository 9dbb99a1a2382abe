import { expect } from 'vitest';

/** Returns what a call throws. Fails the test when it throws nothing. */
export function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.fail('it should have thrown');
}
