/** Undoing effects: each compensation is a mutating call of its own, which the batch runs in reverse order. */
import { type EffectRef, isFinal, type ToolCall } from '../contract/calls.ts';
import { digestJson, type JsonValue } from '../contract/json.ts';
import { compensationKey, keyAfterUndo } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import type { Undo, UndoInput, UndoPlan, UndoStep } from '../contract/undo.ts';
import { approverProblem, rulesOf, takesMore } from './approvers.ts';
import type { Moment, Step } from './events.ts';
import { batchCalls, findCall, freshCall, iso, note, theCall, toolOf, wasStopped } from './state.ts';

/** What would be undone now, the last effect first. What runs now is not on the list. */
export function undoPlan(state: SessionState): UndoPlan {
  const steps = [...state.calls.toReversed().flatMap((call) => stepOf(state, call)), ...carriedSteps(state)];
  const digest = digestJson(steps.map(({ callId, tool, args, by }) => ({ callId, tool, args, by })));
  return { digest, steps };
}

function stepOf(state: SessionState, call: ToolCall): UndoStep[] {
  const { id: callId, name: tool, args, effect, status, result, compensates, compensatedBy } = call;
  if (effect === 'read' || call.replayOf !== null || call.dispatches.length === 0) return [];
  if (compensates !== undefined || compensatedBy !== undefined) return [];
  const about = { callId, tool, args, output: result?.content ?? null };
  const person = (reason: string): UndoStep[] => [{ ...about, by: 'person', reason }];
  if (status.kind === 'completed') {
    if (call.scope === 'global') return person('other sessions share the effect');
    return toolOf(state, call)?.compensate === undefined
      ? person('the tool has no compensate')
      : [{ ...about, by: 'tool' }];
  }
  const isDoubtful = wasStopped(call) || (status.kind === 'failed' && !status.certain);
  return isDoubtful && isFinal(call) ? person('nobody knows whether it happened') : [];
}

/** Of effects from before a rewind, only the output is known. */
function carriedSteps({ carried }: SessionState): UndoStep[] {
  return carried
    .filter(({ undone, compensates }) => undone !== true && compensates === undefined)
    .map(({ callId, tool, output, doubt }) => ({
      callId,
      tool,
      args: null,
      output,
      by: 'person' as const,
      reason: doubt ?? 'it is from before a rewind',
    }))
    .toReversed();
}

/** Takes a request to undo the session's effects, or to give that up. */
export function requestUndo(
  state: SessionState,
  undo: UndoInput | undefined,
  who: Pick<Undo, 'by' | 'verified' | 'at'>,
  moment: Moment,
): void {
  if (undo === undefined || state.mode === 'effect') return;
  if (undo === false) {
    if (state.undo !== undefined) state.undo.givenUp = true;
    return;
  }
  if (state.undo !== undefined) return;
  state.undo = { ...who };
  if (undo === true) return;
  const plan = undoPlan(state);
  if (plan.digest === undo.digest) {
    state.undo.approved = plan.steps.filter(({ by }) => by === 'tool').map(({ callId }) => callId);
  } else {
    note(state, moment, 'undo', 'the effects are others than on the approved list: a person approves each');
  }
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
  return undo === undefined || undo.begun === true || undo.givenUp === true || state.batch.length > 0
    ? null
    : { type: 'begin_undo' };
}

function isMarked(state: SessionState, effect: EffectRef): boolean {
  const { callId, idempotencyKey } = effect;
  const carried = state.carried.find(
    (each) => each.callId === callId && each.idempotencyKey === idempotencyKey,
  );
  if (carried !== undefined && carried.undone !== true) return false;
  const call = effectCall(state, effect);
  return call === undefined || call.compensatedBy !== undefined;
}

function effectCall({ calls }: SessionState, { callId, idempotencyKey }: EffectRef): ToolCall | undefined {
  return calls.findLast((call) => call.id === callId && call.idempotencyKey === idempotencyKey);
}

/** Marks the effect that a completed compensation has undone. */
export function markUndone(state: SessionState, compensation: ToolCall): void {
  if (compensation.compensates === undefined) return;
  const { callId, idempotencyKey } = compensation.compensates;
  const effect = effectCall(state, compensation.compensates);
  if (effect !== undefined) effect.compensatedBy = compensation.id;
  for (const carried of state.carried)
    if (carried.callId === callId && carried.idempotencyKey === idempotencyKey) carried.undone = true;
}

/** Adds the compensations, and says what is left to people. */
export function beginUndo(state: SessionState, moment: Moment): void {
  const { undo } = state;
  if (undo === undefined) return;
  undo.begun = true;
  const { steps } = undoPlan(state);
  for (const step of steps) {
    if (step.by === 'person') {
      note(state, moment, 'undo', `${step.tool} ${step.callId} is not undone: ${step.reason ?? ''}`);
      continue;
    }
    const { id: callId, idempotencyKey } = theCall(state, step.callId);
    addCompensation(state, { callId, idempotencyKey }, step, moment);
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

/** Who has approved the list has approved the call, as far as the tool's rules allow. */
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
  let id = `undo_${callId}`;
  for (let n = 2; findCall(state, id) !== undefined; n++) id = `undo_${callId}_${n}`;
  return id;
}

/** The key of a call whose equal one was undone: it is another one. */
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
