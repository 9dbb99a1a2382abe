/** The views of the state that queries and the client show. */
import { dispatchNoOf, type SeenDispatch, type ToolCall } from '../contract/calls.ts';
import { defined, jsonSize } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { type Message, textsOf } from '../contract/messages.ts';
import type { NextStep } from '../contract/next-step.ts';
import { KEPT_TEXT } from '../contract/past.ts';
import type { SessionState } from '../contract/state.ts';
import type { ContentRef } from '../contract/thread.ts';
import { isMain } from '../contract/view.ts';
import type {
  BudgetView,
  CallDetail,
  Page,
  PageInput,
  PendingCall,
  RunPage,
  SessionView,
} from '../contract/views.ts';
import { effectId } from '../contract/workflow-ids.ts';
import { needsOf } from './approvers.ts';
import { usd } from './budget.ts';
import { sleepingCalls } from './built-in.ts';
import { poolHeld } from './pool.ts';
import { questionOf, seenDigest } from './question.ts';
import { scratchpadFiles } from './scratchpad.ts';
import { batchCalls, lastOutput, lastText, phaseOf, toolOf } from './state.ts';

/** A session at a glance. */
export function sessionView(state: SessionState): SessionView {
  return {
    sessionId: state.sessionId,
    runId: state.runId,
    agent: state.agent,
    context: state.context,
    mode: state.mode,
    ...defined({
      parent: state.parent,
      children: state.children?.map(({ sessionId, agent, callId }) => ({ sessionId, agent, callId })),
    }),
    effect: state.effect && { requestedBy: state.effect.requestedBy, ttlMs: state.effect.ttlMs },
    createdAt: state.createdAt,
    status: state.status,
    phase: phaseOf(state),
    turn: state.turn,
    messages: (state.past?.messages ?? 0) + state.transcript.length,
    queued: state.inbox.length,
    calls: (state.past?.calls ?? 0) + state.calls.length,
    pending: pendingCalls(state),
    wait: state.wait,
    paused:
      state.paused === null
        ? null
        : { by: state.paused.by, at: state.paused.at, reason: state.paused.reason },
    budget: budgetView(state),
    plan: state.plan,
    scratchpadRoot: state.scratchpadRoot,
    scratchpad: scratchpadFiles(state),
    sleeping: sleepingCalls(state),
    reminders: state.reminders ?? [],
    manifestDigest: state.manifest?.digest ?? null,
    agentChanges: state.agentChanges ?? [],
    models: state.manifest?.models.map(({ id }) => id) ?? [],
    notices: state.notices,
    lastText: lastText(state).slice(0, KEPT_TEXT),
    ...defined({ limited: state.limited, output: lastOutput(state) }),
  };
}

/** The calls that wait for a person, each with its next step. */
export function pendingCalls(state: SessionState): PendingCall[] {
  return batchCalls(state).flatMap((call) => pending(state, call));
}

function pending(state: SessionState, call: ToolCall): PendingCall[] {
  const { status } = call;
  if (
    status.kind !== 'approval' &&
    status.kind !== 'unknown' &&
    status.kind !== 'stuck' &&
    status.kind !== 'awaiting'
  )
    return [];
  const seen = { callId: call.id, argsDigest: seenDigest(call), dispatchNo: dispatchNoOf(call) };
  const next = nextOf(state.sessionId, call, seen);
  if (next === null) return [];
  return [
    {
      ...seen,
      tool: call.name,
      args: call.args,
      idempotencyKey: call.idempotencyKey,
      effect: call.effect,
      ...defined({ compensates: call.compensates?.callId }),
      ...defined({ askedAt: messageWith(state, call.id)?.created_at }),
      status,
      decision: call.decision,
      ...needsOf(state, call),
      ...questionOf(toolOf(state, call), call),
      next,
    },
  ];
}

/** The model's message that asks for a call, if it is in this run. */
function messageWith({ transcript }: SessionState, callId: string): Message | undefined {
  return transcript.findLast(({ blocks }) =>
    blocks.some((block) => block.kind === 'tool_call' && block.id === callId),
  );
}

