/** Workers die one after the other, wherever they happen to be, over many sessions: each refund happens once. */
import { expect, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { openWorld, type World } from '../support/world.ts';

const SESSIONS = 8;
const DEATHS = 4;

/** Two refunds a session, in two turns. */
const script: Script = ({ assistantCount }) =>
  assistantCount < 2
    ? {
        toolCalls: [
          {
            name: 'refundPatient',
            args: { chargeId: `ch_100${assistantCount + 1}`, cents: 100, reason: 'late' },
          },
        ],
      }
    : { text: 'Refunded.' };

async function untilRows(world: World, count: number): Promise<void> {
  await expect
    .poll(async () => (await world.control.refunds()).length, { timeout: 60_000, interval: 10 })
    .toBeGreaterThanOrEqual(count);
}

test('four workers die in the middle of sixteen refunds, on a service that ignores keys', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => world.begin()));
  for (let death = 1; death <= DEATHS; death++) {
    const worker = await world.startWorkerProcess();
    // As soon as there are a few more, wherever the other sessions are by then.
    await untilRows(world, Math.ceil((death * 2 * SESSIONS) / (DEATHS + 1)));
    await worker.crash();
  }
  await world.startWorkerProcess();
  const keys: string[] = [];
  for (const session of sessions) {
    await world.until(session, 'idle', 'unknown_effect');
    const { calls: log } = await world.check(session);
    expect(log.map(({ status }) => status.kind)).toEqual(['completed', 'completed']);
    keys.push(...log.map(({ idempotencyKey }) => idempotencyKey));
  }
  const rows = await world.control.refunds();
  expect(rows).toHaveLength(2 * SESSIONS);
  expect(new Set(rows.map(({ key }) => key))).toEqual(new Set(keys));
});
