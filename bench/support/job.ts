/** What one measured run does, written into its first message so that any worker process can play it. */

/** The tools of the measured agent. */
export type BenchTool = 'mutate' | 'read' | 'fast';

/** A run of so many turns, each one model call and one tool call, and then a last answer. */
export interface Job {
  id: string;
  turns: number;
  tool: BenchTool;
}

/** Bytes of a model's reply and of a tool's result, and of a call's arguments. */
const SIZE = { text: 1_000, args: 100 } as const;

/** The text of a model's reply: 1 KB, other in each turn. */
export function replyText(turn: number): string {
  return `Reply ${turn}. `.padEnd(SIZE.text, 'lorem ipsum dolor sit amet ');
}

/** The result of a tool: 1 KB, other for each call. */
export function toolText(ref: string): string {
  return `Result of ${ref}. `.padEnd(SIZE.text, 'consectetur adipiscing elit ');
}

/** The arguments of a turn's call: 100 bytes of JSON, other in each turn. */
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
