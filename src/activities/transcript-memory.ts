import { LRUCache } from 'lru-cache';
import { jsonSize } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';

/** Messages of a session up to a position. `base` is the index of the first one: a summary replaces those before it. */
export interface Stretch {
  messages: readonly Message[];
  base: number;
}

interface Entry extends Stretch {
  /** Positions at which a prompt may end, newest last. */
  positions: Position[];
  bytes: number;
}

/** How many past positions of a session are kept: a repeated call asks for an older one. */
const KEPT_POSITIONS = 4;

/**
 * The transcripts that a worker keeps in memory, so that a model call need not read the history.
 *
 * The key is the session, and the chained digest is checked: a branch that a rewind, a reset or a failed workflow task
 * has discarded has another digest, and is never served. It is bounded in bytes and evicts the least recently used.
 */
export class TranscriptMemory {
  readonly #sessions: LRUCache<string, Entry>;

  constructor(maxBytes: number) {
    this.#sessions = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes + 1 });
  }

  /** Adds a piece that continues a transcript or starts one. Any other piece is dropped. */
  remember(sessionId: string, piece: { from: Position; to: Position; messages: readonly Message[] }): void {
    const entry = this.#sessions.get(sessionId);
    const known = entry?.positions.some(({ digest }) => digest === piece.from.digest) === true;
    if (entry === undefined || !known) {
      if (piece.from.count === 0) this.replace(sessionId, { messages: piece.messages, base: 0 }, piece.to);
      return;
    }
    const messages = [...entry.messages.slice(0, piece.from.count - entry.base), ...piece.messages];
    const summary = piece.messages.findLast((message) => message.summary !== undefined)?.summary;
    // No later request needs the summarized messages, or a position before the summary.
    if (summary !== undefined) {
      const rest = messages.slice(summary.before - entry.base);
      this.replace(sessionId, { messages: rest, base: summary.before }, piece.to);
      return;
    }
    this.#set(sessionId, {
      messages,
      base: entry.base,
      positions: [...entry.positions.filter(({ count }) => count <= piece.from.count), piece.to].slice(
        -KEPT_POSITIONS,
      ),
      bytes: entry.bytes + jsonSize(piece.messages),
    });
  }

  /** Replaces a transcript as a whole. */
  replace(sessionId: string, { messages, base }: Stretch, position: Position): void {
    this.#set(sessionId, { messages, base, positions: [position], bytes: jsonSize(messages) });
  }

  /** Forgets a session that has ended. */
  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** The messages up to the position with this digest, or `undefined` if this worker does not have them. */
  recall(sessionId: string, digestStart: string): Stretch | undefined {
    const entry = this.#sessions.get(sessionId);
    const position = entry?.positions.find(({ digest }) => shortDigest(digest) === shortDigest(digestStart));
    if (entry === undefined || position === undefined) return undefined;
    const { messages, base } = entry;
    return { messages: messages.slice(0, position.count - base), base };
  }

  #set(sessionId: string, entry: Entry): void {
    this.#sessions.set(sessionId, entry);
  }
}
