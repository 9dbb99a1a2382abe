/** Writes an answer of a session as chunks of the AI SDK's UI message stream. */
import type { UIMessageChunk } from 'ai';
import type { ToolCall } from '../contract/calls.ts';
import { canonicalJson, defined, type JsonValue } from '../contract/json.ts';
import type { LiveDelta } from '../contract/live-text.ts';
import type { Block } from '../contract/messages.ts';
import { approvalId, type FileUrl, fileOf, outcomeOf, sourceOf } from './parts.ts';
import { LivePieces, type Piece, piecesOf, relation } from './pieces.ts';

/** The major version of the AI SDK in the browser. */
export type AiSdk = 6 | 7;

/** A chunk. Those that version 6 does not know are written for version 7 only. */
export type Chunk =
  | UIMessageChunk
  | { type: 'reset-step' }
  | { type: 'tool-approval-response'; approvalId: string; approved: boolean; reason?: string };

/** Marks text that a lost worker had written. Clients of version 6 cannot remove it by themselves. */
const WITHDRAWN = { perdure: { withdrawn: true } };
const UNMADE = 'The model did not make this call: its worker was lost, and the answer began anew.';

/** What a client knows about a call. */
interface Known {
  input: string;
  approval: string;
  isDecided: boolean;
  isOver: boolean;
}

export class AnswerWriter {
  readonly #sessionId: string;
  readonly #aiSdk: AiSdk;
  readonly #fileUrl: FileUrl;
  #out: Chunk[] = [];
  #ids = 0;
  #open: { kind: 'text' | 'reasoning'; id: string } | null = null;
  /** `recorded`: the reply of this step is complete. */
  #step: 'none' | 'open' | 'recorded' = 'none';
  /** The pieces of the current reply that are on the screen. */
  #shown: Piece[] = [];
  #live: LivePieces | null = null;
  /** Calls of that reply whose input has begun: names by id. */
  readonly #begun = new Map<string, string>();
  readonly #calls = new Map<string, Known>();

  constructor(sessionId: string, aiSdk: AiSdk, fileUrl: FileUrl) {
    this.#sessionId = sessionId;
    this.#aiSdk = aiSdk;
    this.#fileUrl = fileUrl;
  }

