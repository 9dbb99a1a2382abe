/** What the scripted model says: it needs no key, and each word is a piece of its stream. */
import type { Script } from 'perdure/testing';

const STORY =
  'A teapot is a small machine for waiting. You pour the water, and then there is nothing to do but to wait for it. ' +
  'The first ones were made in Yixing, from clay that keeps a little of each tea that was ever brewed in it. ' +
  'Potters say that such a pot remembers, and that after many years hot water alone comes out as tea. ' +
  'This answer is written word by word. Kill the worker, or reload the page: it will be here when you are back.';

/** Slow enough to kill the worker in the middle. */
const PACE = { chunkDelayMs: 90 } as const;

export const script: Script = ({ lastUserText, stepInTurn, toolResults }) => {
  const order = /\d+/.exec(lastUserText)?.[0] ?? '1001';
  if (!/refund/i.test(lastUserText)) {
    const text = /teapot|story|long/i.test(lastUserText)
      ? STORY
      : 'I can tell you about teapots, or refund an order: try “Refund order 1001”.';
    return { reasoning: 'The customer wants to talk.', text, ...PACE };
  }
  if (stepInTurn === 0) return { text: 'Let me look.', toolCalls: [{ name: 'findOrder', args: { order } }] };
  if (stepInTurn === 1) return { toolCalls: [{ name: 'refund', args: { order, cents: 4_900 } }] };
  const result = toolResults.at(-1)?.text ?? '';
  const isRefunded = result.includes('refunded');
  const text = isRefunded
    ? `Order ${order} is refunded: $49.00.`
    : `Order ${order} is not refunded. ${result}`;
  return { text, ...PACE };
};
