/**
 * Calls of a tool that is another agent. The agent works in a session of its own, which reports to this one. The call waits
 * for it as a call of scope `global` waits for its effect: with nothing in flight.
 */
import type { AttachInput } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { SessionState } from '../contract/state.ts';
import {
  type Child,
  type ChildEnd,
  childId,
  isChildOf,
  TREE_LIMIT,
  type TreeUsage,
} from '../contract/tree.ts';
import type { Moment, Step } from './events.ts';
import { endCall, heartbeatMs, iso, lastOutput, lastText, toolOf } from './state.ts';
import { resultLimit } from './tool-command.ts';

/** The sub-agent of a call, if the call has started one. */
export function childOf({ children }: SessionState, call: ToolCall): Child | undefined {
  return children?.find(({ callId, sessionId }) => callId === call.id && isChildOf(sessionId, call));
}

/** Whether another agent answers a call. */
export function isDelegated(state: SessionState, call: ToolCall): boolean {
  return toolOf(state, call)?.agent !== undefined || childOf(state, call) !== undefined;
}

/** The sub-agents that have not ended. */
export function openChildren({ children = [] }: SessionState): Child[] {
  return children.filter(({ end }) => end === undefined);
}

/** What to tell an `attach` activity of the sub-agent of a call. */
export function childPart(state: SessionState, call: ToolCall): Pick<AttachInput, 'child'> {
  const tool = toolOf(state, call)?.agent;
  const agent = childOf(state, call)?.agent ?? tool?.name;
  if (agent === undefined) return {};
  const { sessionId, parent } = state;
  return {
    child: {
      sessionId: childId(sessionId, call.name, call.idempotencyKey),
      agent,
      ...defined({ taskQueue: tool?.taskQueue, pool: state.pool?.id }),
      parent: {
        sessionId,
        callId: call.id,
        root: parent?.root ?? sessionId,
        depth: (parent?.depth ?? 0) + 1,
        path: [...(parent?.path ?? []), state.agent],
        ...resultLimit(state),
      },
    },
  };
}

/** Why a call may not start its agent, in words for the model, or `null`. */
export function delegationProblem(state: SessionState, call: ToolCall): string | null {
  const { child } = childPart(state, call);
  if (child === undefined || childOf(state, call) !== undefined) return null;
  const { agent, sessionId, parent } = child;
  if (parent.path.includes(agent)) {
    return `${agent} is already at work above: ${parent.path.join(' > ')}. Do this yourself, or end with what you have`;
  }
  const depth = state.manifest?.subAgents?.depth ?? TREE_LIMIT.depth;
  if (parent.depth > depth) {
    return `${parent.path.join(' > ')} is as deep as agents may go (${depth}). Do this yourself, or end with what you have`;
  }
  return sessionId.length > LIMIT.sessionId
    ? `the id of its session would have more than ${LIMIT.sessionId} characters: ${sessionId}. Give the root a shorter id`
    : null;
}

/** Whether a call has to wait until another sub-agent has ended. */
export function isCrowded(state: SessionState): boolean {
  return openChildren(state).length >= (state.manifest?.subAgents?.open ?? TREE_LIMIT.open);
}

/** Records that a sub-agent is being started. After a rewind it may be there already. */
export function delegated(state: SessionState, call: ToolCall): void {
  const { child } = childPart(state, call);
  if (child === undefined) return;
  const { sessionId, agent } = child;
  const others = (state.children ?? []).filter((other) => other.sessionId !== sessionId);
  state.children = [...others, { sessionId, agent, callId: call.id }];
}

/** Ends a call with what its sub-agent reports. */
export function applyChildEnd(
  state: SessionState,
  childSession: string,
  end: ChildEnd,
  moment: Moment,
): void {
  const child = state.children?.find(({ sessionId }) => sessionId === childSession);
  if (child === undefined || child.end !== undefined) return;
  const at = iso(moment);
  child.end = { status: end.status, at, ...defined({ usage: end.usage }) };
  const call = state.calls.findLast(({ id }) => id === child.callId);
  if (call === undefined || (call.status.kind !== 'running' && call.status.kind !== 'awaiting')) return;
  const dispatch = call.dispatches.at(-1);
  if (dispatch !== undefined) dispatch.outcome = 'returned';
  if (end.status === 'completed') {
    endCall(call, { kind: 'completed' }, { content: end.output, isError: false }, at);
    return;
  }
  const why = typeof end.output === 'string' ? end.output : JSON.stringify(end.output);
  const content = `${child.agent} ended without an answer: ${why}`;
  endCall(call, { kind: 'failed', certain: false }, { content, isError: true }, at);
}

/** What a session and the sessions below it have used. */
export function usageOf({ budget: { spent }, children = [], childrenUsed }: SessionState): TreeUsage {
  const { turns, toolCalls, inputTokens, outputTokens, nanoUsd, activeMs } = spent;
  const own: TreeUsage = { turns, toolCalls, inputTokens, outputTokens, nanoUsd, activeMs };
  return total([own, childrenUsed, ...children.map(({ end }) => end?.usage)]);
}

function total(parts: readonly (TreeUsage | undefined)[]): TreeUsage {
  const sum: TreeUsage = { turns: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, nanoUsd: 0, activeMs: 0 };
  for (const part of parts) {
    for (const key of Object.keys(sum) as (keyof TreeUsage)[]) sum[key] += part?.[key] ?? 0;
  }
  return sum;
}

/** Lets go of the sub-agents that have ended, when their calls leave the run. Only what they have used goes along. */
export function leaveChildren(state: SessionState): void {
  const { children, childrenUsed } = state;
  if (children === undefined) return;
  const ended = children.filter(({ end, callId }) => end !== undefined && !state.batch.includes(callId));
  if (ended.length === 0) return;
  state.childrenUsed = total([childrenUsed, ...ended.map(({ end }) => end?.usage)]);
  const rest = children.filter((child) => !ended.includes(child));
  if (rest.length > 0) state.children = rest;
  else delete state.children;
}

/** How a session that has ended reports itself. */
export function endOf(state: SessionState): ChildEnd {
  const usage = usageOf(state);
  if (state.cancelling !== null) {
    const { by, reason } = state.cancelling;
    return { status: 'cancelled', output: reason === '' ? `${by} cancelled it` : reason, usage };
  }
  return { status: 'completed', output: lastOutput(state) ?? lastText(state), usage };
}

/** What a session that another one has started does before it closes: it reports. `null`: it has. */
export function reportEnd(state: SessionState, { result }: Extract<Step, { type: 'close' }>): Step | null {
  const { parent } = state;
  if (parent === undefined || state.ending !== undefined) return null;
  const { sessionId, callId } = parent;
  return {
    type: 'issue',
    command: {
      kind: 'report',
      seq: state.seq + 1,
      input: {
        waiters: [{ sessionId, callId }],
        end: endOf(state),
        ...defined({ resultLimit: parent.resultLimit }),
      },
      heartbeatMs: heartbeatMs(state),
      summary: `report to ${sessionId} ${callId}: ${result.status}`,
    },
  };
}
