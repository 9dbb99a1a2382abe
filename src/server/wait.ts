/** Waiting for something outside this process that can only be asked about. */

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks `probe` until it gives something other than `undefined`.
 * @param timeoutMs how long to go on asking; the last question may end later than that.
 * @param intervalMs pause between two questions.
 * @returns the answer, or `undefined` when the time is up.
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
