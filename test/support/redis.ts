/** Redis for tests. */
import { onTestFinished } from 'vitest';
import { findRedis, type RedisServer, startRedis as start } from '../../bench/peers/redis.ts';

export type { RedisServer } from '../../bench/peers/redis.ts';

const IS_THERE = findRedis() !== undefined;

/** Whether tests skip what needs Redis: `test.skipIf(NO_REDIS)`. In CI they fail instead. */
export const NO_REDIS: boolean = !IS_THERE && process.env['CI'] === undefined;
if (!IS_THERE) console.warn('There is no Redis, so its tests cannot run');

/** Starts a Redis for the running test. */
export async function startRedis(): Promise<RedisServer> {
  const redis = await start();
  onTestFinished(() => redis.kill());
  return redis;
}
