/** Histories of sessions that were recorded once, as they lie in `test/histories`. */
import { readdirSync, readFileSync } from 'node:fs';
import { defaultDataConverter } from '@temporalio/common';
import proto from '@temporalio/proto';
import type { SessionState } from '../../src/index.ts';
import type { Decoding } from '../../src/temporal/payloads.ts';

const { History } = proto.temporal.api.history.v1;

/** Where they lie. */
export const DIRECTORY: URL = new URL('../histories/', import.meta.url);

/** Their payloads are plain JSON. */
export const PLAIN: Decoding = {
  loadedDataConverter: defaultDataConverter,
  namespace: 'default',
};

/** What is stored of a session. */
export interface Stored {
  /** The history as protobuf's plain object: 64-bit numbers and enums as text, bytes in base64. */
  history: Record<string, unknown>;
  /** Event of each checkpoint, with the transcript's position there. */
  checkpoints: [eventId: number, count: number, digest: string][];
  /** The state at the end. `null`: it is no session's history. */
  state: SessionState | null;
  /** Absent: the session's id. */
  workflowId?: string;
}

/** The files' names. */
export const storedFiles = (): string[] => readdirSync(DIRECTORY).filter((name) => name.endsWith('.json'));

/** Reads one, with a history of its own to change. */
export function readStored(
  file: string,
): Stored & { workflowId: string; decoded: proto.temporal.api.history.v1.History } {
  const stored = JSON.parse(readFileSync(new URL(file, DIRECTORY), 'utf8')) as Stored;
  const { workflowId = stored.state?.sessionId ?? '' } = stored;
  return { ...stored, workflowId, decoded: History.fromObject(stored.history) };
}
