/** Continues a session in a new run: what leaves the old run, and what goes along. */
import type { StorePastResult, TakenIdsResult } from '../contract/activities.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { isChosenId } from '../contract/inputs.ts';
import { defined, jsonSize } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import {
  isOver,
  KEPT_MESSAGE_IDS,
  KEPT_TEXT,
  type Past,
  sealedCalls,
  unsealedFrom,
} from '../contract/past.ts';
import { MESSAGE_NOTES } from '../contract/piece.ts';
import type { SessionInput } from '../contract/session-input.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { isMain } from '../contract/view.ts';
import { decides } from './edition.ts';
import type { Moment, Step } from './events.ts';
import { saidDigest } from './said.ts';
import { batchCalls, hasActivity, lastText, note } from './state.ts';
import { leaveChildren } from './sub-agents.ts';
import { withTaken } from './taken-ids.ts';

/** How many notices go along. */
const KEPT_NOTICES = 10;

/** Stores the past if the run is long enough and no activity is in flight; otherwise `null`. */
export function storeStep(state: SessionState, moment: Moment): Step | null {
  const { manifest, past, transcript, turn } = state;
  const last = transcript.at(-1);
  if (manifest?.runTurns === undefined || last === undefined || hasActivity(state)) return null;
  // The new run begins with one message, which the model must see.
  if (!isMain(last)) return null;
  if (turn < (state.notBeforeTurn ?? 0)) return null;
  const turns = turn - (past?.turn ?? 0);
  const { historyBytes, historyEvents } = moment;
  const isLarge = historyBytes >= LIMIT.runBytes + carriedBytes(state, moment);
  const isLong = turns >= manifest.runTurns || isLarge;
  const isCrowded = manifest.runsAtRest === true && (isLarge || historyEvents >= LIMIT.runEvents);
  if (!(turns >= 1 && isLong) && !isCrowded) return null;
  // The last message is stored twice. If it is large, a later one may be smaller.
  const canWait = turns >= 1 && turns < 2 * manifest.runTurns && historyBytes < 2 * LIMIT.runBytes;
  if (canWait && jsonSize(last) > LIMIT.carriedMessage) return null;
  const input = { digest: shortDigest(state.position.digest) };
  const summary = `${turns} turns leave the run`;
  return { type: 'issue', command: { kind: 'storePast', seq: state.seq + 1, input, summary } };
}

/** Like {@link storeStep}, for a session that waits in the middle of a turn, or until somebody resumes it. */
export function storeAtRest(state: SessionState, moment: Moment): Step | null {
  const { manifest, loading, effect, sealed, cancelling } = state;
  if (manifest?.runsAtRest !== true || loading !== null || effect !== null) return null;
  // Only calls of the batch stay in the run. Calls that go on after an undo are not in the batch now.
  if (state.undo?.batch !== undefined) return null;
  return sealed === null && cancelling === null ? storeStep(state, moment) : null;
}

/** Like {@link storeStep}, before an activity that runs reads and asks the model: a chain of these never rests. */
export function storeInReads(state: SessionState, moment: Moment): Step | null {
  return state.manifest?.runsInReads === true ? storeAtRest(state, moment) : null;
}

/** Bytes that a new run's history would begin with: they are no reason for a new run. */
function carriedBytes(state: SessionState, { historyBytes }: Moment): number {
  if (state.manifest?.runsAtRest !== true || historyBytes < LIMIT.runBytes) return 0;
  return jsonSize({ ...state, transcript: state.transcript.slice(-1), calls: batchCalls(state) });
}

