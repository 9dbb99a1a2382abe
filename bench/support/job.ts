/** What one measured run does, written into its first message so that any worker process can run it. */

/** The tools of the measured agent. */
export type BenchTool = 'mutate' | 'read';

/** A run of `turns` turns, each with one model call and one tool call, and a last answer. */
export interface Job {
  id: string;
  turns: number;
  tool: BenchTool;
}

/** Bytes of a model's reply and of a tool's result, and of a call's arguments. */
const SIZE = { text: 1_000, args: 100 } as const;

const SYLLABLES = 'ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu tion ment ing est'.split(' ');

/**
 * Text that does not repeat and compresses like language, to two fifths. Some stores compress, and a repeated phrase
 * would take almost no space. The same seed gives the same text.
 */
function prose(start: string, seed: number): string {
  let state = (seed * 2_654_435_761 + start.length) >>> 0 || 1;
  let text = start;
  while (text.length < SIZE.text) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    text += SYLLABLES[state % SYLLABLES.length];
    if (state % 7 < 3) text += ' ';
  }
  return text.slice(0, SIZE.text);
}

/** The text of a model's reply: 1 KB, different in each turn. */
export function replyText(turn: number): string {
  return prose(`Reply ${turn}. `, turn);
}

/** The result of a tool: 1 KB, different for each call. */
export function toolText(ref: string): string {
  return prose(`Result of ${ref}. `, Number.parseInt(ref.replace(/\D+/, ''), 10));
}

/** The arguments of a turn's call: 100 bytes of JSON, different in each turn. */
export function callArgs(turn: number): { ref: string } {
  const wrapping = JSON.stringify({ ref: '' }).length;
  return { ref: `item-${turn}-`.padEnd(SIZE.args - wrapping, '0') };
}

/** The first message of a run. */
export function jobText({ id, turns, tool }: Job): string {
  return `bench ${id} ${turns} ${tool}`;
}

/** Reads the first message of a run. */
export function readJob(text: string): Job {
  const [, id = '', turns = '0', tool = 'read'] = text.split(' ');
  return { id, turns: Number(turns), tool: tool as BenchTool };
}
