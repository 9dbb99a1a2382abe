/** The prompt of a side question. */
import { type Message, resultBlocks } from '../contract/messages.ts';
import type { AsideQuestion } from '../contract/model-call.ts';
import { isMain } from '../contract/view.ts';

/**
 * The view, what became of its open calls so far, the side questions since, and the new one. Providers refuse a prompt with a
 * call that has no result.
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
