/** The schemas of answers about sessions. The compiler holds them to the contract's types. */
import * as z from 'zod/mini';
import type { EffectSince } from '../checkpoints/index.ts';
import type { Inbox, InboxItem } from '../client/index.ts';
import type { ApproverRules, CallStatus, DecisionRecord, Dispatch, ToolCall } from '../contract/calls.ts';
import type { AgentChange, BudgetLimits, ToolManifest } from '../contract/manifest.ts';
import { type Message, messageBlocksSchema, messageSchema } from '../contract/messages.ts';
import type { NextStep } from '../contract/next-step.ts';
import type { Notice, Phase, PlanStep, QueuedMessage, Wait } from '../contract/state.ts';
import { valueRefSchema } from '../contract/values.ts';
import type {
  BudgetView,
  CallDetail,
  CallsPage,
  PendingCall,
  SessionView,
  TranscriptPage,
} from '../contract/views.ts';
import { checkpointSchema, errorSchema, exactly, jsonObject, jsonValue, stepSchema, time } from './shapes.ts';

const decisionRecord: z.ZodMiniType<DecisionRecord> = exactly<DecisionRecord>()(
  z.object({
    decision: z.enum(['approve', 'edit', 'reject', 'respond', 'expired']),
    by: z.string(),
    verified: z.exactOptional(z.literal(true)),
    at: time,
    reason: z.exactOptional(z.string()),
  }),
);
const approvers: z.ZodMiniType<ApproverRules> = exactly<ApproverRules>()(
  z.object({
    people: z.int(),
    byAnother: z.exactOptional(z.literal(true)),
    unverified: z.exactOptional(z.literal(true)),
    given: z.array(decisionRecord),
  }),
);

const approvalStatus = z.object({
  kind: z.literal('approval'),
  expiresAt: z.nullable(time),
  problem: z.exactOptional(z.string()),
});
const unknownStatus = z.object({ kind: z.literal('unknown'), reason: z.string() });
const stuckStatus = z.object({
  kind: z.literal('stuck'),
  reason: z.string(),
  misfit: z.exactOptional(z.literal(true)),
  checks: z.exactOptional(z.int()),
  due: z.exactOptional(z.literal(true)),
});
const seenCall = { callId: z.string(), argsDigest: z.string() };
const seenDispatch = { ...seenCall, dispatchNo: z.int() };
const awaitingStatus = z.object({
  kind: z.literal('awaiting'),
  checks: z.int(),
  due: z.exactOptional(z.literal(true)),
  person: z.exactOptional(
    z.object({ kind: z.enum(['unknown', 'stuck']), reason: z.string(), call: z.object(seenDispatch) }),
  ),
});

const callStatus: z.ZodMiniType<CallStatus> = exactly<CallStatus>()(
  z.discriminatedUnion('kind', [
    z.object({ kind: z.enum(['ready', 'running', 'backoff', 'completed', 'skipped']) }),
    z.object({
      kind: z.literal('preparing'),
      before: z.exactOptional(
        z.object({
          args: jsonValue,
          expiresAt: z.nullable(time),
          given: z.exactOptional(z.array(decisionRecord)),
        }),
      ),
      rewound: z.exactOptional(z.literal(true)),
    }),
    approvalStatus,
    z.object({ kind: z.literal('deferred'), to: z.string() }),
    z.object({ kind: z.enum(['settling', 'verifying']), reason: z.string() }),
    unknownStatus,
    stuckStatus,
    awaitingStatus,
    z.object({ kind: z.literal('failed'), certain: z.boolean() }),
  ]),
);

const dispatch: z.ZodMiniType<Dispatch> = exactly<Dispatch>()(
  z.object({
    no: z.int(),
    at: time,
    startedAt: z.exactOptional(time),
    attempts: z.exactOptional(z.int()),
    outcome: z.nullable(z.enum(['returned', 'landed', 'absent', 'unknown'])),
    reason: z.exactOptional(z.string()),
    released: z.exactOptional(z.literal(true)),
    unbegun: z.exactOptional(z.literal(true)),
  }),
);

const effect = z.enum(['read', 'idempotent', 'mutate']);
const scope = z.enum(['call', 'message', 'session', 'global']);

