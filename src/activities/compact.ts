/** Compacts a prompt: chooses the messages that a summary replaces, and gets the summary. */
import { type AgentRuntime, chooseCompaction } from '../agent/index.ts';
import { type Message, textsOf } from '../contract/messages.ts';
import type { Compacted, CompactInput, ModelResult } from '../contract/model-call.ts';
import { bytesOf, cutOf, pinnedBlocks, promptBytes, SUMMARY_REQUEST, wordsIn } from '../contract/view.ts';

/** A compaction must replace at least this fraction (one tenth) of the view's bytes, earlier summaries not counted. */
const LEAST_SHARE = 10;
const REQUEST: Message = {
  id: '',
  role: 'user',
  created_at: '',
  blocks: [{ kind: 'text', text: SUMMARY_REQUEST }],
};

/**
 * Summarizes the older messages of a view. The request starts with the unchanged beginning of the prompt, so that the
 * provider finds it in its cache.
 *
 * @param base - index of `messages[0]` in the session
 */
export async function compact(
  ask: (messages: readonly Message[]) => Promise<ModelResult>,
  {
    agent,
    input: { keep },
    messages,
    base,
    view,
  }: {
    agent: AgentRuntime;
    input: CompactInput;
    messages: readonly Message[];
    base: number;
    view: readonly Message[];
  },
): Promise<ModelResult> {
  const chosen = await chooseCompaction(agent.definition, view, keep);
  if (!chosen.ok)
    return { kind: 'failed', failure: 'context_window', message: chosen.problem, maybeBilled: 0 };
  let cut = chosen.from ?? gainfulCut(view, keep);
  if (cut === null) {
    return { kind: 'uncompacted', message: `too little can be summarized: ${largest(view)}` };
  }
  const compacted = (text: string): Omit<Extract<ModelResult, { kind: 'compacted' }>, 'usage'> => {
    const at = cut ?? 0;
    return {
      kind: 'compacted',
      before: base + messages.indexOf(view[at] as Message),
      replaced: bytesOf(view.slice(0, at)),
      kept: bytesOf(view.slice(at)),
      text,
      ...wordsFor(view, at, keep),
    };
  };
  if (chosen.text !== undefined) {
    return { ...compacted(chosen.text), usage: { inputTokens: 0, outputTokens: 0 } };
  }
  for (let more = false; ; more = true) {
    const older = view.slice(0, cut);
    const result = await ask([...older, REQUEST]);
    if (result.kind === 'failed' && result.failure === 'context_window') {
      cut = cutOf(older, bytesOf(older) / 2);
      if (cut === null) return { ...result, message: `${result.message}; ${largest(view)}` };
      continue;
    }
    if (result.kind !== 'reply') return result;
    const { blocks, calls: _none, kind: _reply, finishReason: _end, instructions: _text, ...paid } = result;
    const text = textsOf({ blocks }).join('\n');
    return { ...paid, ...compacted(text), ...(more ? { more } : {}) };
  }
}

/** Where to cut a view, or `null` when too few of its messages are not summarized yet: a summary would save nothing. */
function gainfulCut(view: readonly Message[], keep: number): number | null {
  const cut = cutOf(view, keep) ?? 0;
  const fresh = view.slice(0, cut).filter(({ summary, pinned }) => summary === undefined && pinned !== true);
  return bytesOf(fresh) * LEAST_SHARE < bytesOf(view) ? null : cut;
}

/** Names the largest message of a view. */
export function largest(view: readonly Message[]): string {
  const sizes = view.map((message) => ({
    id: message.id || 'of the new results',
    bytes: promptBytes(message),
  }));
  const { id, bytes } = sizes.reduce((a, b) => (b.bytes > a.bytes ? b : a), { id: '', bytes: 0 });
  const blocks = pinnedBlocks(view);
  const kept = blocks.length === 0 ? '' : `, ${bytesOf([{ blocks }])} of them pinned`;
  return `the largest message is ${id} with ${bytes} bytes, the prompt's messages have ${bytesOf(view)}${kept}`;
}

/** User text that a compaction keeps word for word: the first message, the one being answered, and pinned messages. */
function wordsFor(
  view: readonly Message[],
  cut: number,
  keep: number,
): Pick<Compacted, 'verbatim' | 'open' | 'pinned'> {
  const older = view.slice(0, cut);
  const isUsers = ({ role, report }: Message): boolean => role === 'user' && report === undefined;
  const users = older.filter((message) => isUsers(message) && message.summary === undefined);
  const pinned = pinnedBlocks(older);
  const [first] = older;
  const before = first?.summary === undefined ? { verbatim: [wordsOf(users[0])], open: [] } : wordsIn(first);
  const fits = (words: string): boolean => words !== '' && words.length <= keep;
  const verbatim = before.verbatim.filter(fits);
  const stays = view.slice(cut).some(isUsers);
  const last = users.length > 0 ? wordsOf(users.at(-1)) : (before.open[0] ?? '');
  const isOpen = !stays && fits(last) && !verbatim.includes(last);
  return {
    ...(verbatim.length === 0 ? {} : { verbatim }),
    ...(isOpen ? { open: last } : {}),
    ...(pinned.length === 0 ? {} : { pinned }),
  };
}

/** The text of a message. Empty for a pinned message, which is kept anyway. */
function wordsOf(message: Message | undefined): string {
  if (message?.pinned === true) return '';
  return message === undefined ? '' : textsOf(message).join('\n');
}
