/** Undoing effects: each compensation is a mutating call of its own, which the batch runs in reverse order. */
import { type EffectRef, isFinal, type ToolCall } from '../contract/calls.ts';
import { defined, digestJson, type JsonValue } from '../contract/json.ts';
import { compensationKey, keyAfterUndo } from '../contract/keys.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import { childId, isChildOf } from '../contract/tree.ts';
import type { KeyedStep, Undo, UndoInput, UndoPlan, UndoStep } from '../contract/undo.ts';
import { approverProblem, rulesOf, takesMore } from './approvers.ts';
import type { Moment, Step } from './events.ts';
import { batchCalls, findCall, freeId, freshCall, iso, note, toolOf, wasStopped } from './state.ts';

/** What would be undone now, the last effect first. What runs now is not on the list. */
export function undoPlan(state: SessionState): UndoPlan {
  const earlier = earlierCalls(state);
  return { ...planOf(undoSteps(state)), ...(earlier > 0 ? { earlier } : {}) };
}

/** The calls of earlier runs. */
function earlierCalls({ past }: SessionState): number {
  return past?.calls ?? 0;
}

/** A list with its digest, without the keys. */
export function planOf(keyed: readonly KeyedStep[]): UndoPlan {
  const steps = keyed.map(
    ({ callId, tool, args, output, by, reason }): UndoStep => ({
      callId,
      tool,
      args,
      output,
      by,
      ...defined({ reason }),
    }),
  );
  const digest = digestJson(
    steps.map(({ callId, tool, args, output, by }) => ({ callId, tool, args, output, by })),
  );
  return { digest, steps };
}

/** The steps of {@link undoPlan}, with the keys of their effects. */
export function undoSteps(state: SessionState): KeyedStep[] {
  return [...state.calls.toReversed().flatMap((call) => stepOf(state, call)), ...carriedSteps(state)];
}

function stepOf(state: SessionState, call: ToolCall): KeyedStep[] {
  const { id: callId, name: tool, args, effect, status, result, compensates, compensatedBy } = call;
  if (effect === 'read' || call.replayOf !== null || call.dispatches.length === 0) return [];
  if (compensates !== undefined || compensatedBy !== undefined) return [];
  const { idempotencyKey } = call;
  const below = undoneBelow(state, call);
  const about = { callId, tool, args, output: result?.content ?? null, idempotencyKey };
  const person = (reason: string): KeyedStep[] => [{ ...about, by: 'person', reason }];
  const isDoubtful = wasStopped(call) || (status.kind === 'failed' && !status.certain);
  const mayHaveBegun = status.kind === 'completed' || status.kind === 'awaiting' || isDoubtful;
  if (below !== null) return mayHaveBegun ? person(below) : [];
  if (status.kind === 'completed') {
    if (call.scope === 'global') return person('other sessions share the effect');
    return toolOf(state, call)?.compensate === undefined
      ? person('the tool has no compensate')
      : [{ ...about, by: 'tool' }];
  }
  return isDoubtful && isFinal(call) ? person('nobody knows whether it happened') : [];
}

/** What a person types to undo the effects of a sub-agent, which are its own; `null`: no agent answers the call. */
function undoneBelow(
  { children, manifest, origin, sessionId }: SessionState,
  call: Pick<ToolCall, 'name' | 'idempotencyKey'>,
): string | null {
  const { name, idempotencyKey } = call;
  const child = children?.find((one) => isChildOf(one.sessionId, call));
  if (child === undefined && manifest?.tools[name]?.agent === undefined) return null;
  const above = origin?.kind === 'fork' ? origin.sessionId : sessionId;
  const id = child?.sessionId ?? childId(above, name, idempotencyKey);
  return child !== undefined && child.end === undefined
    ? `its sub-agent is at work. First: perdure cancel ${id} --undo`
    : `its sub-agent has effects of its own: perdure checkpoints rewind ${id} <checkpoint> --undo`;
}

/** Of effects from before a rewind, only the output is known. */
function carriedSteps(state: SessionState): KeyedStep[] {
  return state.carried
    .filter(({ undone, compensates }) => undone !== true && compensates === undefined)
    .map(({ callId, tool, output, doubt, idempotencyKey }) => ({
      callId,
      tool,
      args: null,
      output,
      by: 'person' as const,
      reason: undoneBelow(state, { name: tool, idempotencyKey }) ?? doubt ?? 'it is from before a rewind',
      idempotencyKey,
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
  // The undo of a rewind may be over, and another one begin.
  if (state.undo !== undefined && state.undo.begun !== true) return;
  const next = newUndo(state, undo, undoSteps(state), who, moment);
  if (isUndoing(state) && state.undo?.batch !== undefined) state.undo.next = next;
  else if (!isUndoing(state)) state.undo = next;
}

function newUndo(
  state: SessionState,
  undo: Exclude<UndoInput, false>,
  steps: readonly KeyedStep[],
  who: Pick<Undo, 'by' | 'verified' | 'at'>,
  moment: Moment,
): Undo {
  if (undo === true) return { ...who };
  if (planOf(steps).digest === undo.digest)
    return { ...who, approved: steps.filter(({ by }) => by === 'tool').map(({ callId }) => callId) };
  note(state, moment, 'undo', 'the effects are others than on the approved list: a person approves each');
  return { ...who };
}

/** Begins a run after a rewind with the compensations of what it leaves. The calls of the checkpoint go on afterwards. */
export function undoSince(
  state: SessionState,
  undo: UndoInput | undefined,
  { steps, manifest }: { steps: readonly KeyedStep[]; manifest: Manifest | null },
  by: string,
  moment: Moment,
): void {
  if (undo === undefined || undo === false) return;
  // The tools of the run that is left undo its effects: the checkpoint's definition may be older.
  if (manifest !== null) state.manifest = manifest;
  const { batch } = state;
  state.undo = { ...newUndo(state, undo, steps, { by, at: iso(moment) }, moment), begun: true, batch };
  state.batch = [];
  addSteps(state, steps, moment);
  if (state.batch.length === 0) endUndo(state);
}

/** Clears a batch of compensations. The model has not asked for them. */
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
  const earlier = earlierCalls(state);
  if (earlier > 0)
    note(
      state,
      moment,
      'undo',
      `the effects of ${earlier} calls of earlier runs stay: a rewind with undo reaches them`,
    );
  addSteps(state, undoSteps(state), moment);
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
  return freeId(`undo_${callId}`, (id) => findCall(state, id) !== undefined);
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
