import { expect } from 'vitest';

/** What a call throws; it must. */
export function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.fail('it should have thrown');
}
