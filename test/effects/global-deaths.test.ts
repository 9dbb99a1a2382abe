/** Workers die at any step of a global call: attaching, waiting, in the effect, telling. Each effect happens once. */
import { expect, test } from 'vitest';
import { openWorld } from '../support/world.ts';

const SESSIONS = 6;
const DEATHS = 6;

test('workers die again and again while six sessions ask for three global effects', async () => {
  let session = 0;
  const asked = new Map<string, number>();
  const world = await openWorld(
    ({ messages, assistantCount }) => {
      const text = JSON.stringify(messages[1]);
      const n = asked.get(text) ?? session++;
      asked.set(text, n);
      const args = { chargeId: `ch_100${1 + assistantCount}`, cents: 100 + (n >> 1), reason: 'late' };
      return assistantCount < 3 ? { toolCalls: [{ name: 'refundGlobally', args }] } : { text: 'Refunded.' };
    },
    { ignoreKeys: true },
  );
  const sessions = await Promise.all(
    Array.from({ length: SESSIONS }, (_, i) =>
      world.startSession('effects', { message: `${world.taskQueue} ${i}` }),
    ),
  );
  for (let death = 0; death < DEATHS; death++) {
    const worker = await world.startWorkerProcess();
    // After a number of events, so that the steps that a worker dies in differ.
    const before = await events();
    await expect.poll(events, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before + 17 * (death + 1));
    await worker.crash();
  }
  await world.startWorkerProcess();
  for (const one of sessions) {
    await world.until(one, 'idle', 'unknown_effect');
    const { calls: log } = await world.check(one);
    expect(log.map(({ status }) => status.kind)).toEqual(['completed', 'completed', 'completed']);
  }
  expect(await world.control.refunds()).toHaveLength((SESSIONS / 2) * 3);

  async function events(): Promise<number> {
    const lengths = await Promise.all(
      sessions.map(async ({ id }) => (await world.client.workflow.getHandle(id).describe()).historyLength),
    );
    return lengths.reduce((sum, length) => sum + length, 0);
  }
});
