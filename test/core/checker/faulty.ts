/** Wrappers around the core's transition functions, to plant faults with. */

import { isFinal } from '../../../src/contract/calls.ts';
import type { CallStatus, CarriedEffect, SessionState, ToolCall } from '../../../src/index.ts';
import type { Input } from '../../../src/session/events.ts';
import { CORE, type Protocol } from './node.ts';

type Evolve = Protocol['evolve'];
type Decide = Protocol['decide'];
type Take = Protocol['take'];

export const evolving = (
  wrap: (state: SessionState, input: Input, evolve: () => ReturnType<Evolve>) => ReturnType<Evolve>,
): Protocol => ({
  ...CORE,
  evolve: (state, input, moment) => wrap(state, input, () => CORE.evolve(state, input, moment)),
});
export const deciding = (
  wrap: (state: SessionState, decide: Decide, moment: Parameters<Decide>[1]) => ReturnType<Decide>,
): Protocol => ({
  ...CORE,
  decide: (state, moment) => wrap(state, CORE.decide, moment),
});
export const taking = (
  wrap: (state: SessionState, step: Parameters<Take>[1], take: () => ReturnType<Take>) => ReturnType<Take>,
): Protocol => ({
  ...CORE,
  take: (state, step, moment) => wrap(state, step, () => CORE.take(state, step, moment)),
});

/** The first call in a status. */
export function callIn(state: SessionState, kind: CallStatus['kind']): ToolCall | undefined {
  return state.calls.find(({ status }) => status.kind === kind);
}

/** After an input, puts a call that came to one status into another. */
export const instead = (
  from: 'settling' | 'unknown' | 'approval' | 'awaiting',
  status: CallStatus,
): Protocol =>
  evolving((state, _input, evolve) => {
    const refusal = evolve();
    const call = callIn(state, from);
    if (call === undefined) return refusal;
    call.status = status;
    if (isFinal(call)) {
      call.result = { content: 'made up', isError: status.kind !== 'completed' };
      call.completedAt = state.createdAt;
    }
    return refusal;
  });

/** Changes what a session takes over from its checkpoint. */
export const planting = (change: (state: SessionState) => void): Protocol =>
  evolving((state, input, evolve) => {
    const refusal = evolve();
    if (input.type === 'outcome' && input.outcome.kind === 'load') change(state);
    return refusal;
  });

/** Leaves out some of what a rewind carries over. */
export const forgetting = (which: (effect: CarriedEffect) => boolean): Protocol =>
  planting((state) => {
    state.carried = state.carried.filter((effect) => !which(effect));
  });