  /** Returns the chunks to send, and forgets them. */
  take(): Chunk[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  put(chunk: Chunk): void {
    this.#out.push(chunk);
  }

  /** Whether a call was decided and has not ended. */
  get hasDecidedCall(): boolean {
    return [...this.#calls.values()].some(({ isDecided, isOver }) => isDecided && !isOver);
  }

  /** Skips a reply that the client has. Later states of its calls are still written. */
  skip(blocks: readonly Block[]): void {
    for (const block of blocks) if (block.kind === 'tool_call') this.#know(block.id, block.args);
  }

  /** @param turn - the number of the turn that the reply begins */
  live(delta: LiveDelta, turn: number): void {
    this.#live ??= new LivePieces(turn);
    this.#live.add(delta);
    this.#show(this.#live.pieces);
  }

  /** Discards the live text of the current reply. It stays on the screen until the next attempt says something else. */
  restart(): void {
    this.#live = null;
  }

  /** Writes a recorded reply. */
  reply(blocks: readonly Block[]): void {
    const pieces = piecesOf(blocks);
    if (this.#shown.length === 0 || relation(this.#shown, pieces) === 'continues') this.#show(pieces);
    else if (this.#aiSdk === 6 && textOf(this.#shown) === textOf(pieces)) this.#complete(pieces);
    else {
      this.#withdraw();
      this.#show(pieces);
    }
    this.#close();
    for (const piece of pieces) if (piece.kind === 'tool') this.#input(piece.id, piece.name, piece.input);
    for (const [toolCallId, toolName] of this.#begun)
      this.put({ type: 'tool-input-error', toolCallId, toolName, input: {}, errorText: UNMADE });
    this.#begun.clear();
    this.#live = null;
    this.#shown = [];
    if (this.#step === 'open') this.#step = 'recorded';
  }

  /** Writes the state of a call, unless the client does not have the call. */
  call(call: ToolCall): void {
    const { id: toolCallId, status, decision } = call;
    const known = this.#calls.get(toolCallId);
    if (known === undefined || known.isOver) return;
    if (canonicalJson(call.args) !== known.input) this.#input(toolCallId, call.name, call.args);
    const id = approvalId(this.#sessionId, call);
    if (status.kind === 'approval' && known.approval !== id) {
      known.approval = id;
      this.put({ type: 'tool-approval-request', approvalId: id, toolCallId });
    }
    if (decision !== null && !known.isDecided) {
      known.isDecided = true;
      const approved = decision.decision !== 'reject' && decision.decision !== 'expired';
      const { approval } = known;
      // If this stream did not request the approval, the client itself gave the answer.
      if (this.#aiSdk === 7 && approval !== '') {
        const reason = defined({ reason: decision.reason });
        this.put({ type: 'tool-approval-response', approvalId: approval, approved, ...reason });
      }
    }
    const outcome = outcomeOf(call);
    if (outcome === null) return;
    known.isOver = true;
    if (outcome === 'denied') this.put({ type: 'tool-output-denied', toolCallId });
    else if ('output' in outcome) this.put({ type: 'tool-output-available', toolCallId, ...outcome });
    else this.put({ type: 'tool-output-error', toolCallId, ...outcome });
  }

  /** Writes the end of the answer. */
  finish(finishReason: 'stop' | 'tool-calls' | 'other'): void {
    this.#close();
    this.#endStep();
    this.put({ type: 'finish', finishReason });
  }

  #show(pieces: readonly Piece[]): void {
    const how = relation(this.#shown, pieces);
    // The new attempt does not go beyond what is on the screen yet.
    if (how === 'behind') return;
    if (how === 'diverged') this.#withdraw();
    for (const [i, piece] of pieces.entries()) this.#extend(piece, i);
  }

  /** Adds kinds of pieces that are missing, such as reasoning that did not arrive live. */
  #complete(pieces: readonly Piece[]): void {
    const kinds = new Set(this.#shown.map(({ kind }) => kind));
    for (const piece of pieces) if (!kinds.has(piece.kind)) this.#extend(piece, this.#shown.length);
  }

  #withdraw(): void {
    this.#shown = [];
    if (this.#aiSdk === 7) {
      this.#begun.clear();
      this.#open = null;
      this.put({ type: 'reset-step' });
    } else this.#close(WITHDRAWN);
  }

  /** Writes what a piece has beyond the shown piece at its index. */
  #extend(piece: Piece, index: number): void {
    const was = this.#shown[index];
    const added = piece.text.slice(was?.text.length ?? 0);
    if (was !== undefined && added === '') return;
    if (this.#step !== 'open') this.#beginStep();
    if (was === undefined) this.#close();
    this.#shown[index] = { ...piece };
    if (piece.kind === 'text' || piece.kind === 'reasoning') {
      this.#open ??= this.#openText(piece.kind);
      this.put({ type: `${piece.kind}-delta`, id: this.#open.id, delta: added });
    } else if (piece.kind === 'file') this.put(fileOf(piece.block, this.#fileUrl));
    else if (piece.kind === 'source') this.put(sourceOf(piece.block));
    else if (piece.input === undefined) {
      const { id: toolCallId, name } = piece;
      if (was === undefined) this.put({ type: 'tool-input-start', toolCallId, toolName: name });
      this.#begun.set(toolCallId, name);
      if (added !== '') this.put({ type: 'tool-input-delta', toolCallId, inputTextDelta: added });
    }
  }

  #openText(kind: 'text' | 'reasoning'): { kind: 'text' | 'reasoning'; id: string } {
    const id = `${kind}-${this.#ids++}`;
    this.put({ type: `${kind}-start`, id });
    return { kind, id };
  }

  #input(toolCallId: string, toolName: string, input: JsonValue = null): void {
    this.#begun.delete(toolCallId);
    this.#know(toolCallId, input).input = canonicalJson(input);
    this.put({ type: 'tool-input-available', toolCallId, toolName, input });
  }

  #know(callId: string, input: JsonValue): Known {
    const known = this.#calls.get(callId) ?? {
      input: canonicalJson(input),
      approval: '',
      isDecided: false,
      isOver: false,
    };
    this.#calls.set(callId, known);
    return known;
  }

  #beginStep(): void {
    this.#endStep();
    this.put({ type: 'start-step' });
    this.#step = 'open';
  }

  #endStep(): void {
    if (this.#step !== 'none') this.put({ type: 'finish-step' });
    this.#step = 'none';
  }

  #close(providerMetadata?: typeof WITHDRAWN): void {
    const open = this.#open;
    this.#open = null;
    if (open !== null) this.put({ type: `${open.kind}-end`, id: open.id, ...defined({ providerMetadata }) });
  }
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.map(({ kind, text }) => (kind === 'text' ? text : '')).join('');
}
