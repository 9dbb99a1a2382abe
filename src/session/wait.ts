/** Stops a session visibly until somebody acts. */
import type { AgentUnavailable } from '../contract/model-call.ts';
import type { NextStep } from '../contract/next-step.ts';
import type { SessionState, WaitReason } from '../contract/state.ts';
import type { Moment } from './events.ts';
import { iso } from './state.ts';

/** Instead of waiting for one of these reasons, a sub-agent ends: its parent is told why, and decides what to do. */
const ENDS_CHILD: ReadonlySet<WaitReason> = new Set(['budget', 'context_invalid', 'instructions_failed']);

/** Stops the session visibly until somebody does what `next` says. */
export function stop(
  state: SessionState,
  moment: Moment,
  reason: WaitReason,
  message: string,
  next: NextStep = { action: 'resume', sessionId: state.sessionId },
): void {
  if (state.parent !== undefined && ENDS_CHILD.has(reason) && next.action !== 'pool') {
    state.cancelling ??= {
      by: state.agent,
      at: iso(moment),
      reason: `${reason}: ${message}`.slice(0, 4_000),
    };
    return;
  }
  state.wait = {
    reason,
    message: message.slice(0, 4_000),
    since: iso(moment),
    next,
  };
}

/** Stops a session whose worker cannot act for it. */
export function cannotAct(
  state: SessionState,
  moment: Moment,
  { reason, message, lookAgain }: AgentUnavailable,
): void {
  stop(state, moment, reason ?? 'agent_unavailable', message);
  // If only some workers have the agent, the pauses keep doubling until a model call has run.
  if (lookAgain === true) state.away ??= { checks: 0 };
}
