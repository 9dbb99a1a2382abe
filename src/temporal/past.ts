/** Sealed pieces of sessions: stored, loaded, copied and removed. */
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { type EffectRef, isUndoable, type ToolCall } from '../contract/calls.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, sha256Hex } from '../contract/json.ts';
import { chainMessage, EMPTY_DIGEST } from '../contract/keys.ts';
import type { Past } from '../contract/past.ts';
import { notesOf, type Piece, type PieceRef } from '../contract/piece.ts';
import type { SessionState } from '../contract/state.ts';
import { type ContentRef, contentId } from '../contract/thread.ts';
import { corruptContent, readParts, readStartInput } from './content.ts';
import { deleteRun, findExecution } from './executions.ts';
import { type PackedCall, packCall, unpackCall } from './packed-calls.ts';
import { inChunks, storeParts } from './store-content.ts';

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/** Brotli qualities. A merged piece stays for good. A higher one takes several times as long to save a fiftieth. */
const QUALITY = { own: 6, merged: 9 } as const;

/** A piece as it is stored. Schema 1 has whole calls and no namespace. */
type StoredPiece =
  | ({ schema: 1 } & Omit<Piece, 'namespace'>)
  | ({ schema: 2; calls: PackedCall[] } & Omit<Piece, 'calls'>);

/** The owner of pieces. Each session has its own copies, so that deleting another session takes nothing from it. */
export interface PieceOwner {
  sessionId: string;
  taskQueue: string;
}

/** Stores a piece. Equal pieces of the same session are stored once. */
export async function storePiece(
  client: Client,
  { sessionId, taskQueue }: PieceOwner,
  piece: Piece,
): Promise<ContentRef> {
  const calls = piece.calls.map((call) => packCall(call, piece.namespace));
  const stored: StoredPiece = { ...piece, schema: 2, calls };
  const json = canonicalJson(stored as unknown as JsonObject);
  // The digest is of the JSON, because another version of the compressor makes other bytes.
  const digest = sha256Hex(json);
  const { key, parts } = await storeParts(client, {
    key: `${prefixOf(sessionId)}${digest.slice(0, 40)}`,
    // The compressor's window holds a whole piece, so a result in a message and in a call is stored once.
    content: await compress(json, {
      params: { [constants.BROTLI_PARAM_QUALITY]: piece.level === 0 ? QUALITY.own : QUALITY.merged },
    }),
    what: `the past of ${sessionId}`,
    taskQueue,
    // The workflow stays open without a task: no worker gets it, and retention does not remove it.
    startDelay: '10000 days',
  });
  return { key, parts, digest };
}

/** @throws PerdureError `CHECKPOINT_CORRUPTION` when the piece is gone, changed, or of a newer version */
export async function loadPiece(client: Client, ref: ContentRef): Promise<Piece> {
  const parts = await readParts(client, ref);
  let json: string;
  try {
    json = (await decompress(Buffer.concat(parts as Uint8Array[]))).toString();
  } catch (error) {
    throw corruptContent(ref, error);
  }
  if (sha256Hex(json) !== ref.digest) throw corruptContent(ref);
  const { schema, ...piece } = JSON.parse(json) as StoredPiece;
  if (schema === 1) return { ...piece, namespace: '' } as Piece;
  if (schema === 2) {
    const { namespace } = piece as Piece;
    return { ...piece, namespace, calls: piece.calls.map((call) => unpackCall(call, namespace)) };
  }
  throw new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `${contentId(ref.key, 0)} has schema ${JSON.stringify(schema)}, and this version of perdure reads 1 and 2: update the workers`,
  );
}

/** The part of a state that names its pieces. */
type Sealed = Pick<Past, 'newest' | 'sealed' | 'calls'>;

/** All pieces, oldest first. */
async function loadPieces(client: Client, newest: ContentRef): Promise<Piece[]> {
  const last = await loadPiece(client, newest);
  const pieces: Piece[] = [];
  for (const ref of last.before) pieces.push(await loadPiece(client, ref));
  return [...pieces, last];
}

/**
 * All pieces of a state, oldest first. A checkpoint of an earlier run may name pieces that were merged, and that
 * retention has removed. Then the content comes from the session's later pieces.
 */
async function piecesOf(client: Client, sessionId: string, past: Sealed): Promise<Piece[]> {
  try {
    return await loadPieces(client, past.newest);
  } catch (error) {
    const later = isPerdureError(error, 'CHECKPOINT_CORRUPTION')
      ? await laterPiece(client, sessionId, past)
      : null;
    if (later === null) throw error;
    return [later];
  }
}

/** The content of a state's pieces, from those of the session's present run; `null` when that run has another past. */
async function laterPiece(client: Client, sessionId: string, past: Sealed): Promise<Piece | null> {
  const input = (await readStartInput(client, sessionId)) as { carried?: SessionState } | null;
  const newest = input?.carried?.past?.newest;
  if (newest === undefined || newest.key === past.newest.key) return null;
  const pieces = await loadPieces(client, newest);
  const messages = pieces.flatMap((piece) => piece.messages).slice(0, past.sealed.count);
  if (messages.reduce(chainMessage, EMPTY_DIGEST) !== past.sealed.digest) return null;
  // Only its time tells where a pause belongs among the messages.
  const until = messages.at(-1)?.created_at ?? '';
  return {
    namespace: pieces.at(-1)?.namespace ?? '',
    level: 1,
    before: [],
    messages,
    calls: pieces.flatMap(({ calls }) => calls).slice(0, past.calls),
    left: pieces.flatMap(({ left }) => left ?? []),
    notices: [],
    pauses: pieces.flatMap(({ pauses }) => pauses).filter(({ pausedAt }) => pausedAt <= until),
    ...notesOf(pieces),
  };
}

