/** Decisions and answers of a person in the chat. */
import type { Session } from '../client/index.ts';
import type { Decision } from '../contract/calls.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { PendingCall } from '../contract/views.ts';
import { readApprovalId } from './parts.ts';
import type { ApprovalAnswer, ChatRequest } from './request.ts';

/**
 * Decides on the calls that still wait, and answers questions. The first decision wins: the stream tells what somebody
 * else has decided.
 */
export async function decide(
  session: Session,
  { answers, outputs }: Extract<ChatRequest, { kind: 'approve' }>,
  { by, mayDecide }: { by: string; mayDecide: (call: PendingCall) => boolean | Promise<boolean> },
): Promise<void> {
  const asked = answers.map((answer) => {
    const seen = readApprovalId(session.id, answer.id);
    if (seen === null)
      throw new PerdureError(
        'UNKNOWN_CALL',
        `${answer.id.slice(0, 80)} is no approval of this chat. Load the chat again`,
      );
    return { ...seen, decision: decisionOf(answer) };
  });
  const { pending } = await session.state();
  for (const { callId, input, output } of outputs) {
    const call = pending.find((waiting) => waiting.callId === callId);
    // Tools run in the workers: a browser may only answer questions.
    if (call?.question === undefined) continue;
    const decision = { decision: 'respond', output } as const;
    asked.push({ callId, argsDigest: argsDigest(call.tool, input), decision });
  }
  for (const { callId, argsDigest: digest, decision } of asked) {
    // With other arguments it is another approval, which the stream asks for.
    const call = pending.find(
      (waiting) =>
        waiting.status.kind === 'approval' && waiting.callId === callId && waiting.argsDigest === digest,
    );
    if (call === undefined) continue;
    if (!(await mayDecide(call)))
      throw new PerdureError(
        'CALL_NOT_PENDING',
        `Somebody else decides on ${call.tool}, and the chat goes on then`,
      );
    try {
      await session.decide(call, decision, { by, verified: true });
    } catch (error) {
      if (!isPerdureError(error, 'CALL_NOT_PENDING') && !isPerdureError(error, 'DIGEST_MISMATCH'))
        throw error;
    }
  }
}

function decisionOf({ approved, reason }: ApprovalAnswer): Decision {
  return approved ? { decision: 'approve' } : { decision: 'reject', ...defined({ reason }) };
}
