import { expect } from 'vitest';

/** What a promise rejects with; fails the test when it resolves. */
export function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(promise).then(
    (value) => expect.fail(`it should have failed, and gave ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}
