/** A session that waits for the rate limit of a provider's key. It holds nothing meanwhile, and the limiter wakes it. */
import type { ModelResult } from '../contract/model-call.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { iso } from './state.ts';

/** After this time it asks again, in case the limiter was lost. */
const RECHECK_MS = 300_000;

/** The model was not asked. */
export function applyLimited(
  state: SessionState,
  flight: InFlight,
  { key, message }: Extract<ModelResult, { kind: 'limited' }>,
  moment: Moment,
): void {
  // The signal may come before the result.
  if (flight.turnCame === true || flight.cancelled === true) return;
  state.limited = { key, message: message.slice(0, 2_000), since: iso(moment) };
}

/** It is the session's turn. */
export function takeTurn(state: SessionState): void {
  delete state.limited;
  const flight = state.inFlight.find(({ kind }) => kind === 'model');
  if (flight !== undefined) flight.turnCame = true;
}

/** A session that must not ask a model does not wait for its turn. */
export function leaveLimit(state: SessionState): void {
  const { paused, sealed, cancelling } = state;
  if (paused !== null || sealed !== null || cancelling !== null) delete state.limited;
}

/** What it does while it waits: it starts the timer after which it asks again. */
export function limitedStep({ limited, inFlight, seq }: SessionState): Step | null {
  if (limited === undefined || inFlight.some(({ kind }) => kind === 'rate_recheck')) return null;
  const summary = `waits for the limit of ${limited.key}`.slice(0, 130);
  return { type: 'issue', command: { kind: 'timer', seq: seq + 1, ms: RECHECK_MS, summary } };
}
