/** Computes what counts against a limit, and when there is room for more. */
import type { RateView } from '../contract/rates.ts';
import { usedByOthers } from './learned.ts';
import type { RateState } from './rate-state.ts';

/** How long after its grant a request may be sent. */
export const START_MS = 10_000;
/** Counts are summed up in this many steps of a window. */
const STEPS = 200;

/** When there is room for a request of so many tokens, if no other session is called; 0 if there is room already. */
export function roomAt(state: RateState, tokens: number): number {
  const { windowMs } = state.limit;
  const ends = [
    ...state.counted.map(({ at, ...counts }) => ({ at: at + windowMs, ...counts })),
    ...state.open.map((open) => ({ at: open.at + START_MS + windowMs, requests: 1, tokens: open.tokens })),
    ...state.called.map((call) => ({ at: call.until ?? 0, requests: 1, tokens: call.tokens })),
    ...(state.learned?.others ?? []).map(({ amount, count: held, until }) => ({
      at: until,
      requests: 0,
      tokens: 0,
      [amount]: held,
    })),
  ].sort((a, b) => a.at - b.at);
  const used = usedBy(state);
  let room = 0;
  for (const { at, ...counts } of ends) {
    if (hasRoom(state, used, tokens)) break;
    used.requests -= counts.requests;
    used.tokens -= counts.tokens;
    room = at;
  }
  return room;
}

export function count({ counted, limit: { windowMs } }: RateState, at: number, tokens: number): void {
  const step = Math.max(1, Math.floor(windowMs / STEPS));
  const rounded = Math.ceil(at / step) * step;
  const index = counted.findLastIndex((entry) => entry.at <= rounded);
  const entry = counted[index];
  if (entry?.at === rounded) {
    entry.requests += 1;
    entry.tokens += tokens;
  } else counted.splice(index + 1, 0, { at: rounded, requests: 1, tokens });
}

export function hasRoom({ limit }: RateState, used: RateView['used'], tokens: number): boolean {
  return (
    used.requests + 1 <= (limit.requests ?? Number.POSITIVE_INFINITY) &&
    used.tokens + tokens <= (limit.tokens ?? Number.POSITIVE_INFINITY)
  );
}

/** What counts against the limit. @param at - what leaves the window by this time does not count */
export function usedBy(
  { counted, open, called, learned, limit: { windowMs } }: RateState,
  at = 0,
): RateView['used'] {
  const used = usedByOthers(learned, at);
  used.requests += open.length + called.length;
  for (const entry of counted) {
    if (entry.at + windowMs <= at) continue;
    used.requests += entry.requests;
    used.tokens += entry.tokens;
  }
  for (const { tokens } of [...open, ...called]) used.tokens += tokens;
  return used;
}