const toolCall: z.ZodMiniType<ToolCall> = exactly<ToolCall>()(
  z.object({
    id: z.string(),
    turn: z.int(),
    message: z.int(),
    keyOf: z.exactOptional(z.int()),
    name: z.string(),
    args: jsonValue,
    argsDigest: z.string(),
    effect,
    scope,
    idempotencyKey: z.string(),
    status: callStatus,
    issuedAt: z.nullable(time),
    completedAt: z.nullable(time),
    dispatches: z.array(dispatch),
    decision: z.nullable(decisionRecord),
    approvers: z.exactOptional(approvers),
    resolutions: z.array(
      z.object({
        dispatchNo: z.int(),
        outcome: z.enum(['landed', 'absent', 'failed']),
        by: z.string(),
        verified: z.exactOptional(z.literal(true)),
        at: time,
        reason: z.exactOptional(z.string()),
      }),
    ),
    result: z.nullable(
      z.object({
        content: jsonValue,
        isError: z.boolean(),
        modelOutput: z.exactOptional(z.record(z.string(), jsonValue)),
        value: z.exactOptional(valueRefSchema()),
      }),
    ),
    replayOf: z.nullable(z.string()),
  }),
);

const sessionId = z.string();
const nextStep: z.ZodMiniType<NextStep> = exactly<NextStep>()(
  z.discriminatedUnion('action', [
    z.object({ action: z.literal('resume'), sessionId, call: z.exactOptional(z.object(seenDispatch)) }),
    z.object({ action: z.literal('cancel'), sessionId }),
    z.object({ action: z.literal('fork'), sessionId }),
    z.object({
      action: z.literal('budget'),
      sessionId,
      cap: z.enum(['usd', 'tokens', 'turns', 'toolCalls', 'activeMs']),
      atLeast: z.number(),
    }),
    z.object({ action: z.literal('decide'), sessionId, ...seenCall }),
    z.object({ action: z.literal('resolve'), sessionId, ...seenDispatch }),
  ]),
);

export const pendingCallSchema: z.ZodMiniType<PendingCall> = exactly<PendingCall>()(
  z.object({
    callId: z.string(),
    tool: z.string(),
    args: jsonValue,
    argsDigest: z.string(),
    dispatchNo: z.int(),
    idempotencyKey: z.string(),
    effect: z.exactOptional(effect),
    askedAt: z.exactOptional(time),
    status: z.discriminatedUnion('kind', [approvalStatus, unknownStatus, stuckStatus, awaitingStatus]),
    decision: z.nullable(decisionRecord),
    needs: z.exactOptional(
      z.object({
        people: z.int(),
        given: z.array(decisionRecord),
        notBy: z.array(z.string()),
        verified: z.boolean(),
      }),
    ),
    next: nextStep,
  }),
);

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
  }),
);

const toolManifest: z.ZodMiniType<ToolManifest> = exactly<ToolManifest>()(
  z.object({
    name: z.string(),
    description: z.string(),
    inputSchema: jsonObject,
    effect,
    scope,
    ttlMs: z.number(),
    verify: z.boolean(),
    timeoutMs: z.number(),
    settleMs: z.number(),
    maxAttempts: z.int(),
    approval: z.object({
      expiresMs: z.nullable(z.number()),
      onExpiry: z.enum(['approve', 'reject']),
      people: z.exactOptional(z.int()),
      byAnother: z.exactOptional(z.literal(true)),
      unverified: z.exactOptional(z.literal(true)),
    }),
  }),
);

export const callDetailSchema: z.ZodMiniType<CallDetail> = exactly<CallDetail>()(
  z.object({
    call: toolCall,
    tool: z.nullable(toolManifest),
    pending: z.exactOptional(pendingCallSchema),
    asked: z.object({ message: z.string(), text: z.string() }),
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

const wait: z.ZodMiniType<Wait> = exactly<Wait>()(
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
    sessionId,
    agent: z.nullable(z.string()),
    tenant: z.nullable(z.string()),
    kind: z.enum(['approval', 'unknown', 'stuck', 'budget', 'wait', 'unreadable']),
    reason: z.string(),
    since: z.nullable(time),
    until: z.nullable(time),
    call: z.nullable(pendingCallSchema),
    wait: z.nullable(wait),
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
    effect: z.nullable(z.object({ requestedBy: z.string(), ttlMs: z.number() })),
    createdAt: time,
    status,
    phase: phaseSchema,
    turn: z.int(),
    messages: z.int(),
    queued: z.int(),
    calls: z.int(),
    pending: z.array(pendingCallSchema),
    wait: z.nullable(wait),
    paused: z.nullable(z.object({ by: z.string(), at: time, reason: z.string() })),
    budget: budgetViewSchema,
    plan: z.array(planStepSchema),
    scratchpadRoot: z.nullable(z.string()),
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
    again: z.enum(['answered', 'doubtful', 'repeated']),
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

/** Schemas that the document names. */
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
  ['PlanStep', planStepSchema],
  ['SessionView', sessionViewSchema],
  ['EffectSince', effectSinceSchema],
  ['TranscriptPage', transcriptPageSchema],
  ['CallsPage', callsPageSchema],
  ['Error', errorSchema],
];
