import { isFinal, type ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { CarriedEffect } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import type { KeyedStep } from '../contract/undo.ts';
import { chargeLost } from '../session/budget.ts';
import { isOpen } from '../session/state.ts';
import { undoSteps } from '../session/undo-plan.ts';

/**
 * What a rewind must know about the runs that it leaves.
 *
 * @param past - the state at the checkpoint
 * @param last - the last state of the session
 * @param branch - the last state of the checkpoint's own run, which an earlier rewind may have abandoned
 */
export function whatHappened(
  past: SessionState,
  last: SessionState,
  branch: SessionState | null = last,
): NonNullable<Loaded['after']> {
  const endedThen = new Set(past.calls.filter(isFinal).map(sameCall));
  const undoneThen = new Set(past.calls.filter(isCompensated).map(sameCall));
  const runs = branch === null || branch === last ? [last] : [branch, last];
  const isNews = (call: ToolCall): boolean =>
    isCompensated(call)
      ? !undoneThen.has(sameCall(call))
      : call.effect === 'mutate' && !endedThen.has(sameCall(call));
  const effects = new Map<string, CarriedEffect>();
  const take = (effect: CarriedEffect): void => {
    const key = `${effect.callId} ${effect.idempotencyKey}`;
    // If one branch knows the outcome, it does not matter that the other was abandoned before it knew.
    const isBetter = effect.undone === true || effects.get(key)?.doubt !== undefined;
    if (isBetter || !effects.has(key)) effects.set(key, effect);
  };
  for (const run of runs) {
    run.carried.forEach(take);
    run.calls
      .filter((call) => call.replayOf === null && isNews(call))
      .flatMap(carriedEffect)
      .forEach(take);
  }
  const ended: NonNullable<Loaded['after']>['ended'] = {};
  for (const open of past.calls.filter((call) => past.batch.includes(call.id) && !isFinal(call))) {
    const later = runs.flatMap(({ calls }) => calls.filter((call) => sameCall(call) === sameCall(open)));
    ended[open.id] = later.some(({ status }) => isAbsent(status)) ? 'absent' : null;
  }
  const messagesTaken = Math.max(...runs.map((run) => run.messagesTaken));
  const { pool } = last;
  return {
    effects: [...effects.values()],
    ended,
    spent: spentAtWorst(last),
    ...defined({ pool }),
    messagesTaken,
  };
}

/**
 * What the undo of a rewind would do, the last effect first. It skips calls that were open at the checkpoint: they go
 * on.
 */
export function stepsSince(
  past: SessionState,
  last: SessionState,
  branch: SessionState | null = last,
): KeyedStep[] {
  const known = new Set(past.calls.map(sameCall));
  const undone = last.carried.filter((effect) => effect.undone === true);
  for (const { callId: id, idempotencyKey } of [...past.carried, ...undone])
    known.add(sameCall({ id, idempotencyKey }));
  const steps = new Map<string, KeyedStep>();
  for (const run of branch === null || branch === last ? [last] : [last, branch]) {
    for (const step of undoSteps(run)) {
      const key = sameCall({ id: step.callId, idempotencyKey: step.idempotencyKey });
      // Only an effect's own run knows its arguments. A run that carried the effect over a rewind does not.
      if (!known.has(key) && (steps.get(key)?.args ?? null) === null) steps.set(key, step);
    }
  }
  return [...steps.values()];
}

/** What a run has spent at most: a request that was under way when the run was left is charged as lost. */
export function spentAtWorst({ budget }: SessionState): SessionState['budget']['spent'] {
  const spent = structuredClone(budget.spent);
  chargeLost(spent, budget.reserved.tokens > 0 ? 1 : 0, budget.reserved);
  return spent;
}

/** Identifies a call. The id is not enough: runs that continue from one checkpoint give their calls the same ids. */
export function sameCall({ id, idempotencyKey }: Pick<ToolCall, 'id' | 'idempotencyKey'>): string {
  return `${id} ${idempotencyKey}`;
}

function isCompensated({ compensatedBy }: ToolCall): boolean {
  return compensatedBy !== undefined;
}

function isAbsent(status: ToolCall['status']): boolean {
  return status.kind === 'skipped' || (status.kind === 'failed' && status.certain);
}

function carriedEffect(call: ToolCall): CarriedEffect[] {
  const { id: callId, name: tool, idempotencyKey, status, result, scope, keyOf, message, compensates } = call;
  const effect = {
    callId,
    tool,
    idempotencyKey,
    ...(scope === 'message' ? { message: keyOf ?? message } : {}),
    ...defined({ compensates }),
    ...(call.compensatedBy === undefined ? {} : { undone: true as const }),
  };
  // An equal call finds the session of the sub-agent in the background, and its outcome.
  if (call.background === true) return [{ ...effect, output: null, open: true }];
  if (status.kind === 'completed') return [{ ...effect, output: result?.content ?? null }];
  // An effect of scope `global` has a session of its own, which knows the outcome.
  const doubtful = isOpen(call) || (status.kind === 'failed' && !status.certain);
  if (!doubtful || scope === 'global') return [];
  const doubt = `the outcome of ${callId} is unknown: a rewind left it behind`;
  return [{ ...effect, output: null, doubt, ...(status.kind === 'awaiting' ? { open: true as const } : {}) }];
}
