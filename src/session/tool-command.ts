/** The commands that run and verify a call. */
import type { ToolCall } from '../contract/calls.ts';
import { shortDigest } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import type { SessionState } from '../contract/state.ts';
import { marksFirst } from './effect-outcome.ts';
import type { Step } from './events.ts';
import { settings } from './reads.ts';
import { DEFAULT_TIMEOUT_MS, heartbeatMs, toolOf } from './state.ts';

type Issued = Extract<Step, { type: 'issue' }>['command'];

export function verifyCommand(state: SessionState, call: ToolCall, seq: number): Issued {
  const timeoutMs = toolOf(state, call)?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return {
    kind: 'verify',
    seq,
    input: {
      agent: state.agent,
      tool: call.name,
      callId: call.id,
      args: call.args,
      idempotencyKey: call.idempotencyKey,
      timeoutMs,
      ...settings(state),
    },
    heartbeatMs: heartbeatMs(state),
    timeoutMs,
    summary: `verify ${call.name} ${call.id}`,
  };
}

export function toolCommand(state: SessionState, call: ToolCall): Issued {
  const tool = toolOf(state, call);
  const seq = state.seq + 1;
  const dispatchNo = call.dispatches.length + 1;
  const timeoutMs = tool?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const resultLimit = Math.floor(LIMIT.turnResults / state.batch.length);
  return {
    kind: 'tool',
    seq,
    input: {
      agent: state.agent,
      tool: call.name,
      callId: call.id,
      args: call.args,
      argsDigest: shortDigest(call.argsDigest),
      idempotencyKey: call.idempotencyKey,
      effect: call.effect,
      dispatchNo,
      ...(call.effect === 'mutate' ? { issuedRunId: state.runId } : {}),
      ...(call.effect === 'mutate' && marksFirst(state, call, dispatchNo)
        ? { markFirst: true as const }
        : {}),
      timeoutMs,
      ...(resultLimit < LIMIT.toolResult ? { resultLimit } : {}),
      ...settings(state),
    },
    heartbeatMs: heartbeatMs(state),
    timeoutMs,
    maxAttempts: call.effect === 'mutate' ? 1 : (tool?.maxAttempts ?? 1),
    summary: dispatchNo === 1 ? `${call.name} ${call.id}` : `${call.name} ${call.id}, dispatch ${dispatchNo}`,
  };
}
