/** Undoes effects. Each compensation is a mutating call of its own; the batch runs them in reverse order. */
import type { LoadResult } from '../contract/activities.ts';
import { type EffectRef, isSameEffect, type ToolCall } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { defined, type JsonValue } from '../contract/json.ts';
import { compensationKey, keyAfterUndo } from '../contract/keys.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import type { KeyedStep, Undo, UndoInput } from '../contract/undo.ts';
import { approverProblem, rulesOf, takesMore } from './approvers.ts';
import type { Moment, Step } from './events.ts';
import { batchCalls, findCall, freeId, freshCall, iso, note } from './state.ts';
import { earlierDigest, earlierSteps, planOf, undoSteps } from './undo-plan.ts';
import { stop } from './wait.ts';

/** Takes a request to undo the session's effects, or to give the undo up. */
export function requestUndo(
  state: SessionState,
  undo: UndoInput | undefined,
  who: Pick<Undo, 'by' | 'verified' | 'at' | 'whole'>,
  moment: Moment,
): void {
  if (undo === undefined || state.mode === 'effect') return;
  if (undo === false) {
    if (state.undo !== undefined) state.undo.givenUp = true;
    return;
  }
  // Another request is pending. Only the undo of a rewind can be followed by another undo.
  if (state.undo !== undefined && (state.undo.begun !== true || hasEarlier(state))) return;
  const next = newUndo(state, undo, undoSteps(state, who.whole), who, moment);
  if (isUndoing(state) && state.undo?.batch !== undefined) state.undo.next = next;
  else if (!isUndoing(state)) state.undo = next;
}

function newUndo(
  state: SessionState,
  undo: Exclude<UndoInput, false>,
  steps: readonly KeyedStep[],
  who: Pick<Undo, 'by' | 'verified' | 'at' | 'whole'>,
  moment: Moment,
): Undo {
  if (undo === true) return { ...who };
  const [own, earlier] = undo.digest.split('.');
  if (planOf(steps).digest === own) return { ...who, approved: idsOf(steps), ...defined({ seen: earlier }) };
  note(state, moment, 'undo', OTHERS);
  return { ...who };
}

const OTHERS = 'the effects are others than on the approved list: a person approves each';

function idsOf(steps: readonly KeyedStep[]): string[] {
  return steps.filter(({ by }) => by === 'tool').map(({ callId }) => callId);
}

/**
 * Begins a rewound run with the compensations of the effects since the checkpoint. The calls that were open at the
 * checkpoint go on afterwards.
 */
export function undoSince(
  state: SessionState,
  undo: UndoInput | undefined,
  { steps, manifest }: { steps: readonly KeyedStep[]; manifest: Manifest | null },
  by: string,
  moment: Moment,
): void {
  if (undo === undefined || undo === false) return;
  // The abandoned run's tools undo its effects: the checkpoint's definition may be older.
  if (manifest !== null) state.manifest = manifest;
  const { batch } = state;
  state.undo = { ...newUndo(state, undo, steps, { by, at: iso(moment) }, moment), begun: true, batch };
  state.batch = [];
  addSteps(state, steps, moment);
  if (state.batch.length === 0) endUndo(state);
}

/** Ends a batch of compensations. They leave no message, because the model did not ask for them. */
export function endUndo(state: SessionState): void {
  const { batch = [], next } = state.undo ?? {};
  state.batch = batch;
  delete state.undo?.batch;
  if (next !== undefined) state.undo = next;
}

/** Whether the present batch undoes effects. */
export function isUndoing(state: SessionState): boolean {
  const { undo } = state;
  return undo !== undefined && undo.givenUp !== true && batchCalls(state).some(isCompensation);
}

export function isCompensation({ compensates }: ToolCall): boolean {
  return compensates !== undefined;
}

/** The next step of an undo: marks an effect as undone, or begins. */
export function undoStep(state: SessionState): Step | null {
  const done = batchCalls(state).find(
    (call) =>
      call.compensates !== undefined &&
      call.status.kind === 'completed' &&
      !isMarked(state, call.compensates),
  );
  if (done !== undefined) return { type: 'mark_undone', callId: done.id };
  const { undo } = state;
  if (undo === undefined || undo.givenUp === true || state.batch.length > 0) return null;
  if (undo.begun !== true) return { type: 'begin_undo' };
  const { past, sessionId } = state;
  if (past === undefined || !hasEarlier(state) || state.wait !== null) return null;
  const { newest, sealed, calls } = past;
  const from = { newest, sealed, calls };
  const input = { kind: 'undo' as const, sessionId, past: from, ...defined({ end: undo.earlier }) };
  return { type: 'issue', command: { kind: 'load', seq: state.seq + 1, input } };
}

/** Whether effects of earlier runs are left to undo. Until they are undone, the session does not end. */
export function hasEarlier({ undo, past }: SessionState): boolean {
  const isWhole = undo?.whole === true && undo.begun === true && undo.givenUp !== true;
  return isWhole && (undo.earlier ?? past?.calls ?? 0) > 0;
}

