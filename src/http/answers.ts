/** The schemas of answers about sessions. The compiler checks them against the contract's types. */
import * as z from 'zod/mini';
import type { EffectSince } from '../checkpoints/index.ts';
import type { Inbox, InboxItem } from '../client/index.ts';
import type { AgentChange, BudgetLimits } from '../contract/manifest.ts';
import { type Message, messageBlocksSchema, messageSchema } from '../contract/messages.ts';
import type { Notice, Phase, PlanStep, QueuedMessage, Wait } from '../contract/state.ts';
import type { BudgetView, CallsPage, SessionView, TranscriptPage } from '../contract/views.ts';
import { callDetailSchema, callStatus, nextStep, pendingCallSchema, toolCall } from './call-answers.ts';
import { poolAmounts, poolViewSchema } from './pools.ts';
import { checkpointSchema, errorSchema, exactly, jsonObject, jsonValue, stepSchema, time } from './shapes.ts';

export const queuedMessageSchema: z.ZodMiniType<QueuedMessage> = exactly<QueuedMessage>()(
  z.object({
    id: z.string(),
    text: z.string(),
    blocks: z.exactOptional(messageBlocksSchema()),
    pin: z.exactOptional(z.literal(true)),
    by: z.string(),
    verified: z.exactOptional(z.literal(true)),
    at: time,
    edited: z.exactOptional(z.object({ by: z.string(), at: time })),
    check: z.exactOptional(z.literal(true)),
    aside: z.exactOptional(z.literal(true)),
    lost: z.exactOptional(z.number()),
    report: z.exactOptional(
      z.object({
        agent: z.string(),
        session_id: z.string(),
        call_id: z.string(),
        status: z.enum(['completed', 'cancelled', 'failed', 'left']),
      }),
    ),
  }),
);

export const phaseSchema: z.ZodMiniType<Phase> = exactly<Phase>()(
  z.enum([
    'starting',
    'idle',
    'thinking',
    'acting',
    'approval',
    'unknown_effect',
    'waiting',
    'paused',
    'cancelling',
    'closed',
  ]),
);

const limits: z.ZodMiniType<BudgetLimits> = exactly<BudgetLimits>()(
  z.object({
    turns: z.exactOptional(z.int()),
    toolCalls: z.exactOptional(z.int()),
    tokens: z.exactOptional(z.int()),
    usd: z.exactOptional(z.number()),
    activeMs: z.exactOptional(z.int()),
  }),
);

export const budgetViewSchema: z.ZodMiniType<BudgetView> = exactly<BudgetView>()(
  z.object({
    limits,
    spent: z.object({
      turns: z.int(),
      toolCalls: z.int(),
      inputTokens: z.int(),
      outputTokens: z.int(),
      usd: z.number(),
      lostReplies: z.int(),
      lostUsd: z.number(),
      activeMs: z.int(),
    }),
    pool: z.exactOptional(z.object({ id: z.string(), held: poolAmounts })),
    unpriced: z.array(z.string()),
    reserved: z.object({ usd: z.number(), tokens: z.int() }),
  }),
);

export const planStepSchema: z.ZodMiniType<PlanStep> = exactly<PlanStep>()(
  z.object({
    id: z.string(),
    title: z.string(),
    postconditions: z.array(z.string()),
    evidence: z.array(z.object({ postcondition: z.int(), tool: z.string(), call_id: z.string() })),
    status: z.enum(['pending', 'in_progress', 'done']),
  }),
);

const status = exactly<SessionView['status']>()(
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('active') }),
    z.object({ kind: z.literal('completed'), at: time, text: z.string() }),
    z.object({ kind: z.literal('failed'), at: time, message: z.string() }),
    z.object({ kind: z.literal('cancelled'), at: time, by: z.string(), reason: z.string() }),
    z.object({ kind: z.literal('ended'), at: z.nullable(time), run: z.string(), reason: z.string() }),
  ]),
);

export const waitSchema: z.ZodMiniType<Wait> = exactly<Wait>()(
  z.object({
    reason: z.enum([
      'agent_unavailable',
      'context_invalid',
      'instructions_failed',
      'provider_unavailable',
      'provider_rejected',
      'invalid_response',
      'history_unreadable',
      'budget',
      'loop',
      'history_limit',
      'context_window',
    ]),
    message: z.string(),
    since: time,
    next: nextStep,
  }),
);

const notice: z.ZodMiniType<Notice> = exactly<Notice>()(
  z.object({ at: time, kind: z.string(), message: z.string() }),
);

const agentChange: z.ZodMiniType<AgentChange> = exactly<AgentChange>()(
  z.object({
    at: time,
    turn: z.int(),
    from: z.string(),
    to: z.string(),
    changed: z.array(z.string()),
    addedTools: z.array(z.string()),
    removedTools: z.array(z.string()),
    more: z.exactOptional(z.int()),
  }),
);

