/** A session that waits for the rate limit of a provider's key. It holds nothing meanwhile; the limiter wakes it. */
import type { ModelResult } from '../contract/model-call.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { iso } from './state.ts';

/** After this time the session asks again, in case the limiter was lost. */
const RECHECK_MS = 300_000;

/** Makes the session wait for its turn: the model was not asked. */
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

/** Ends the wait: it is the session's turn. */
export function takeTurn(state: SessionState): void {
  delete state.limited;
  const flight = state.inFlight.find(({ kind }) => kind === 'model');
  if (flight !== undefined) flight.turnCame = true;
}

/** Ends the wait of a session that must not ask a model. */
export function leaveLimit(state: SessionState): void {
  const { paused, sealed, cancelling } = state;
  if (paused !== null || sealed !== null || cancelling !== null) delete state.limited;
}

/** The step of a waiting session: it starts the timer after which it asks again. */
export function limitedStep({ limited, inFlight, seq }: SessionState): Step | null {
  if (limited === undefined || inFlight.some(({ kind }) => kind === 'rate_recheck')) return null;
  const summary = `waits for the limit of ${limited.key}`.slice(0, 130);
  return { type: 'issue', command: { kind: 'timer', seq: seq + 1, ms: RECHECK_MS, summary } };
}
