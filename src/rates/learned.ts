/** What a limiter learns from the answers of its provider. Pure, as the limiter is. */
import type { RateSaid, SaidAmount, WindowLimit } from '../contract/rates.ts';

/** How many requests may be sent before the provider has said its limit. */
const PROBES = 5;
/** The longest that what a provider says of others holds requests back. Then one of ours asks again. */
const HOLD_MS = 3_600_000;

type Amount = 'requests' | 'tokens';

/** Of a limiter. */
export interface Learned {
  /** The limits that the provider has said. */
  limit: { requests?: number; tokens?: number };
  /** When the provider said what it had left. */
  at: number;
  /** What the provider counts beyond what the limiter knows of: others use the key. */
  others: { amount: Amount; count: number; until: number }[];
}

/** The limit that counts: what the worker allows, and at most what the provider does. */
export function limitWith(told: WindowLimit, learned: Learned | undefined): WindowLimit {
  if (told.fromHeaders !== true) return told;
  if (learned === undefined) return { ...told, requests: Math.min(told.requests ?? PROBES, PROBES) };
  const limit = { ...told };
  for (const amount of ['requests', 'tokens'] as const) {
    const least = Math.min(...[told[amount], learned.limit[amount]].filter((each) => each !== undefined));
    if (Number.isFinite(least)) limit[amount] = least;
  }
  return limit;
}

/** Takes the limits that a provider has said. Those that it leaves out stay. */
export function learnLimits(learned: Learned | undefined, { requests, tokens }: RateSaid): Learned {
  const limit = { ...learned?.limit };
  if (requests?.limit !== undefined) limit.requests = requests.limit;
  if (tokens?.limit !== undefined) limit.tokens = tokens.limit;
  return { at: 0, others: [], ...learned, limit };
}

/** Takes what a provider has left, unless a later answer was there before. `used`: what the limiter knows of. */
export function learnLeft(
  learned: Learned,
  {
    said,
    limit,
    used,
    now,
  }: { said: RateSaid; limit: WindowLimit; used: Record<Amount, number>; now: number },
): void {
  const at = now - said.agoMs;
  if (at < learned.at) return;
  learned.at = at;
  learned.others = (['requests', 'tokens'] as const).flatMap((amount) => {
    const count = beyond(said[amount], limit[amount], used[amount]);
    const until = at + Math.min(said[amount]?.resetMs ?? limit.windowMs, HOLD_MS);
    return count > 0 && until > now ? [{ amount, count, until }] : [];
  });
}

function beyond(said: SaidAmount | undefined, limit: number | undefined, used: number): number {
  return said?.remaining === undefined || limit === undefined ? 0 : limit - said.remaining - used;
}

/** What others use, as of a moment. */
export function usedByOthers(learned: Learned | undefined, at: number): Record<Amount, number> {
  const used = { requests: 0, tokens: 0 };
  for (const { amount, count, until } of learned?.others ?? []) if (until > at) used[amount] += count;
  return used;
}
