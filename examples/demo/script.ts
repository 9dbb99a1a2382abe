/** What the scripted model of the demo says: it reads the transcript and keeps nothing in mind. */
import { type Script, type ScriptedRequest, scriptedTurns } from 'perdure/testing';

/** Looks the order up, refunds what was paid, and says so. */
export const script: Script = scriptedTurns([
  { text: 'Let me look at that order.', toolCalls: [{ name: 'order', args: { id: '1002' } }] },
  (request) => {
    const { chargeId, cents } = lastResult<{ chargeId: string; cents: number }>(request);
    return { toolCalls: [{ name: 'refund', args: { chargeId, cents, reason: 'arrived broken' } }] };
  },
  (request) => {
    const { id, cents } = lastResult<{ id: string; cents: number }>(request);
    return { text: `I have refunded ${(cents / 100).toFixed(2)} for order 1002; the receipt is ${id}.` };
  },
]);

function lastResult<Value>({ toolResults }: ScriptedRequest): Value {
  const last = toolResults.at(-1);
  if (last === undefined) throw new Error('the transcript has no tool result');
  return last.value as Value;
}
