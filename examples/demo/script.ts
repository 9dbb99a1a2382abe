/** What the scripted model of the demo says: it reads the transcript and keeps no state. */
import { type ChatToolResult, type Script, type ScriptedRequest, scriptedTurns } from 'perdure/testing';
import type { Order, Refund } from '../payments/protocol.ts';

/** Looks the order up, refunds what was paid, and says so. */
export const script: Script = scriptedTurns([
  { text: 'Let me look at that order.', toolCalls: [{ name: 'order', args: { id: '1002' } }] },
  (request) => {
    const { chargeId, cents } = lastResult(request).value as Order;
    return { toolCalls: [{ name: 'refund', args: { chargeId, cents, reason: 'arrived broken' } }] };
  },
  (request) => {
    const { text, value } = lastResult(request);
    const { id, cents } = (value ?? {}) as Partial<Refund>;
    // A rejection's reason is not a receipt.
    if (id === undefined || cents === undefined) return { text: `Order 1002 was not refunded: ${text}` };
    return { text: `I have refunded ${(cents / 100).toFixed(2)} for order 1002; the receipt is ${id}.` };
  },
]);

function lastResult({ toolResults }: ScriptedRequest): ChatToolResult {
  const last = toolResults.at(-1);
  if (last === undefined) throw new Error('the transcript has no tool result');
  return last;
}
