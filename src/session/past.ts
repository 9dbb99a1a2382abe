/** Going on in a new run: what leaves the old one, and what goes along. */
import type { StorePastResult, TakenIdsResult } from '../contract/activities.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { jsonSize } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import { KEPT_MESSAGE_IDS, type Past, unsealedFrom } from '../contract/past.ts';
import { MESSAGE_NOTES } from '../contract/piece.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { note } from './state.ts';
import { withTaken } from './taken-ids.ts';

/** Notices that go along. */
const KEPT_NOTICES = 10;

/** Stores the past when the run is long enough, and nothing is in flight; otherwise `null`. */
export function storeStep(state: SessionState, moment: Moment): Step | null {
  const { manifest, past, transcript, turn } = state;
  const last = transcript.at(-1);
  if (manifest?.runTurns === undefined || last === undefined || state.inFlight.length > 0) return null;
  const turns = turn - (past?.turn ?? 0);
  const isLong = turns >= manifest.runTurns || moment.historyBytes >= LIMIT.runBytes;
  if (turns < 1 || !isLong || turn < (state.notBeforeTurn ?? 0)) return null;
  // The last message is stored twice. Where it is large, a later one may be smaller.
  const canWait = turns < 2 * manifest.runTurns && moment.historyBytes < 2 * LIMIT.runBytes;
  if (canWait && jsonSize(last) > LIMIT.carriedMessage) return null;
  const input = { digest: shortDigest(state.position.digest) };
  const summary = `${turns} turns leave the run`;
  return { type: 'issue', command: { kind: 'storePast', seq: state.seq + 1, input, summary } };
}

/** Lets go of what was stored. The session then goes on in a new run. */
export function applyStorePast(
  state: SessionState,
  outcome: ActivityOutcome<StorePastResult>,
  moment: Moment,
): void {
  if (!outcome.ok && outcome.failure.kind === 'cancelled') return;
  if (!outcome.ok || outcome.value.kind === 'unavailable') {
    const why = outcome.ok ? (outcome.value as { message: string }).message : outcome.failure.message;
    note(state, moment, 'past_not_stored', `the session stays in its run for now: ${why}`);
    state.notBeforeTurn = state.turn + (state.manifest?.runTurns ?? 1);
    return;
  }
  const { newest, left = state.past?.left } = outcome.value;
  const { past, transcript, calls, position } = state;
  const last = transcript.slice(-1);
  const completed = { ...past?.completed };
  for (const { name, id, status } of calls) if (status.kind === 'completed') completed[name] = id;
  const unsealed = transcript.slice(unsealedFrom(state));
  const ids = unsealed
    .filter(({ id, role }) => role === 'user' && !id.startsWith('msg_'))
    .map(({ id }) => id);
  const all = [...(past?.messageIds ?? []), ...ids];
  const older = all.slice(0, -KEPT_MESSAGE_IDS);
  const taken = older.length === 0 ? past?.taken : withTaken(past?.taken, older);
  const next: Past = {
    newest,
    messages: position.count - last.length,
    calls: (past?.calls ?? 0) + calls.length,
    sealed: { ...position },
    turn: state.turn,
    message: state.message,
    completed,
    ...(left === true ? { left } : {}),
    messageIds: all.slice(-KEPT_MESSAGE_IDS),
    ...(taken === undefined ? {} : { taken }),
  };
  state.past = next;
  state.transcript = last;
  state.calls = [];
  state.notices = state.notices.slice(-KEPT_NOTICES);
  state.pauses = state.pauses.filter(({ resumedAt }) => resumedAt === null);
  for (const notes of MESSAGE_NOTES) {
    const own = Object.entries(state[notes] ?? {}).filter(([id]) => id === last[0]?.id);
    if (own.length > 0) state[notes] = Object.fromEntries(own);
    else delete state[notes];
  }
  state.continuing = 'next';
}

/** Looks up the queued messages that an earlier run may have taken; otherwise `null`. */
export function checkIdsStep({ past, inbox, seq }: SessionState): Step | null {
  const ids = inbox.filter(({ check }) => check === true).map(({ id }) => id);
  if (past === undefined || ids.length === 0) return null;
  const summary = `look up ${ids.length} message ids`;
  return {
    type: 'issue',
    command: { kind: 'takenIds', seq: seq + 1, input: { ids, past: past.newest }, summary },
  };
}

/** Drops the messages that an earlier run has taken. */
export function applyTakenIds(
  state: SessionState,
  outcome: ActivityOutcome<TakenIdsResult>,
  moment: Moment,
): void {
  if (!outcome.ok && outcome.failure.kind === 'cancelled') return;
  const found = outcome.ok
    ? outcome.value
    : { kind: 'unavailable' as const, message: outcome.failure.message };
  if (found.kind === 'unavailable') {
    const why = `what earlier runs have taken cannot be read: ${found.message}`;
    note(state, moment, 'message_unchecked', `${why}. A queued message may be a repeated one`);
  }
  // What came since the look-up is looked up next.
  state.inbox = state.inbox.flatMap(({ check, ...message }) => {
    if (check === undefined || found.kind === 'unavailable' || found.fresh.includes(message.id))
      return [message];
    return found.taken.includes(message.id) ? [] : [{ ...message, check }];
  });
}

/**
 * Whether the session goes on in a new run, now that its past is stored. Messages may have come meanwhile that make the state
 * too large. After a cancellation of Temporal's own the run ends: only this one can end as cancelled.
 */
export function fitsNewRun(state: SessionState): boolean {
  return state.cancelling?.by !== 'temporal' && jsonSize(state) <= LIMIT.carriedState;
}

/** The state with which a new run goes on. */
export function continued(carried: SessionState, runId: string): SessionState {
  const { continuing: _over, ...state } = carried;
  return { ...state, runId };
}
