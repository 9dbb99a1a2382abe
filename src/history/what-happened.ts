import { isFinal, type ToolCall } from '../contract/calls.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { CarriedEffect } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import { isOpen } from '../session/state.ts';

/** What a rewind must know of the branch that it leaves: from the state at the checkpoint and at the run's end. */
export function whatHappened(past: SessionState, last: SessionState): NonNullable<Loaded['after']> {
  const endedThen = new Set(past.calls.filter(isFinal).map(({ id }) => id));
  const effects = last.calls
    .filter(({ id, effect, replayOf }) => effect === 'mutate' && replayOf === null && !endedThen.has(id))
    .flatMap(carriedEffect);
  const ended: NonNullable<Loaded['after']>['ended'] = {};
  for (const id of past.batch.filter((open) => !endedThen.has(open))) {
    const status = last.calls.find((call) => call.id === id)?.status;
    ended[id] = status?.kind === 'skipped' || (status?.kind === 'failed' && status.certain) ? 'absent' : null;
  }
  return { effects: [...last.carried, ...effects], ended, spent: last.budget.spent };
}

function carriedEffect(call: ToolCall): CarriedEffect[] {
  const { id: callId, name: tool, idempotencyKey, status, result, scope } = call;
  if (status.kind === 'completed') return [{ callId, tool, idempotencyKey, output: result?.content ?? null }];
  // An effect of scope `global` has a session of its own, which knows what became of it.
  const doubtful = isOpen(call) || (status.kind === 'failed' && !status.certain);
  if (!doubtful || scope === 'global') return [];
  const doubt = `nobody knows what became of ${callId}, which was left behind by a rewind`;
  return [{ callId, tool, idempotencyKey, output: null, doubt }];
}
