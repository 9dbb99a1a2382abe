import { readRecordFile } from 'perdure/testing';
import { RATES, type RateView } from '../../src/contract/rates.ts';
import { rateLimiterId } from '../../src/contract/workflow-ids.ts';
import { retried } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { type FaultPoint, kill } from './point.ts';

const WINDOW_MS = 1_000;
const HELD = 'model request';

/** SIGKILL while the grant of a rate limiter is on its way to a worker, and while a worker has it. */
export const rateGrant: FaultPoint = {
  name: 'rate-grant',
  about:
    'Sessions share the rate limit of a provider. The worker is killed (SIGKILL) while grants are on their way to it, and the next one when it has the rest of the limit: these grants expire, and no window has more requests than are allowed.',
  anyService: true,
  steps: ['asking'],
  kinds: () => ['read', 'mutate', 'blind'],
  oneTurn: true,
  inject: async (stage) => {
    const requests = stage.story.kinds.length + 1;
    const limit = { requestsPerMinute: (requests * 60_000) / WINDOW_MS, window: `${WINDOW_MS}ms` };
    const env = { LAB_RATE: JSON.stringify(limit) };
    const first = await stage.startWorker({ env, breakAt: ['granted'] });
    await stage.begin();
    await first.reached('granted');
    const lost = (await limiter(stage)).used.requests;
    const at = Date.now();
    const onTheWay = await kill(first, 'all');
    const second = await stage.startWorker({ env, breakAt: [HELD] });
    const rest = Math.min(stage.actors.length, requests - lost);
    for (let n = 0; n < rest; n++) await second.reached(HELD);
    const held = await kill(second, 'all');
    await stage.startWorker({ env });
    stage.strike(
      `${onTheWay} with ${lost} grants on their way, ${held} with ${rest}, of ${requests} in a window`,
      at,
    );
    return async () => {
      const times = readRecordFile(stage.recordFile).map((request) => Date.parse(request.at));
      for (const time of times) {
        const count = times.filter((other) => other >= time && other < time + WINDOW_MS).length;
        if (count > requests) throw new Error(`${count} requests in a window, ${requests} are allowed`);
      }
      // The lost grants have expired: there is room for more requests.
      stage.more();
      await stage.sent();
    };
  },
};

function limiter({ harness: { client, taskQueue } }: Stage): Promise<RateView> {
  const handle = client.workflow.getHandle(rateLimiterId(taskQueue, 'scripted'));
  return retried(() => handle.query<RateView>(RATES.view));
}
