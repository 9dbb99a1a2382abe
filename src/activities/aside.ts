/** The prompt of a side question. */
import { type Message, resultBlocks } from '../contract/messages.ts';
import type { AsideQuestion } from '../contract/model-call.ts';
import { isMain } from '../contract/view.ts';

/**
 * Builds the prompt of a side question: the view, the results of its open calls so far, earlier side questions, the new
 * one. Every open call needs a result: providers refuse a prompt in which a call has none.
 */
export function asidePrompt(
  view: readonly Message[],
  messages: readonly Message[],
  { blocks, results }: AsideQuestion,
): Message[] {
  const names = new Map(
    view.at(-1)?.blocks.flatMap((block) => (block.kind === 'tool_call' ? [[block.id, block.name]] : [])),
  );
  const told = resultBlocks(
    results.map(({ callId, ...result }) => ({ id: callId, name: names.get(callId) ?? '', result })),
  );
  const since = messages.slice(messages.findLastIndex(isMain) + 1);
  return [
    ...view,
    { id: '', role: 'tool', created_at: '', blocks: told },
    ...since,
    { id: '', role: 'user', created_at: '', blocks },
  ];
}