/** A session's messages or calls from index `first` up to `end`, exclusive. All of them must be in pieces. */
export async function entriesOf<K extends 'messages' | 'calls'>(
  client: Client,
  newest: ContentRef,
  which: K,
  { first, end }: { first: number; end: number },
): Promise<Piece[K][number][]> {
  const last = await loadPiece(client, newest);
  const found: Piece[K][number][] = [];
  let at = 0;
  for (const ref of [...last.before, null]) {
    const count = ref === null ? last[which].length : ref[which];
    const from = Math.max(0, first - at);
    const to = Math.min(count, end - at);
    if (from < to) found.push(...(ref === null ? last : await loadPiece(client, ref))[which].slice(from, to));
    at += count;
  }
  return found;
}

/** A session's state with the messages and calls of all its runs. The state itself holds only those of its own run. */
export async function wholeState(client: Client, state: SessionState): Promise<SessionState> {
  const { past, ...own } = state;
  if (past === undefined) return state;
  const pieces = await piecesOf(client, state.sessionId, past);
  return {
    ...own,
    transcript: [...pieces.flatMap(({ messages }) => messages).slice(0, past.messages), ...own.transcript],
    calls: withUndone([...pieces.flatMap(({ calls }) => calls), ...own.calls]),
    pauses: [...pieces.flatMap(({ pauses }) => pauses), ...own.pauses],
    ...notesOf([...pieces, own]),
  };
}

/** Marks the effects of earlier runs that the present one has undone. */
export function withUndone(calls: readonly ToolCall[]): ToolCall[] {
  const by = new Map<string, string>();
  for (const { id, compensates, status } of calls)
    if (compensates !== undefined && status.kind === 'completed') by.set(keyOf(compensates), id);
  return calls.map((call) => {
    const compensatedBy = by.get(keyOf({ callId: call.id, idempotencyKey: call.idempotencyKey }));
    return compensatedBy === undefined ? call : { ...call, compensatedBy };
  });
}

function keyOf({ callId, idempotencyKey }: EffectRef): string {
  return `${callId} ${idempotencyKey}`;
}

/**
 * The effects of earlier runs that may have happened and were not undone, oldest first. Includes the effects of runs
 * that a reset has abandoned.
 */
export async function earlierEffects(client: Client, sessionId: string, past: Sealed): Promise<ToolCall[]> {
  const pieces = await piecesOf(client, sessionId, past);
  const effects = new Map<string, ToolCall>();
  for (const call of withUndone(pieces.flatMap(({ left = [], calls }) => [...left, ...calls]))) {
    const { id: callId, idempotencyKey } = call;
    if (isUndoable(call)) effects.set(keyOf({ callId, idempotencyKey }), call);
  }
  return [...effects.values()];
}

/** Stores copies of a state's pieces for another session, or for a session that is rewound to this state. */
export async function copyPieces(
  client: Client,
  owner: PieceOwner,
  sessionId: string,
  past: Past,
): Promise<ContentRef> {
  const before: PieceRef[] = [];
  let last = past.newest;
  for (const piece of await piecesOf(client, sessionId, past)) {
    last = await storePiece(client, owner, { ...piece, before: [...before] });
    before.push(refOf(piece, last));
  }
  return last;
}

/** The reference to a piece in a later piece. */
export function refOf({ level, messages, calls }: Piece, { key, parts, digest }: ContentRef): PieceRef {
  return { key, parts, digest, level, messages: messages.length, calls: calls.length };
}

/**
 * Closes pieces whose content is in a larger piece. Checkpoints of earlier runs still name them. The server keeps a
 * closed workflow for the namespace's retention, and so for longer than those runs.
 */
export async function closePieces(client: Client, pieces: readonly ContentRef[]): Promise<void> {
  await inChunks(pieces.flatMap(idsOf), async (id) => {
    try {
      await client.workflow.getHandle(id).terminate('its content is in a larger piece');
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  });
}

/** Removes the pieces of a deleted session: those that the newest piece names, and those that visibility shows. */
export async function deletePieces(client: Client, sessionId: string, newest?: ContentRef): Promise<void> {
  const named = newest === undefined ? [] : [...(await before(client, newest)), newest].flatMap(idsOf);
  const ids = new Set(named);
  for await (const { workflowId } of client.workflow.list({ query: pieceQuery(sessionId) }))
    ids.add(workflowId);
  await inChunks([...ids], async (id) => {
    const found = await findExecution(client, id);
    if (found !== null) await deleteRun(client, id, found.runId);
  });
}

/** An unreadable piece must not keep a session from being deleted. */
async function before(client: Client, newest: ContentRef): Promise<readonly PieceRef[]> {
  return (await loadPiece(client, newest).catch(() => null))?.before ?? [];
}

/** A visibility query for the workflows that hold a session's pieces. */
export function pieceQuery(sessionId: string): string {
  return `WorkflowId STARTS_WITH 'perdure-content/${prefixOf(sessionId)}'`;
}

function idsOf({ key, parts }: ContentRef): string[] {
  return [...Array(parts).keys()].map((part) => contentId(key, part));
}

function prefixOf(sessionId: string): string {
  return `past/${sha256Hex(sessionId).slice(0, 16)}/`;
}
