/** The commands that run and verify a call. */
import type { ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import type { SessionState } from '../contract/state.ts';
import type { ContentRef } from '../contract/thread.ts';
import { marksFirst } from './effect-outcome.ts';
import type { Issued } from './events.ts';
import { settings } from './reads.ts';
import { DEFAULT_TIMEOUT_MS, heartbeatMs, toolOf } from './state.ts';

/** The part of the input that running and verifying a call share. */
function callInput(
  state: SessionState,
  { name, id, args, idempotencyKey, compensates }: ToolCall,
  timeoutMs: number,
) {
  return {
    agent: state.agent,
    tool: name,
    callId: id,
    args,
    idempotencyKey,
    timeoutMs,
    ...settings(state),
    ...defined({ compensates }),
  };
}

/** How many bytes one result of the batch may have, if that is less than usual. */
export function resultLimit({ batch }: SessionState): { resultLimit?: number } {
  const limit = Math.floor(LIMIT.turnResults / Math.max(1, batch.length));
  return limit < LIMIT.toolResult ? { resultLimit: limit } : {};
}

export function verifyCommand(state: SessionState, call: ToolCall, seq: number): Issued {
  const timeoutMs = toolOf(state, call)?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return {
    kind: 'verify',
    seq,
    input: callInput(state, call, timeoutMs),
    heartbeatMs: heartbeatMs(state),
    timeoutMs,
    summary: `verify ${call.name} ${call.id}`,
  };
}

/** The pieces, if they may hold an equal call. For scope `message`, they may if an earlier run took the message. */
function pastOf({ past }: SessionState, { scope, message }: ToolCall): { past?: ContentRef } {
  if (past === undefined || scope === 'call' || scope === 'global') return {};
  const mayBeThere = scope === 'session' || past.message === message || past.left === true;
  return mayBeThere ? { past: past.newest } : {};
}

export function toolCommand(state: SessionState, call: ToolCall): Issued {
  const tool = toolOf(state, call);
  const seq = state.seq + 1;
  const dispatchNo = call.dispatches.length + 1;
  const timeoutMs = tool?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return {
    kind: 'tool',
    seq,
    input: {
      ...callInput(state, call, timeoutMs),
      argsDigest: shortDigest(call.argsDigest),
      effect: call.effect,
      dispatchNo,
      ...(call.effect === 'mutate' ? { issuedRunId: state.runId } : {}),
      ...pastOf(state, call),
      ...(call.effect === 'mutate' && marksFirst(state, call, dispatchNo)
        ? { markFirst: true as const }
        : {}),
      ...resultLimit(state),
      ...defined({ answers: call.answers }),
    },
    heartbeatMs: heartbeatMs(state),
    timeoutMs,
    maxAttempts: call.effect === 'mutate' ? 1 : (tool?.maxAttempts ?? 1),
    summary: dispatchNo === 1 ? `${call.name} ${call.id}` : `${call.name} ${call.id}, dispatch ${dispatchNo}`,
  };
}
