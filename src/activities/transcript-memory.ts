import { LRUCache } from 'lru-cache';
import { jsonSize } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';

interface Entry {
  messages: Message[];
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
      if (piece.from.count === 0) this.replace(sessionId, piece.messages, piece.to);
      return;
    }
    this.#set(sessionId, {
      messages: [...entry.messages.slice(0, piece.from.count), ...piece.messages],
      positions: [...entry.positions.filter(({ count }) => count <= piece.from.count), piece.to].slice(
        -KEPT_POSITIONS,
      ),
      bytes: entry.bytes + jsonSize(piece.messages),
    });
  }

  /** Replaces a transcript as a whole. */
  replace(sessionId: string, messages: readonly Message[], position: Position): void {
    this.#set(sessionId, { messages: [...messages], positions: [position], bytes: jsonSize(messages) });
  }

  /** Forgets a session that has ended. */
  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** The messages up to the position with this digest, or `undefined` if this worker does not have them. */
  recall(sessionId: string, digestStart: string): readonly Message[] | undefined {
    const entry = this.#sessions.get(sessionId);
    const position = entry?.positions.find(({ digest }) => shortDigest(digest) === shortDigest(digestStart));
    return position === undefined ? undefined : entry?.messages.slice(0, position.count);
  }

  #set(sessionId: string, entry: Entry): void {
    this.#sessions.set(sessionId, entry);
  }
}
