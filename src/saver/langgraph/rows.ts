/** How LangGraph's checkpoints and writes are stored. */
import type { RunnableConfig } from '@langchain/core/runnables';
import type { CheckpointMetadata } from '@langchain/langgraph-checkpoint';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { PerdureError } from '../../contract/errors.ts';

export interface Place {
  threadId: string;
  namespace: string;
  checkpointId: string | undefined;
}

export interface Row {
  namespace: string;
  checkpoint_id: string;
  parent: string | null;
  /** The checkpoint without its values. */
  checkpoint: Dumped;
  metadata: Dumped;
  /** Values that changed with this checkpoint, by channel. */
  values: Record<string, Dumped>;
  /** For each other channel: the id of the record that holds its value. */
  holders: Record<string, string>;
}

/** A value as LangGraph's serializer wrote it: JSON as text, everything else in base 64. */
export type Dumped = [type: string, text: string];

/** A write as it is stored: task, index (negative for LangGraph's own), channel, value. */
export type StoredWrite = [taskId: string, index: number, channel: string, value: Dumped];

export interface Configurable {
  thread_id?: string;
  checkpoint_ns?: string;
  checkpoint_id?: string;
}

export function placeOf(config: RunnableConfig): Place {
  const { thread_id, checkpoint_ns = '', checkpoint_id } = (config.configurable ?? {}) as Configurable;
  if (typeof thread_id !== 'string' || thread_id === '') throw missing('thread_id');
  return {
    threadId: thread_id,
    namespace: checkpoint_ns,
    checkpointId: checkpoint_id === '' ? undefined : checkpoint_id,
  };
}

export function missing(field: string): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    `configurable.${field} is missing: pass { configurable: { ${field}: '…' } } when you call the graph`,
  );
}

export function corrupt(thread: string, record: string, channel: string): PerdureError {
  return new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `thread ${thread}: record ${record} lacks channel ${channel}`,
  );
}

export function configOf(threadId: string, namespace: string, checkpointId: string): RunnableConfig {
  return { configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpointId } };
}

export function recordId(namespace: string, checkpointId: string): string {
  return namespace === '' ? checkpointId : `${namespace}/${checkpointId}`;
}

/** The record at one position of a checkpoint's log of writes. No namespace has a line break. */
export function logId(id: string, n: number): string {
  return `${id}\n${n}`;
}

export function markId(namespace: string): string {
  return `namespace\n${namespace}`;
}

/** Whether a record is a checkpoint, not a log entry or a marker. */
export function isRow({ state }: Checkpoint): boolean {
  return 'checkpoint_id' in state;
}

export function rowOf({ state }: Checkpoint): Row {
  return state as unknown as Row;
}

/**
 * Adds writes. A task's own write is stored once. A newer write of LangGraph (error, interrupt, resume) replaces the
 * older.
 */
export function merge(stored: StoredWrite[], fresh: readonly StoredWrite[]): StoredWrite[] {
  const at = new Map(stored.map((write, i) => [`${write[1]}/${write[0]}`, i]));
  const merged = [...stored];
  let changed = false;
  for (const write of fresh) {
    const key = `${write[1]}/${write[0]}`;
    const old = at.get(key);
    if (old !== undefined && write[1] >= 0) continue;
    if (old === undefined) {
      at.set(key, merged.length);
      merged.push(write);
    } else merged[old] = write;
    changed = true;
  }
  return changed ? merged : stored;
}

export function hasAll(
  metadata: CheckpointMetadata | undefined,
  filter: Record<string, unknown> | undefined,
): boolean {
  return Object.entries(filter ?? {}).every(
    ([key, value]) => (metadata as Record<string, unknown> | undefined)?.[key] === value,
  );
}