/** Applies the loading of effects of earlier runs: adds their compensations. */
export function applyEarlier(
  state: SessionState,
  outcome: ActivityOutcome<LoadResult>,
  moment: Moment,
): void {
  const { undo } = state;
  if (undo === undefined || !hasEarlier(state)) return;
  if (outcome.ok && outcome.value.kind === 'effects') {
    const { from, calls, digest } = outcome.value;
    const steps = earlierSteps(state, calls);
    const isFirst = undo.earlier === undefined;
    if (undo.seen === earlierDigest(state, digest)) undo.approved = idsOf(steps);
    else if (isFirst && undo.seen !== undefined) note(state, moment, 'undo', OTHERS);
    undo.earlier = from;
    addSteps(state, steps, moment);
    return;
  }
  if (!outcome.ok && outcome.failure.kind === 'cancelled') return;
  const why = outcome.ok ? 'message' in outcome.value && outcome.value.message : outcome.failure.message;
  const message = `the effects of earlier runs cannot be read, and are not undone: ${why}`;
  stop(state, moment, 'history_unreadable', message);
}

function isMarked(state: SessionState, effect: EffectRef): boolean {
  const carried = state.carried.find((each) => isSameEffect(each, effect));
  if (carried !== undefined && carried.undone !== true) return false;
  const call = effectCall(state, effect);
  return call === undefined || call.compensatedBy !== undefined;
}

function effectCall({ calls }: SessionState, { callId, idempotencyKey }: EffectRef): ToolCall | undefined {
  return calls.findLast((call) => call.id === callId && call.idempotencyKey === idempotencyKey);
}

/** Marks the effect that a completed compensation has undone. */
export function markUndone(state: SessionState, { id, compensates }: ToolCall): void {
  if (compensates === undefined) return;
  const effect = effectCall(state, compensates);
  if (effect !== undefined) effect.compensatedBy = id;
  for (const carried of state.carried) if (isSameEffect(carried, compensates)) carried.undone = true;
}

/** Adds the compensations, and notes which effects are left to people. */
export function beginUndo(state: SessionState, moment: Moment): void {
  const { undo } = state;
  if (undo === undefined) return;
  undo.begun = true;
  const earlier = state.past?.calls ?? 0;
  // The cancelled turn's wait is over.
  if (undo.whole === true) state.wait = null;
  else if (earlier > 0)
    note(
      state,
      moment,
      'undo',
      `the effects of ${earlier} calls of earlier runs stay: a rewind with undo reaches them`,
    );
  addSteps(state, undoSteps(state, undo.whole), moment);
}

function addSteps(state: SessionState, steps: readonly KeyedStep[], moment: Moment): void {
  for (const step of steps) {
    const { callId, idempotencyKey, tool, by, reason = '' } = step;
    if (by === 'person') note(state, moment, 'undo', `${tool} ${callId} is not undone: ${reason}`);
    else addCompensation(state, { callId, idempotencyKey }, step, moment);
  }
}

/** Adds the call that undoes an effect to the batch. */
function addCompensation(
  state: SessionState,
  effect: EffectRef,
  { tool: name, args: input, output }: { tool: string; args: JsonValue; output: JsonValue },
  moment: Moment,
): void {
  const tool = state.manifest?.tools[name];
  const call: ToolCall = {
    ...freshCall(freshId(state, effect.callId), state, name, { input, output }),
    effect: 'mutate',
    scope: 'call',
    idempotencyKey: compensationKey(effect.idempotencyKey),
    compensates: effect,
  };
  if (tool?.compensate?.unasked !== true) {
    Object.assign(call, rulesOf(tool));
    call.status = { kind: 'approval', expiresAt: null };
  }
  state.calls.push(call);
  state.batch.push(call.id);
  if (call.status.kind === 'approval' && state.undo?.approved?.includes(effect.callId) === true)
    approve(state, call, state.undo, iso(moment));
}

/** Approves the call for the person who approved the list, as far as the tool's rules allow. */
function approve(state: SessionState, call: ToolCall, { by, verified }: Undo, at: string): void {
  const decision = { decision: 'approve' } as const;
  const who = { by, ...(verified === true ? { verified } : {}) };
  if (
    approverProblem(state, call, { callId: call.id, argsDigest: call.argsDigest, decision, ...who }) !== null
  )
    return;
  const record = { ...decision, ...who, at };
  if (takesMore(call, record)) return;
  call.decision = record;
  call.status = { kind: 'ready' };
}

function freshId(state: SessionState, callId: string): string {
  return freeId(`undo_${callId}`, (id) => findCall(state, id) !== undefined);
}

/** The key of a call: another key if the effect with this key was undone. */
export function unusedKey(state: SessionState, key: string): string {
  if (state.undo === undefined && state.carried.length === 0) return key;
  const isUndone = (of: string): boolean =>
    state.calls.some(
      ({ idempotencyKey, compensatedBy }) => idempotencyKey === of && compensatedBy !== undefined,
    ) || state.carried.some(({ idempotencyKey, undone }) => idempotencyKey === of && undone === true);
  let unused = key;
  while (isUndone(unused)) unused = keyAfterUndo(unused);
  return unused;
}
