import { setTimeout as sleep } from 'node:timers/promises';

/** Repeats `probe`, with short pauses, until the result is neither `false` nor `undefined`. */
export async function until<T>(
  probe: () => T | undefined | Promise<T | undefined>,
  { everyMs = 5, timeoutMs = 120_000 }: { everyMs?: number; timeoutMs?: number } = {},
): Promise<Exclude<T, false | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer as Exclude<T, false | undefined>;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${probe.toString()}`);
    await sleep(everyMs);
  }
}
