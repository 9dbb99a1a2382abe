/**
 * Calls that another agent answers. The agent works in a session of its own, which reports to this session. The call
 * waits with nothing in flight, as a call of scope `global` waits for its effect.
 */
import type { AttachInput } from '../contract/activities.ts';
import { isFinal, type ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { SessionState } from '../contract/state.ts';
import {
  type AgentReport,
  type BackgroundStart,
  type Child,
  type ChildEnd,
  type ChildStart,
  childId,
  isChildOf,
  TREE_LIMIT,
  type TreeUsage,
} from '../contract/tree.ts';
import type { Moment, Step } from './events.ts';
import {
  endCall,
  findCall,
  freshMessageId,
  heartbeatMs,
  iso,
  lastMessage,
  lastOutput,
  lastText,
  openBackground,
  openChildren,
  toolOf,
} from './state.ts';
import { resultLimit } from './tool-command.ts';

/** The sub-agent of a call, if the call has started one. */
export function childOf({ children }: SessionState, call: ToolCall): Child | undefined {
  return children?.find(({ callId, sessionId }) => callId === call.id && isChildOf(sessionId, call));
}

/** Whether another agent answers a call. */
export function isDelegated(state: SessionState, call: ToolCall): boolean {
  return toolOf(state, call)?.agent !== undefined || childOf(state, call) !== undefined;
}

/** What an `attach` activity is told about the sub-agent of a call; empty for any other call. */
export function childPart(state: SessionState, call: ToolCall): Pick<AttachInput, 'child'> {
  const tool = toolOf(state, call)?.agent;
  const agent = childOf(state, call)?.agent ?? tool?.name;
  if (agent === undefined) return {};
  const sessionId = childId(state.sessionId, call.name, call.idempotencyKey);
  const child = childStart(state, { sessionId, agent, callId: call.id });
  return { child: { ...child, ...defined({ taskQueue: tool?.taskQueue }) } };
}

/** What an `attach` activity must know about a sub-agent. */
export function childStart(
  state: SessionState,
  { sessionId: child, agent, callId }: Pick<Child, 'sessionId' | 'agent' | 'callId'>,
): ChildStart {
  const { sessionId, parent } = state;
  return {
    sessionId: child,
    agent,
    ...defined({ pool: state.pool?.id, authors: authorsFor(state, callId) }),
    parent: {
      sessionId,
      callId,
      root: parent?.root ?? sessionId,
      depth: (parent?.depth ?? 0) + 1,
      path: [...(parent?.path ?? []), state.agent],
      ...resultLimit(state),
    },
  };
}

/** The people who shaped the task of a call's sub-agent: the authors of this session, and those who edited the call. */
function authorsFor(state: SessionState, callId: string): string[] | undefined {
  const { decision, approvers } = findCall(state, callId) ?? {};
  const editors = [decision, ...(approvers?.given ?? [])].flatMap((record) =>
    record?.decision === 'edit' ? [record.by] : [],
  );
  const authors = new Set([...(state.authors ?? []), ...editors]);
  return authors.size === 0 ? undefined : [...authors];
}

/** Why a call may not start its sub-agent, in words for the model, or `null`. */
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
  const limit = openLimit(state);
  if (
    isCrowded(state, call) &&
    openBackground(state).length >= (toolOf(state, call)?.agent?.background ? 0 : limit)
  ) {
    return `as many agents as allowed (${limit}) are at work for you. Wait for a report, or stop one`;
  }
  return sessionId.length > LIMIT.sessionId
    ? `the id of its session would have more than ${LIMIT.sessionId} characters: ${sessionId}. Give the root a shorter id`
    : null;
}

/** Whether a call must wait until another sub-agent has ended. */
export function isCrowded(state: SessionState, call: ToolCall): boolean {
  const others = openChildren(state).filter(({ callId }) => callId !== call.id);
  return others.length >= openLimit(state);
}

function openLimit({ manifest }: SessionState): number {
  return manifest?.subAgents?.open ?? TREE_LIMIT.open;
}