/** A call with what a person needs to decide about it; `null` when it is not in this run. */
export function callDetail(state: SessionState, callId: string): CallDetail | null {
  const call = state.calls.find(({ id }) => id === callId);
  if (call === undefined) return null;
  const reply = messageWith(state, callId);
  const before = reply === undefined ? [] : state.transcript.slice(0, state.transcript.indexOf(reply));
  const message = before.findLast((said) => said.role === 'user' && isMain(said));
  return {
    call,
    tool: state.manifest?.tools[call.name] ?? null,
    ...defined({ pending: pendingCalls(state).find((waiting) => waiting.callId === callId) }),
    asked: { message: textOf(message), text: textOf(reply) },
  };
}

function textOf(message: Message | undefined): string {
  return message === undefined ? '' : textsOf(message).join('\n');
}

/** What a person can do about a call; `null` when no person is needed. */
function nextOf(
  sessionId: string,
  { status, idempotencyKey, compensates }: ToolCall,
  seen: SeenDispatch,
): NextStep | null {
  switch (status.kind) {
    case 'approval':
      return {
        action: 'decide',
        sessionId,
        callId: seen.callId,
        argsDigest: seen.argsDigest,
        ...(compensates === undefined ? {} : { undoes: true as const }),
      };
    case 'unknown':
      return { action: 'resolve', sessionId, ...seen };
    case 'stuck':
      return { action: 'resume', sessionId, call: seen };
    case 'awaiting': {
      const { person } = status;
      if (person === undefined) return null;
      if ('taskQueue' in person) return { action: 'resume', sessionId };
      const effect = effectId(idempotencyKey);
      return person.kind === 'unknown'
        ? { action: 'resolve', sessionId: effect, ...person.call }
        : { action: 'resume', sessionId: effect, call: person.call };
    }
    default:
      return null;
  }
}

/** What was spent and reserved, and the caps. */
export function budgetView(state: SessionState): BudgetView {
  const { nanoUsd, lostNanoUsd, ...spent } = state.budget.spent;
  return {
    limits: state.budget.limits,
    spent: { ...spent, usd: usd(nanoUsd), lostUsd: usd(lostNanoUsd) },
    reserved: { usd: usd(state.budget.reserved.nanoUsd), tokens: state.budget.reserved.tokens },
    ...defined({ pool: poolHeld(state) }),
    unpriced: state.manifest?.models.filter(({ price }) => price === null).map(({ id }) => id) ?? [],
  };
}

/**
 * A page of a list. It holds fewer entries than asked if they would be too large for a query's answer, but at least
 * one.
 *
 * @param past - the number of entries before the list. The page has none of them.
 */
export function pageOf<T>(items: readonly T[], input: PageInput = {}, past = 0): Page<T> {
  const total = past + items.length;
  const end = Math.max(0, Math.min(total, whole(input.before, total)));
  const limit = Math.max(0, whole(input.limit, 50));
  let first = end;
  for (let bytes = 0; first > past && end - first < limit; first--) {
    bytes += jsonSize(items[first - 1 - past]);
    if (bytes > LIMIT.queryResult && first < end) break;
  }
  return { items: items.slice(Math.max(0, first - past), Math.max(0, end - past)), first, total };
}

/** A page of the messages that are in this run. */
export function messagesPage({ transcript, past }: SessionState, page?: PageInput): RunPage<Message> {
  return runPage(transcript, page, past && { count: past.messages, newest: past.newest });
}

/** A page of the calls that are in this run. */
export function callsPage({ calls, past }: SessionState, page?: PageInput): RunPage<ToolCall> {
  return runPage(calls, page, past && { count: past.calls, newest: past.newest });
}

/** A page, and where its missing entries are, if they have left the run. */
function runPage<T>(
  items: readonly T[],
  input: PageInput = {},
  past: { count: number; newest: ContentRef } | undefined,
): RunPage<T> {
  const page = pageOf(items, input, past?.count);
  // Large entries may cut a page short within the run: then the next page goes on there.
  const isWhole = past === undefined || page.first === 0 || page.first > past.count;
  return isWhole || page.items.length >= (input.limit ?? 50) ? page : { ...page, past: past.newest };
}

/** A whole number, or `otherwise`: a client in another language may send something that is not a number. */
function whole(value: number | undefined, otherwise: number): number {
  const n = Math.trunc(value ?? otherwise);
  return Number.isNaN(n) ? otherwise : n;
}
