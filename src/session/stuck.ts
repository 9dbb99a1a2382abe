/**
 * Looks for tools and agents that a worker lacked. The session asks for the agent's definition, after pauses that
 * double, and continues when a worker has the missing tool or agent.
 */
import type { DescribeResult } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { setManifest } from './manifest.ts';
import { describeCommand } from './model-command.ts';
import { batchCalls, flightOf, iso } from './state.ts';
import { isCompensation } from './undo.ts';
import { cannotAct } from './wait.ts';

/**
 * Each look adds eleven events. Once an hour is rare enough: a tool may be gone for a month and not fill the history.
 */
const RECHECK = { firstMs: 1_000, maxMs: 3_600_000 };

/** How often a sub-agent that has not begun looks for its agent: the pauses add up to 63 seconds. */
const CHILD_CHECKS = 6;

/** The look that is due, or the timer until the next look. One timer serves all stuck calls. */
export function lookForTools(state: SessionState, calls: readonly ToolCall[]): Step | null {
  const stuck = calls.filter(({ status }) => status.kind === 'stuck' && status.failed !== true);
  const [first] = stuck;
  if (first === undefined || state.inFlight.some(({ kind }) => kind === 'describe')) return null;
  if (stuck.some(({ status }) => status.kind === 'stuck' && status.due === true)) {
    return { type: 'issue', command: describeCommand(state) };
  }
  if (first.status.kind !== 'stuck' || flightOf(state, first.id, 'recheck') !== undefined) return null;
  // Earlier dispatches count, too: a call that is stuck again continues with its last pause.
  const before = first.dispatches.length - 1 + (first.status.checks ?? 0);
  const ms = Math.min(RECHECK.maxMs, RECHECK.firstMs * 2 ** before);
  const summary = `look for the tool ${first.name}`;
  return { type: 'issue', callId: first.id, command: { kind: 'timer', seq: state.seq + 1, ms, summary } };
}

/** Like {@link lookForTools}, for a session that waits for its agent. */
export function lookForAgent(state: SessionState): Step | null {
  const { away } = state;
  if (away === undefined || state.wait?.reason !== 'agent_unavailable') return null;
  if (state.inFlight.some(({ kind }) => kind === 'describe' || kind === 'agent_recheck')) return null;
  if (away.due === true) return { type: 'issue', command: describeCommand(state) };
  const ms = Math.min(RECHECK.maxMs, RECHECK.firstMs * 2 ** away.checks);
  const summary = `look for the agent ${state.agent}`;
  return { type: 'issue', command: { kind: 'timer', seq: state.seq + 1, ms, summary } };
}

/** Applies the result of a look for a missing agent. */
export function lookedForAgent(
  state: SessionState,
  outcome: ActivityOutcome<DescribeResult>,
  moment: Moment,
): void {
  delete state.away?.due;
  // A worker without the agent answered, or no worker in time: the session looks again.
  if (!outcome.ok || (outcome.value.kind === 'unavailable' && outcome.value.lookAgain === true)) {
    giveUp(state, moment);
    return;
  }
  const found = outcome.value;
  state.wait = null;
  if (found.kind === 'unavailable') cannotAct(state, moment, found);
  else if (state.manifest === null) {
    state.searchAttributes = found.searchAttributes;
    setManifest(state, found.manifest, moment);
  } else if (found.manifest.digest !== state.manifest.digest) setManifest(state, found.manifest, moment);
}

/**
 * Ends a sub-agent that has not begun if no worker has had its agent for a minute. The parent is told, and can do
 * without.
 */
function giveUp(state: SessionState, moment: Moment): void {
  const { parent, manifest, away, wait, agent } = state;
  if (parent === undefined || manifest !== null || (away?.checks ?? 0) < CHILD_CHECKS) return;
  state.cancelling ??= { by: agent, at: iso(moment), reason: wait?.message ?? '' };
}

/** Applies the result of a look for missing tools. */
export function lookedForTools(
  state: SessionState,
  outcome: ActivityOutcome<DescribeResult>,
  moment: Moment,
): void {
  const manifest = outcome.ok && outcome.value.kind === 'manifest' ? outcome.value.manifest : null;
  const stuck = batchCalls(state).filter(({ status }) => status.kind === 'stuck' && status.failed !== true);
  for (const { status } of stuck) if (status.kind === 'stuck') delete status.due;
  const found = stuck.filter((call) => {
    const tool = manifest?.tools[call.name];
    return (isCompensation(call) ? tool?.compensate : tool) !== undefined;
  });
  if (manifest === null || found.length === 0) return;
  // A global effect keeps its definition, which has only its own tool.
  if (state.effect === null && manifest.digest !== state.manifest?.digest) {
    setManifest(state, manifest, moment);
  }
  for (const call of found) if (call.status.kind === 'stuck') call.status = { kind: 'ready' };
}
