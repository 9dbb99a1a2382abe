/** What a limiter learns from the answers of its provider. Pure, like the limiter. */
import type { RateSaid, SaidAmount, WindowLimit } from '../contract/rates.ts';

/** How many requests a window may have before the provider has told its limit. */
const PROBES = 5;
/** How long the use by others may hold requests back at most. Then a request shows the present use. */
const HOLD_MS = 3_600_000;

type Amount = 'requests' | 'tokens';

/** What a limiter has learned. */
export interface Learned {
  /** The limits that the provider has told. */
  limit: { requests?: number; tokens?: number };
  /** When the provider last told what is left. */
  at: number;
  /** What the provider counts beyond the limiter's own count: others use the key, too. */
  others: { amount: Amount; count: number; until: number }[];
}

/** The limit that counts: the lower one of the worker's limit and the provider's. */
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

/** Learns the limits that a provider has told. Limits that it leaves out stay. */
export function learnLimits(learned: Learned | undefined, { requests, tokens }: RateSaid): Learned {
  const limit = { ...learned?.limit };
  if (requests?.limit !== undefined) limit.requests = requests.limit;
  if (tokens?.limit !== undefined) limit.tokens = tokens.limit;
  return { at: 0, others: [], ...learned, limit };
}

/** Learns what a provider has left, unless a later answer is known. `used`: the limiter's own count. */
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

/** What others use at a moment. */
export function usedByOthers(learned: Learned | undefined, at: number): Record<Amount, number> {
  const used = { requests: 0, tokens: 0 };
  for (const { amount, count, until } of learned?.others ?? []) if (until > at) used[amount] += count;
  return used;
}