const inboxItem: z.ZodMiniType<InboxItem> = exactly<InboxItem>()(
  z.object({
    sessionId: z.string(),
    agent: z.nullable(z.string()),
    tenant: z.nullable(z.string()),
    root: z.exactOptional(z.string()),
    path: z.exactOptional(z.array(z.string())),
    kind: z.enum(['approval', 'question', 'unknown', 'stuck', 'budget', 'wait', 'unreadable']),
    reason: z.string(),
    since: z.nullable(time),
    until: z.nullable(time),
    call: z.nullable(pendingCallSchema),
    wait: z.nullable(waitSchema),
    answers: z.array(z.object({ answer: z.string(), does: z.string(), command: z.string() })),
  }),
);

export const inboxSchema: z.ZodMiniType<Inbox> = exactly<Inbox>()(
  z.object({ items: z.array(inboxItem), waiting: z.int(), read: z.int() }),
);

export const sessionViewSchema: z.ZodMiniType<SessionView> = exactly<SessionView>()(
  z.object({
    sessionId: z.string(),
    runId: z.string(),
    agent: z.string(),
    context: z.nullable(jsonObject),
    mode: z.enum(['chat', 'task', 'effect']),
    children: z.exactOptional(
      z.array(z.object({ sessionId: z.string(), agent: z.string(), callId: z.string() })),
    ),
    parent: z.exactOptional(
      z.object({
        sessionId: z.string(),
        callId: z.string(),
        root: z.string(),
        depth: z.int(),
        path: z.array(z.string()),
        resultLimit: z.exactOptional(z.int()),
      }),
    ),
    effect: z.nullable(z.object({ requestedBy: z.string(), ttlMs: z.number() })),
    createdAt: time,
    status,
    phase: phaseSchema,
    turn: z.int(),
    messages: z.int(),
    queued: z.int(),
    calls: z.int(),
    pending: z.array(pendingCallSchema),
    wait: z.nullable(waitSchema),
    limited: z.exactOptional(z.object({ key: z.string(), message: z.string(), since: time })),
    paused: z.nullable(z.object({ by: z.string(), at: time, reason: z.string() })),
    budget: budgetViewSchema,
    plan: z.array(planStepSchema),
    scratchpadRoot: z.nullable(z.string()),
    scratchpad: z.array(z.object({ path: z.string(), bytes: z.int() })),
    sleeping: z.array(
      z.object({ callId: z.string(), argsDigest: z.string(), until: time, reason: z.string() }),
    ),
    reminders: z.array(z.object({ id: z.string(), at: time, text: z.string(), setAt: time })),
    manifestDigest: z.nullable(z.string()),
    agentChanges: z.array(agentChange),
    models: z.array(z.string()),
    notices: z.array(notice),
    lastText: z.string(),
    output: z.exactOptional(jsonValue),
  }),
);

export const effectSinceSchema: z.ZodMiniType<EffectSince> = exactly<EffectSince>()(
  z.object({
    callId: z.string(),
    tool: z.string(),
    again: z.enum(['answered', 'doubtful', 'repeated', 'undone']),
    args: jsonValue,
    output: jsonValue,
    completedAt: z.nullable(time),
  }),
);

const page = { first: z.int(), total: z.int() };
export const transcriptPageSchema: z.ZodMiniType<TranscriptPage> = exactly<TranscriptPage>()(
  z.object({
    items: z.array(messageSchema()),
    ...page,
  }),
);
export const modelViewSchema: z.ZodMiniType<{ items: Message[] }> = z.object({
  items: z.array(messageSchema()),
});
export const callsPageSchema: z.ZodMiniType<CallsPage> = exactly<CallsPage>()(
  z.object({ items: z.array(toolCall), ...page }),
);

/** Schemas that have a name in the OpenAPI document. */
export const NAMED: readonly [string, z.ZodMiniType<unknown>][] = [
  ['JsonObject', jsonObject],
  ['Checkpoint', checkpointSchema],
  ['StoredStep', stepSchema],
  ['Message', messageSchema()],
  ['QueuedMessage', queuedMessageSchema],
  ['CallStatus', callStatus],
  ['ToolCall', toolCall],
  ['PendingCall', pendingCallSchema],
  ['CallDetail', callDetailSchema],
  ['InboxItem', inboxItem],
  ['Phase', phaseSchema],
  ['BudgetView', budgetViewSchema],
  ['PoolView', poolViewSchema],
  ['PlanStep', planStepSchema],
  ['SessionView', sessionViewSchema],
  ['EffectSince', effectSinceSchema],
  ['TranscriptPage', transcriptPageSchema],
  ['CallsPage', callsPageSchema],
  ['Error', errorSchema],
];
