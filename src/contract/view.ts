/**
 * What the model sees of a transcript. A summary is a message of the transcript: the model sees the last summary, and
 * the messages that it does not replace. Between two summaries each prompt begins with the whole previous prompt.
 */
import { utf8Length } from './json.ts';
import {
  type FileBlock,
  type Message,
  type MessageBlock,
  type ToolResultBlock,
  textsOf,
} from './messages.ts';

/** Less than the average, so that an estimate of tokens is too high rather than too low. */
export const BYTES_PER_TOKEN = 3;

/**
 * Asks for a summary, as the last message of the prompt. Everything before it is the same as in the previous prompt.
 */
export const SUMMARY_REQUEST: string = `This conversation is close to the limit of what you can read at once. Write a summary of everything above, for yourself: after this message you will see the summary and not the messages. Do not call tools and do not answer the user now.

Write down:
- what the user wants, and each instruction or correction of theirs that still holds
- what was done, with the exact ids, names, amounts, paths and results that may be needed again
- what was decided and why, and what failed
- what is open, and the next step

Leave out greetings and whatever is settled and not needed again. Write only the summary.`;

const VERBATIM = '[Said earlier, word for word]\n';
const OPEN = '[Not answered yet, word for word]\n';
const PINNED = '[Pinned, word for word]\n';

/**
 * The messages that the model sees.
 *
 * @param base - index in the session of the first message
 */
export function viewOf(messages: readonly Message[], base = 0): readonly Message[] {
  const last = messages.findLast(({ summary }) => summary !== undefined);
  if (last?.summary === undefined) return messages.filter(isMain);
  const from = last.summary.before - base;
  if (from < 0) throw new Error(`message ${last.summary.before} is needed, the first one is ${base}`);
  return [
    last,
    ...messages.slice(from).filter((message) => message.summary === undefined && isMain(message)),
  ];
}

/** Whether a message is part of the conversation itself: not a side question, and not its answer. */
export function isMain({ aside }: Pick<Message, 'aside'>): boolean {
  return aside !== true;
}

/**
 * What a file adds to the bytes of a prompt. Most providers count less than 2,000 tokens for an image of any size: the
 * budget's bound takes a byte for a token, and the estimate for compaction takes {@link BYTES_PER_TOKEN} bytes for one.
 */
const FILE_TOKENS = { image: 5_000, unknown: 100_000 };

/** What a message adds to the bytes of the prompt. */
export function promptBytes({ blocks }: Pick<Message, 'blocks'>): number {
  let bytes = utf8Length(JSON.stringify(blocks));
  for (const block of blocks) {
    if (block.kind === 'file') bytes += fileTokens(block);
    else if (block.kind === 'tool_result') bytes += storedParts(block) * FILE_TOKENS.image;
  }
  return bytes;
}

/** How many files a tool's result has. Most of them are images. */
function storedParts({ model_output: output }: ToolResultBlock): number {
  const { type, value } = output ?? {};
  const parts = type === 'content' && Array.isArray(value) ? value : [];
  return parts.filter((part) => typeof part === 'object' && part !== null && 'value' in part).length;
}

/**
 * What a file adds to {@link promptBytes}: an upper estimate of its tokens, which each provider counts in its own way.
 */
function fileTokens({ media_type: type, value }: FileBlock): number {
  return type.startsWith('image/') ? FILE_TOKENS.image : (value?.bytes ?? FILE_TOKENS.unknown);
}

/** Bytes of messages in a prompt. */
export function bytesOf(messages: readonly Pick<Message, 'blocks'>[]): number {
  return messages.reduce((sum, message) => sum + promptBytes(message), 0);
}

/** Whether a view may be cut before a message: a call stays with its result, and the cut part has a new message. */
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
    bytes += bytesOf(view.slice(i, i + 1));
    if (!isCut(view, i)) continue;
    if (bytes > keep) return user ?? fitting ?? i;
    fitting = i;
    if (view[i]?.role === 'user') user = i;
  }
  return user ?? fitting;
}

/** The texts of a summary's message, one block each: the summary, then the texts that it keeps word for word. */
export function summaryTexts(
  before: number,
  text: string,
  { verbatim = [], open }: { verbatim?: readonly string[]; open?: string },
): string[] {
  return [
    `[Summary of the first ${before} messages of this conversation, which you do not see any more]\n\n${text}`,
    ...verbatim.map((words) => VERBATIM + words),
    ...(open === undefined ? [] : [OPEN + open]),
  ];
}

/** What a summary repeats word for word: `verbatim` for good, `open` until it is answered. */
export function wordsIn(message: Message): { verbatim: string[]; open: string[] } {
  const texts = textsOf(message);
  const after = (mark: string): string[] =>
    texts.filter((text) => text.startsWith(mark)).map((text) => text.slice(mark.length));
  return { verbatim: after(VERBATIM), open: after(OPEN) };
}

/** What a summary of these messages must repeat: the pinned messages, and the pinned blocks of an earlier summary. */
export function pinnedBlocks(messages: readonly Message[]): MessageBlock[] {
  return messages.flatMap(({ blocks, pinned, summary }) =>
    blocks.flatMap((block): MessageBlock[] => {
      if (block.kind !== 'text' && block.kind !== 'file') return [];
      if (summary !== undefined) {
        // Every file of a summary comes from a pinned message.
        return block.kind === 'file' || block.text.startsWith(PINNED) ? [block] : [];
      }
      if (pinned !== true) return [];
      return [block.kind === 'file' ? block : { ...block, text: PINNED + block.text }];
    }),
  );
}