/** Drops from the state what was stored. The session then continues in a new run. */
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
  const { newest, left = state.past?.left, pauses, allIds } = outcome.value;
  const { past, transcript, position } = state;
  const calls = state.calls.slice(0, sealedCalls(state));
  const last = transcript.slice(-1);
  const completed = { ...past?.completed };
  for (const { name, id, status } of calls) if (status.kind === 'completed') completed[name] = id;
  const unsealed = transcript.slice(unsealedFrom(state));
  const isChosen = (id: string): boolean => (allIds === true ? isChosenId(id) : !id.startsWith('msg_'));
  const sent = unsealed.filter(({ id, role }) => role === 'user' && isChosen(id));
  const before = past?.messageIds ?? [];
  const all = [...before, ...sent.map(({ id }) => id)];
  const digests = [
    ...(past?.messageDigests ?? before.map(() => '')),
    ...sent.map(({ blocks }) => saidDigest(blocks)),
  ];
  const older = all.slice(0, -KEPT_MESSAGE_IDS);
  const taken = older.length === 0 ? past?.taken : withTaken(past?.taken, older);
  const said = state.manifest?.runsAtRest === true && last[0]?.role !== 'assistant' ? lastText(state) : '';
  const next: Past = {
    newest,
    messages: position.count - last.length,
    calls: (past?.calls ?? 0) + calls.length,
    sealed: { ...position },
    turn: state.turn,
    message: state.message,
    completed,
    ...(said === '' ? {} : { lastText: said.slice(0, KEPT_TEXT) }),
    ...(left === true ? { left } : {}),
    messageIds: all.slice(-KEPT_MESSAGE_IDS),
    ...(decides(state, 'knowsLostMessages') ? { messageDigests: digests.slice(-KEPT_MESSAGE_IDS) } : {}),
    ...(taken === undefined ? {} : { taken }),
  };
  state.past = next;
  state.transcript = last;
  state.calls = state.calls.slice(calls.length);
  state.notices = state.notices.slice(-KEPT_NOTICES);
  state.pauses = state.pauses.slice(pauses ?? state.pauses.filter(isOver).length);
  for (const notes of MESSAGE_NOTES) {
    const own = Object.entries(state[notes] ?? {}).filter(([id]) => id === last[0]?.id);
    if (own.length > 0) state[notes] = Object.fromEntries(own);
    else delete state[notes];
  }
  leaveChildren(state);
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
  // Messages that came since the look-up are looked up next.
  state.inbox = state.inbox.flatMap(({ check, ...message }) => {
    if (check === undefined || found.kind === 'unavailable' || found.fresh.includes(message.id))
      return [message];
    if (!found.taken.includes(message.id)) return [{ ...message, check }];
    if (decides(state, 'knowsLostMessages')) noteDropped(state, message.id, moment);
    return [];
  });
}

/** Says that a message is not taken because its id was. */
export function noteDropped(state: SessionState, id: string, moment: Moment): void {
  note(state, moment, 'message_dropped', `a message was dropped: an earlier one had its id, ${id}`);
}

/**
 * Whether the session continues in a new run, now that its past is stored. Messages that came meanwhile may have made
 * the state too large. After Temporal's own cancellation the session must end in this run: only this run can end as
 * cancelled. A cancellation in the middle of a turn first ends the turn here, because an update may wait for a call
 * that it skips.
 */
export function fitsNewRun(state: SessionState): boolean {
  const { cancelling, batch } = state;
  const endsHere = cancelling !== null && (cancelling.by === 'temporal' || batch.length > 0);
  return !endsHere && jsonSize(state) <= LIMIT.carriedState;
}

/** Leaves the run. The run's timers end with it, and the next run starts them again for their remaining time. */
export function leaveRun(state: SessionState): void {
  const timers = state.inFlight
    .splice(0)
    .flatMap(({ kind, callId, until }) =>
      until === undefined ? [] : [{ kind, until, ...defined({ callId }) }],
    );
  if (timers.length > 0) state.timers = timers;
  state.continuing = 'now';
}

/** How long a timer runs. A timer of the previous run only runs for its remaining time. */
export function timerMs(
  state: SessionState,
  { kind, callId }: Pick<InFlight, 'kind' | 'callId'>,
  ms: number,
  moment: Moment,
): number {
  const before = state.timers?.find((timer) => timer.kind === kind && timer.callId === callId);
  if (before === undefined) return ms;
  const others = state.timers?.filter((timer) => timer !== before) ?? [];
  if (others.length > 0) state.timers = others;
  else delete state.timers;
  return Math.max(1, Math.min(ms, Date.parse(before.until) - moment.now));
}

/** The state with which a new run begins. A wait for room in the history is over. */
export function continued(carried: SessionState, runId: string): SessionState {
  const { continuing: _over, ...state } = carried;
  return { ...state, runId, wait: state.wait?.reason === 'history_limit' ? null : state.wait };
}

/** Why this version cannot continue from the state of the previous run, or `null`. */
export function newerProblem(input: SessionInput | null): string | null {
  const { schema = 1, manifest } = input?.carried ?? {};
  const schemas: unknown[] = [schema, manifest?.schema ?? 1];
  if (schemas.every((known) => known === 1)) return null;
  return `a newer version of perdure wrote the state of the run before (schema ${schemas.join(', ')}): update the workers`;
}
