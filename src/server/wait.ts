/** Polls for something outside this process. */

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `probe` until it returns something other than `undefined`.
 * @param timeoutMs how long to repeat; the last call may end later than that.
 * @param intervalMs the pause between two calls.
 * @returns the result, or `undefined` when the time is up.
 * @throws what `probe` throws.
 */
export async function poll<T>(
  probe: () => Promise<T | undefined> | T | undefined,
  timeoutMs: number,
  intervalMs = 25,
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined) return answer;
    if (performance.now() >= deadline) return undefined;
    await sleep(intervalMs);
  }
}
