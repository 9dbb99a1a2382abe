/** Decisions and answers of a person in the chat. */
import type { Session } from '../client/index.ts';
import type { Decision } from '../contract/calls.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { PendingCall } from '../contract/views.ts';
import { readApprovalId } from './parts.ts';
import type { ApprovalAnswer, ChatRequest } from './request.ts';

/** A decision on the call that a person has seen. */
interface Asked {
  callId: string;
  argsDigest: string;
  decision: Decision;
}

/**
 * Decides on the calls that still wait, and answers questions. The first decision wins: the stream tells what somebody
 * else has decided.
 *
 * @param pending - the calls that wait
 * @returns whether an answer was for one of them
 */
export async function decide(
  session: Session,
  pending: readonly PendingCall[],
  { kind, answers, outputs }: ChatRequest,
  { by, mayDecide }: { by: string; mayDecide: (call: PendingCall) => boolean | Promise<boolean> },
): Promise<boolean> {
  // A page sends its old answers with each message. One that is refused must not hold the message back.
  const refuse = (error: unknown): void => {
    if (kind === 'decide') throw error;
  };
  const asked: Asked[] = [];
  for (const answer of answers) {
    const seen = readApprovalId(session.id, answer.id);
    const name = answer.id.slice(0, 80);
    if (seen !== null) asked.push({ ...seen, decision: decisionOf(answer) });
    else refuse(new PerdureError('UNKNOWN_CALL', `${name} is no approval of this chat. Load the chat again`));
  }
  for (const { callId, input, output } of outputs) {
    const call = pending.find((waiting) => waiting.callId === callId);
    // Tools run in the workers: a browser may only answer questions.
    if (call?.question === undefined) continue;
    const decision = { decision: 'respond', output } as const;
    asked.push({ callId, argsDigest: argsDigest(call.tool, input), decision });
  }
  let isMet = false;
  for (const { callId, argsDigest: digest, decision } of asked) {
    // With other arguments it is another approval, which the stream asks for.
    const call = pending.find(
      (waiting) =>
        waiting.status.kind === 'approval' && waiting.callId === callId && waiting.argsDigest === digest,
    );
    if (call === undefined) continue;
    isMet = true;
    if (!(await mayDecide(call))) {
      const message = `Somebody else decides on ${call.tool}, and the chat goes on then`;
      refuse(new PerdureError('CALL_NOT_PENDING', message));
      continue;
    }
    try {
      await session.decide(call, decision, { by, verified: true });
    } catch (error) {
      if (isPerdureError(error, 'CALL_NOT_PENDING') || isPerdureError(error, 'DIGEST_MISMATCH')) continue;
      if (!isPerdureError(error, 'FORBIDDEN') && !isPerdureError(error, 'INVALID_TOOL_INPUT')) throw error;
      refuse(error);
    }
  }
  return isMet;
}

function decisionOf({ approved, reason }: ApprovalAnswer): Decision {
  return approved ? { decision: 'approve' } : { decision: 'reject', ...defined({ reason }) };
}
