import { expect } from 'vitest';

/** Resolves with the error of a promise. Fails the test when the promise resolves. */
export function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(promise).then(
    (value) => expect.fail(`it should have failed, and gave ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}
