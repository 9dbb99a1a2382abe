/**
 * What the model sees of a transcript. A summary is a message of the transcript: the model sees the last one, and the
 * messages that it does not stand for. Between two summaries each prompt begins with the whole prompt before it.
 */
import { jsonSize } from './json.ts';
import type { Message } from './messages.ts';

/** Fewer bytes than a token has on average, so that an estimate of tokens is rather too high. */
export const BYTES_PER_TOKEN = 3;

/** Asks for a summary, as the last message of the prompt. Everything before it is as in the prompt before. */
export const SUMMARY_REQUEST: string = `This conversation is close to the limit of what you can read at once. Write a summary of everything above, for yourself: after this message you will see the summary and not the messages. Do not call tools and do not answer the user now.

Write down:
- what the user wants, and each instruction or correction of theirs that still holds
- what was done, with the exact ids, names, amounts, paths and results that may be needed again
- what was decided and why, and what failed
- what is open, and the next step

Leave out greetings and whatever is settled and not needed again. Write only the summary.`;

const VERBATIM = '[Said earlier, word for word]\n';

/**
 * The messages that the model sees.
 *
 * @param base - index in the session of the first message
 */
export function viewOf(messages: readonly Message[], base = 0): readonly Message[] {
  const last = messages.findLast(({ summary }) => summary !== undefined);
  if (last?.summary === undefined) return messages;
  const from = last.summary.before - base;
  if (from < 0) throw new Error(`message ${last.summary.before} is needed, the first one is ${base}`);
  return [last, ...messages.slice(from).filter(({ summary }) => summary === undefined)];
}

/** Bytes of messages in a prompt. */
export function bytesOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { blocks }) => sum + jsonSize(blocks), 0);
}

/** Whether a view may be cut before a message: a call stays with its result, and something new is summarized. */
export function isCut(view: readonly Message[], index: number): boolean {
  const first = view[0]?.summary === undefined ? 1 : 2;
  return index >= first && index < view.length && view[index]?.role !== 'tool';
}

/**
 * Index in a view of the first message that stays, or `null` when the view cannot be cut. What stays has at most `keep`
 * bytes, or is the last message with the calls that it answers. It begins with a message of the user if one is near.
 */
export function cutOf(view: readonly Message[], keep: number): number | null {
  let fitting: number | null = null;
  let bytes = 0;
  let user: number | null = null;
  for (let i = view.length - 1; i > 0; i--) {
    bytes += jsonSize(view[i]?.blocks);
    if (!isCut(view, i)) continue;
    if (bytes > keep) return user ?? fitting ?? i;
    fitting = i;
    if (view[i]?.role === 'user') user = i;
  }
  return user ?? fitting;
}

/** The text of a summary's message, and what stays word for word: one block each. */
export function summaryTexts(before: number, text: string, verbatim: readonly string[]): string[] {
  return [
    `[Summary of the first ${before} messages of this conversation, which you do not see any more]\n\n${text}`,
    ...verbatim.map((words) => VERBATIM + words),
  ];
}

/** What a summary repeats word for word. */
export function verbatimOf({ blocks }: Message): string[] {
  return blocks
    .flatMap((block) => (block.kind === 'text' ? [block.text] : []))
    .filter((text) => text.startsWith(VERBATIM))
    .map((text) => text.slice(VERBATIM.length));
}
