/** The schemas of answers about tool calls. The compiler checks them against the contract's types. */
import * as z from 'zod/mini';
import type {
  ApproverRules,
  CallStatus,
  DecisionRecord,
  Dispatch,
  ToolAnswer,
  ToolCall,
} from '../contract/calls.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { NextStep } from '../contract/next-step.ts';
import { valueRefSchema } from '../contract/values.ts';
import type { CallDetail, PendingCall } from '../contract/views.ts';
import { exactly, jsonObject, jsonValue, time } from './shapes.ts';

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

const toolQuestion = {
  text: z.string(),
  answer: z.exactOptional(jsonObject),
  state: z.exactOptional(jsonValue),
};
const toolAnswer: z.ZodMiniType<ToolAnswer> = exactly<ToolAnswer>()(
  z.object({
    ...toolQuestion,
    output: jsonValue,
    by: z.string(),
    verified: z.exactOptional(z.literal(true)),
    at: time,
  }),
);

const approvalStatus = z.object({
  kind: z.literal('approval'),
  expiresAt: z.nullable(time),
  problem: z.exactOptional(z.string()),
  question: z.exactOptional(z.object(toolQuestion)),
});
const unknownStatus = z.object({ kind: z.literal('unknown'), reason: z.string() });
const stuckStatus = z.object({
  kind: z.literal('stuck'),
  reason: z.string(),
  misfit: z.exactOptional(z.literal(true)),
  failed: z.exactOptional(z.literal(true)),
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
    z.union([
      z.object({ kind: z.enum(['unknown', 'stuck']), reason: z.string(), call: z.object(seenDispatch) }),
      z.object({ kind: z.literal('stuck'), reason: z.string(), taskQueue: z.string() }),
    ]),
  ),
});

export const callStatus: z.ZodMiniType<CallStatus> = exactly<CallStatus>()(
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
    z.object({ kind: z.literal('sleeping'), until: time, reason: z.string() }),
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
    asked: z.exactOptional(z.literal(true)),
  }),
);

const effect = z.enum(['read', 'idempotent', 'mutate']);
const scope = z.enum(['call', 'message', 'session', 'global']);

export const toolCall: z.ZodMiniType<ToolCall> = exactly<ToolCall>()(
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
    answers: z.exactOptional(z.array(toolAnswer)),
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
    background: z.exactOptional(z.literal(true)),
    compensates: z.exactOptional(z.object({ callId: z.string(), idempotencyKey: z.string() })),
    compensatedBy: z.exactOptional(z.string()),
  }),
);

const sessionId = z.string();
export const nextStep: z.ZodMiniType<NextStep> = exactly<NextStep>()(
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
    z.object({
      action: z.literal('pool'),
      sessionId,
      pool: z.string(),
      cap: z.exactOptional(z.enum(['usd', 'tokens', 'turns', 'activeMs'])),
      atLeast: z.exactOptional(z.number()),
    }),
    z.object({
      action: z.literal('decide'),
      sessionId,
      undoes: z.exactOptional(z.literal(true)),
      ...seenCall,
    }),
    z.object({ action: z.literal('resolve'), sessionId, ...seenDispatch }),
  ]),
);

const question = { answer: z.exactOptional(jsonObject), otherwise: z.exactOptional(jsonValue) };

export const pendingCallSchema: z.ZodMiniType<PendingCall> = exactly<PendingCall>()(
  z.object({
    callId: z.string(),
    tool: z.string(),
    args: jsonValue,
    argsDigest: z.string(),
    dispatchNo: z.int(),
    idempotencyKey: z.string(),
    effect: z.exactOptional(effect),
    compensates: z.exactOptional(z.string()),
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
    question: z.exactOptional(
      z.object({ text: z.string(), options: z.exactOptional(z.array(z.string())), ...question }),
    ),
    next: nextStep,
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
    question: z.exactOptional(z.object(question)),
    builtIn: z.exactOptional(
      z.discriminatedUnion('kind', [
        z.object({ kind: z.enum(['sleep', 'reminder']), maxMs: z.number() }),
        z.object({ kind: z.literal('scratchpad'), verb: z.enum(['read', 'write', 'list']) }),
        z.object({ kind: z.literal('agent_stop') }),
      ]),
    ),
    compensate: z.exactOptional(z.object({ verify: z.boolean(), unasked: z.exactOptional(z.literal(true)) })),
    agent: z.exactOptional(
      z.object({
        name: z.string(),
        taskQueue: z.exactOptional(z.string()),
        background: z.exactOptional(z.enum(['wait', 'cancel'])),
      }),
    ),
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