/** Records that a sub-agent is being started. After a rewind, its session may exist already. */
export function delegated(state: SessionState, call: ToolCall): void {
  const { child } = childPart(state, call);
  if (child === undefined) return;
  const { sessionId, agent } = child;
  const others = (state.children ?? []).filter((other) => other.sessionId !== sessionId);
  const atEnd = toolOf(state, call)?.agent?.background;
  const background = atEnd && { tool: call.name, atEnd, checks: 0 };
  state.children = [...others, { sessionId, agent, callId: call.id, ...defined({ background }) }];
}

/** Ends the call of a sub-agent in the background. The sub-agent works on. */
export function startedInBackground(call: ToolCall, child: Child, moment: Moment): void {
  call.background = true;
  endBackgroundCall(call, { session: child.sessionId, agent: child.agent, status: 'running' }, moment);
}

function endBackgroundCall(call: ToolCall, start: BackgroundStart, moment: Moment): void {
  const dispatch = call.dispatches.at(-1);
  if (dispatch !== undefined) dispatch.outcome = 'returned';
  const isError = start.status === 'cancelled' || start.status === 'failed';
  const status = isError ? ({ kind: 'failed', certain: false } as const) : ({ kind: 'completed' } as const);
  endCall(call, status, { content: { ...start }, isError }, iso(moment));
}

/** Forgets a sub-agent in the background that was not started. */
export function notStarted(state: SessionState, child: Child): void {
  if (child.background === undefined) return;
  state.children = (state.children ?? []).filter((other) => other !== child);
  if (state.children.length === 0) delete state.children;
}

/** Ends a call with its sub-agent's report. The report of a sub-agent in the background becomes a message. */
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
  const call = findCall(state, child.callId);
  if (child.background !== undefined) {
    const { agent, sessionId: session } = child;
    if (call === undefined || isFinal(call)) report(state, child, end, moment);
    else endBackgroundCall(call, { session, agent, status: end.status, answer: end.output }, moment);
    return;
  }
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

/** Queues the message that tells the model how a sub-agent in the background has ended. */
function report(state: SessionState, child: Child, end: ChildEnd, moment: Moment): void {
  const isDone = isOver(state) && (state.finishing || child.background?.atEnd === 'cancel');
  if (state.cancelling !== null || isDone) return;
  const output = typeof end.output === 'string' ? end.output : JSON.stringify(end.output);
  const said =
    end.status === 'completed'
      ? `It has completed. Its answer:\n\n${output}`
      : `It ended without an answer: ${output}`;
  queueReport(state, child, end.status, said, moment);
}

/** Queues a message about a sub-agent. It wakes a session that rests. */
export function queueReport(
  state: SessionState,
  { agent, sessionId, callId }: Child,
  status: AgentReport['status'],
  said: string,
  moment: Moment,
): void {
  const text = `Report of your background agent ${agent}, session ${sessionId}, not a message of the user. ${said}`;
  state.inbox.push({
    id: freshMessageId(state),
    text,
    by: agent,
    at: iso(moment),
    report: { agent, session_id: sessionId, call_id: callId, status },
  });
}

/** Whether the session has given its last answer, and ends when its sub-agents have ended. */
export function isOver(state: SessionState): boolean {
  const { mode, finishing, batch, inbox } = state;
  const isLast = batch.length === 0 && inbox.length === 0 && lastMessage(state)?.role === 'assistant';
  return (mode === 'task' || finishing) && isLast;
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

/** Drops the sub-agents that have ended and whose calls leave the run. Only what they have used goes along. */
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

/** What a session reports to its parent at its end. */
export function endOf(state: SessionState): ChildEnd {
  const usage = usageOf(state);
  if (state.cancelling !== null) {
    const { by, reason } = state.cancelling;
    return { status: 'cancelled', output: reason === '' ? `${by} cancelled it` : reason, usage };
  }
  return { status: 'completed', output: lastOutput(state) ?? lastText(state), usage };
}

/** A sub-agent reports before it closes. `null`: it has reported, or it is not a sub-agent. */
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
