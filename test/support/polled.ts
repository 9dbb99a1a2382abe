import { setTimeout as sleep } from 'node:timers/promises';

const TIMEOUT_MS = 60_000;
/** Each check costs the session's worker and the server some milliseconds of processor time, so the pauses grow. */
const PAUSE_MS = { first: 10, growth: 1.3, most: 250 };

/** Asks again and again until the answer is yes. Fails with what `last` shows when that takes longer than a minute. */
export async function polled(ask: () => Promise<boolean>, last: () => string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (let pause = PAUSE_MS.first; !(await ask()); pause = Math.min(pause * PAUSE_MS.growth, PAUSE_MS.most)) {
    if (performance.now() > deadline) throw new Error(`not reached in ${TIMEOUT_MS} ms: ${last()}`);
    await sleep(pause);
  }
}
