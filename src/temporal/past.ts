/** Sealed pieces of sessions: stored, loaded, copied and removed. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { ToolCall } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, sha256Hex } from '../contract/json.ts';
import type { Message } from '../contract/messages.ts';
import type { Piece, PieceRef } from '../contract/piece.ts';
import type { SessionState } from '../contract/state.ts';
import { type ContentRef, contentId } from '../contract/thread.ts';
import { loadParts } from './content.ts';
import { deleteRun, findExecution } from './executions.ts';
import { inChunks, storeParts } from './store-content.ts';

/** Whose pieces they are: a session has copies of its own, so that deleting another one takes nothing from it. */
export interface PieceOwner {
  sessionId: string;
  taskQueue: string;
}

/** Stores a piece. An equal one of the same session is stored once. */
export async function storePiece(
  client: Client,
  { sessionId, taskQueue }: PieceOwner,
  piece: Piece,
): Promise<ContentRef> {
  const json = canonicalJson(piece as unknown as JsonObject);
  return storeParts(client, {
    key: `${prefixOf(sessionId)}${sha256Hex(json).slice(0, 40)}`,
    text: gzipSync(json).toString('base64'),
    what: `the past of ${sessionId}`,
    taskQueue,
    // The workflow stays open without a task: no worker gets it, and retention does not remove it.
    startDelay: '10000 days',
  });
}

/** @throws PerdureError `CHECKPOINT_CORRUPTION` when it is gone, changed, or of a newer version */
export async function loadPiece(client: Client, ref: ContentRef): Promise<Piece> {
  const json = gunzipSync(Buffer.from(await loadParts(client, ref), 'base64')).toString();
  const piece = JSON.parse(json) as Piece;
  const schema: unknown = piece.schema;
  if (schema === 1) return piece;
  throw new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `${contentId(ref.key, 0)} has schema ${JSON.stringify(schema)}, and this version of perdure reads 1`,
  );
}

/** All pieces, oldest first. */
async function loadPieces(client: Client, newest: ContentRef): Promise<Piece[]> {
  const last = await loadPiece(client, newest);
  const pieces: Piece[] = [];
  for (const ref of last.before) pieces.push(await loadPiece(client, ref));
  return [...pieces, last];
}

/** The entries of a session with indexes from `first` to before `end`, which are all in pieces. */
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

/** The messages and calls of a session from its beginning, of which a state holds those of its own run. */
export async function wholeRecord(
  client: Client,
  { past, transcript, calls }: SessionState,
): Promise<{ transcript: Message[]; calls: ToolCall[] }> {
  if (past === undefined) return { transcript, calls };
  const pieces = await loadPieces(client, past.newest);
  return {
    transcript: [...pieces.flatMap(({ messages }) => messages).slice(0, past.messages), ...transcript],
    calls: [...pieces.flatMap((piece) => piece.calls), ...calls],
  };
}

/** Stores the pieces of a session for another one, or for one that goes back to them. */
export async function copyPieces(client: Client, owner: PieceOwner, newest: ContentRef): Promise<ContentRef> {
  const before: PieceRef[] = [];
  let last: ContentRef = newest;
  for (const piece of await loadPieces(client, newest)) {
    last = await storePiece(client, owner, { ...piece, before: [...before] });
    before.push(refOf(piece, last));
  }
  return last;
}

/** Names a piece in a later one. */
export function refOf({ level, messages, calls }: Piece, { key, parts, digest }: ContentRef): PieceRef {
  return { key, parts, digest, level, messages: messages.length, calls: calls.length };
}

/**
 * Closes pieces whose content is in a larger one. Checkpoints of earlier runs still name them: the server keeps a closed
 * workflow for the namespace's retention, and so for longer than those runs.
 */
export async function closePieces(client: Client, pieces: readonly ContentRef[]): Promise<void> {
  for (const id of pieces.flatMap(idsOf)) {
    try {
      await client.workflow.getHandle(id).terminate('its content is in a larger piece');
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
}

/** Removes the pieces of a session that is deleted, as far as the newest one names them or visibility shows them. */
export async function deletePieces(client: Client, sessionId: string, newest?: ContentRef): Promise<void> {
  const named = newest === undefined ? [] : [...(await before(client, newest)), newest].flatMap(idsOf);
  const ids = new Set(named);
  const query = `WorkflowId STARTS_WITH 'perdure-content/${prefixOf(sessionId)}'`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);
  await inChunks([...ids], async (id) => {
    const found = await findExecution(client, id);
    if (found !== null) await deleteRun(client, id, found.runId);
  });
}

/** An unreadable piece must not keep a session from being deleted. */
async function before(client: Client, newest: ContentRef): Promise<readonly PieceRef[]> {
  return (await loadPiece(client, newest).catch(() => null))?.before ?? [];
}

function idsOf({ key, parts }: ContentRef): string[] {
  return [...Array(parts).keys()].map((part) => contentId(key, part));
}

function prefixOf(sessionId: string): string {
  return `past/${sha256Hex(sessionId).slice(0, 16)}/`;
}
