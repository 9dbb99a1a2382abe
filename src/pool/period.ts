/** Days and months of a time zone. */
import type { PoolPeriod } from '../contract/pool.ts';

const QUARTER_HOUR = 900_000;

/** The period that a time is in, such as `2026-11-23` or `2026-11`. */
export function periodOf(now: number, period: PoolPeriod, zone: string): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  }).formatToParts(now);
  const part = (type: string): string => parts.find((each) => each.type === type)?.value ?? '';
  const month = `${part('year')}-${part('month')}`;
  return period === 'month' ? month : `${month}-${part('day')}`;
}

/**
 * When the period of a time ends, in milliseconds since 1970. Time zones differ by multiples of a quarter of an hour.
 */
export function periodEnd(now: number, period: PoolPeriod, zone: string): number {
  const present = periodOf(now, period, zone);
  let at = Math.floor(now / QUARTER_HOUR) * QUARTER_HOUR;
  // For a month it goes in steps of a day first, then in quarters of an hour.
  for (const step of period === 'month' ? [86_400_000, QUARTER_HOUR] : [QUARTER_HOUR]) {
    while (periodOf(at + step, period, zone) === present) at += step;
  }
  return at + QUARTER_HOUR;
}
