/** The pieces of a model reply that a chat shows while the reply is written. */
import type { JsonValue } from '../contract/json.ts';
import type { LiveDelta } from '../contract/live-text.ts';
import type { Block, FileBlock, SourceBlock } from '../contract/messages.ts';

/** A piece of a reply. `id` of a tool call is the session's; `input` is there once the call is recorded. */
export type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'tool'; id: string; name: string; text: string; input?: JsonValue }
  | { kind: 'file'; text: string; block: FileBlock }
  | { kind: 'source'; text: string; block: SourceBlock };

/** The pieces of a recorded reply. Texts that follow each other are one piece, as in a live reply. */
export function piecesOf(blocks: readonly Block[]): Piece[] {
  const pieces: Piece[] = [];
  for (const block of blocks) {
    if (block.kind === 'tool_result') continue;
    if (block.kind === 'text' || block.kind === 'reasoning') addText(pieces, block.kind, block.text);
    else if (block.kind === 'tool_call')
      pieces.push({ kind: 'tool', id: block.id, name: block.name, text: '', input: block.args });
    else if (block.kind === 'file') pieces.push({ kind: 'file', text: block.value?.digest ?? '', block });
    else pieces.push({ kind: 'source', text: block.id, block });
  }
  return pieces;
}

/** The pieces of a reply that is being written. */
export class LivePieces {
  readonly pieces: Piece[] = [];
  readonly #turn: number;
  readonly #calls = new Map<string, Extract<Piece, { kind: 'tool' }>>();

  /** @param turn - the number of the turn that the reply begins */
  constructor(turn: number) {
    this.#turn = turn;
  }

  add(delta: LiveDelta): void {
    if (delta.type !== 'tool_input') {
      addText(this.pieces, delta.type, delta.text);
      return;
    }
    const { id, name, text } = delta;
    let call = this.#calls.get(id);
    if (call === undefined) {
      // The session numbers the calls of a reply in their order.
      call = { kind: 'tool', id: `call_${this.#turn}_${this.#calls.size}`, name, text: '' };
      this.#calls.set(id, call);
      this.pieces.push(call);
    }
    call.text += text;
  }
}

function addText(pieces: Piece[], kind: 'text' | 'reasoning', text: string): void {
  const last = pieces.at(-1);
  if (last?.kind === kind) last.text += text;
  else if (text !== '') pieces.push({ kind, text });
}

/**
 * Compares the pieces of a reply with those that were shown. `continues`: they begin with the shown pieces. `behind`:
 * they are only the beginning of the shown pieces. `diverged`: they say something else.
 */
export function relation(
  shown: readonly Piece[],
  now: readonly Piece[],
): 'continues' | 'behind' | 'diverged' {
  for (const [i, was] of shown.entries()) {
    const is = now[i];
    if (is === undefined) return 'behind';
    if (was.kind === 'tool' && is.kind === 'tool') {
      if (was.id !== is.id || was.name !== is.name) return 'diverged';
      // A recorded call has its whole input, and no text.
      if (is.input !== undefined || is.text.startsWith(was.text)) continue;
      return was.text.startsWith(is.text) && i === now.length - 1 ? 'behind' : 'diverged';
    }
    if (was.kind !== is.kind) return 'diverged';
    if (is.text === was.text) continue;
    if (i === shown.length - 1 && is.text.startsWith(was.text)) continue;
    return i === now.length - 1 && was.text.startsWith(is.text) ? 'behind' : 'diverged';
  }
  return 'continues';
}
