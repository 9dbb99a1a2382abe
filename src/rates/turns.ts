/** Decides whose turn it is, by start-time fair queueing of the tenants. */
import type { RateState, Waiting } from './rate-state.ts';

export function servedOf({ served }: RateState, tenant: string): RateState['served'][number] | undefined {
  return served.find((each) => each.tenant === tenant);
}

/** The virtual time at which a tenant's next request starts. A tenant that was away begins at the clock. */
export function startOf(state: RateState, tenant: string): number {
  return Math.max(state.clock, servedOf(state, tenant)?.upTo ?? 0);
}

export function charge(state: RateState, tenant: string, more: number): void {
  const known = servedOf(state, tenant);
  if (known === undefined) state.served.push({ tenant, upTo: more });
  else known.upTo += more;
}

/** The first session of the tenant that is furthest behind. */
export function nextOf(state: RateState): Waiting | undefined {
  let next: Waiting | undefined;
  let least = Number.POSITIVE_INFINITY;
  const seen = new Set<string>();
  for (const candidate of state.waiting) {
    const { tenant } = candidate;
    if (seen.has(tenant)) continue;
    seen.add(tenant);
    const start = startOf(state, tenant);
    if (start < least) {
      least = start;
      next = candidate;
    }
  }
  return next;
}

/** The part of the limit that a request takes. */
export function share({ limit }: RateState, tokens: number): number {
  return Math.max(tokens / (limit.tokens ?? Number.POSITIVE_INFINITY), 1 / (limit.requests ?? 1e9));
}
