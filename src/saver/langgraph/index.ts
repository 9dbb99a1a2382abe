/**
 * `perdure/langgraph`: LangGraph.js checkpoints in any saver of this package.
 *
 * One thread of the store holds one LangGraph thread with all its namespaces. A checkpoint is a record. Its pending
 * writes are records beside it. Each namespace has a marker record. A step in an index thread holds the thread's name.
 */
export type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../../contract/checkpoint.ts';

import type { RunnableConfig } from '@langchain/core/runnables';
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  copyCheckpoint,
  type Checkpoint as LangGraphCheckpoint,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import { inPages } from '../pages.ts';
import { HeldCheckpoints, type Holders } from './held-checkpoints.ts';
import { Namespaces } from './namespaces.ts';
import { PendingWrites } from './pending-writes.ts';
import { putRecord } from './put-record.ts';
import {
  type Configurable,
  configOf,
  corrupt,
  type Dumped,
  hasAll,
  isRow,
  missing,
  type Place,
  placeOf,
  type Row,
  recordId,
  rowOf,
  type StoredWrite,
} from './rows.ts';
import { ThreadIndex } from './thread-index.ts';

/** Records of the first page of a search: most hits are among the newest. */
const FIRST_PAGE = 4;

/**
 * A LangGraph.js checkpointer over a {@link CheckpointSaver}: with `TemporalSaver` its threads are as durable as
 * Temporal, with `SqliteSaver` as a file.
 *
 * The latest checkpoint is the one that was put last. A repeated put or write counts once. A checkpoint is never
 * overwritten (`CONFLICT`). Writes of several processes on one checkpoint are all kept.
 *
 * `deleteThread` while a graph runs: the run continues, and its later puts are dropped, because a rejection would end
 * its whole process. Writes in progress may stay in the store unread; deleting again removes them.
 *
 * A thread that cannot be read rejects with `CHECKPOINT_CORRUPTION`. `list` over all threads leaves such a thread out.
 *
 * @throws PerdureError what the saver throws, and `INVALID_ARGUMENT` for a config without `thread_id`.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { TemporalSaver } from 'perdure';
 * import { LangGraphSaver } from 'perdure/langgraph';
 *
 * export const checkpointer = new LangGraphSaver(new TemporalSaver(new Client()));
 * ```
 */
export class LangGraphSaver extends BaseCheckpointSaver {
  readonly #saver: CheckpointSaver;
  readonly #prefix: string;
  readonly #index: ThreadIndex;
  readonly #namespaces: Namespaces;
  readonly #writes: PendingWrites;
  readonly #held = new HeldCheckpoints();

  /**
   * @param options - `prefix` separates several checkpointers on one store (default `langgraph`). No prefix may start
   * with another. `serde` is LangGraph's serializer.
   */
  constructor(saver: CheckpointSaver, options: { prefix?: string; serde?: SerializerProtocol } = {}) {
    super(options.serde);
    this.#saver = saver;
    this.#prefix = options.prefix ?? 'langgraph';
    this.#index = new ThreadIndex(saver, this.#prefix);
    this.#namespaces = new Namespaces(saver);
    this.#writes = new PendingWrites(saver, this.#held);
  }

  override async put(
    config: RunnableConfig,
    checkpoint: LangGraphCheckpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions = {},
  ): Promise<RunnableConfig> {
    const place = placeOf(config);
    const putting = this.#put(place, checkpoint, metadata, newVersions);
    return this.#held.whilePutting(this.#thread(place.threadId), putting);
  }

  async #put(
    { threadId, namespace, checkpointId: parent }: Place,
    checkpoint: LangGraphCheckpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const thread = this.#thread(threadId);
    const id = recordId(namespace, checkpoint.id);
    const stored = configOf(threadId, namespace, checkpoint.id);
    const from = parent === undefined ? undefined : recordId(namespace, parent);
    // The first checkpoint of a sub-graph has its parent in the surrounding graph, whose put may be in progress.
    const around = from === undefined ? await this.#around(thread, metadata) : undefined;
    const isKnown = from !== undefined && this.#held.has(thread, from);
    const inherited = from === undefined ? null : await this.#holders(thread, from);
    // A run with `durability: 'exit'` that made no progress puts the same checkpoint again.
    if (from === id && inherited !== null) return stored;
    if (isKnown && inherited === null) {
      this.#held.drop(thread, id);
      return stored;
    }
    const begins = parent === undefined && namespace === '';
    await Promise.all([
      this.#index.add(threadId, begins),
      inherited === null ? this.#namespaces.mark(thread, namespace, around) : undefined,
    ]);
    // A fork copies its values from a checkpoint that is not its parent.
    const isWhole = (from !== undefined && inherited === null) || metadata.source === 'fork';
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    // Store the changed values. For the others, store the record that holds them.
    const changed = Object.entries(values).filter(([channel]) => isWhole || channel in newVersions);
    const row: Row = {
      namespace,
      checkpoint_id: checkpoint.id,
      parent: parent ?? null,
      checkpoint: await this.#dump(rest),
      metadata: await this.#dump(metadata),
      values: Object.fromEntries(
        await Promise.all(
          changed.map(async ([channel, value]) => [channel, await this.#dump(value)] as const),
        ),
      ),
      holders: Object.fromEntries(
        Object.entries(inherited ?? {}).filter(
          ([channel]) => channel in values && !isWhole && !(channel in newVersions),
        ),
      ),
    };
    const parentId = inherited === null ? around : from;
    const storing = putRecord(this.#saver, thread, { ...row }, { id, parentId });
    await this.#held.whileStoring(thread, id, row, storing);
    // Another process may have deleted the thread, and so its name, in the meantime.
    if (begins) await this.#index.add(threadId, true);
    return stored;
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, namespace, checkpointId } = placeOf(config);
    if (checkpointId === undefined) throw missing('checkpoint_id');
    const fresh = await Promise.all(
      writes.map(async ([channel, value], i): Promise<StoredWrite> => {
        const index = WRITES_IDX_MAP[channel] ?? i;
        return [taskId, index, channel, await this.#dump(value)];
      }),
    );
    const thread = this.#thread(threadId);
    const id = recordId(namespace, checkpointId);
    await this.#writes.add(thread, { id, fresh, bound: await this.#held.comes(thread, id) });
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if ((config.configurable as Configurable | undefined)?.thread_id === undefined) return undefined;
    const { threadId, namespace, checkpointId } = placeOf(config);
    const row = await this.#find(threadId, namespace, checkpointId);
    if (row === undefined) return undefined;
    this.#held.remember(this.#thread(threadId), recordId(namespace, row.checkpoint_id), row);
    return this.#tuple(threadId, row);
  }

  async #find(threadId: string, namespace: string, id: string | undefined): Promise<Row | undefined> {
    if (id !== undefined) {
      const checkpointId = recordId(namespace, id);
      const record = await this.#saver.get(this.#thread(threadId), { checkpointId });
      return record === null || !isRow(record) ? undefined : rowOf(record);
    }
    if (!(await this.#namespaces.mayHave(this.#thread(threadId), namespace))) return undefined;
    for await (const row of this.#rows(threadId)) {
      if (row.namespace === namespace) return row;
    }
    return undefined;
  }

  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const {
      thread_id: one,
      checkpoint_ns: namespace,
      checkpoint_id: id,
    } = (config.configurable ?? {}) as Configurable;
    const before = (options.before?.configurable as Configurable | undefined)?.checkpoint_id;
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    const threads = one === undefined ? await this.#index.all() : [one];
    for (const threadId of threads) {
      try {
        for await (const row of this.#rows(threadId)) {
          if (left <= 0) return;
          if (namespace !== undefined && row.namespace !== namespace) continue;
          if (id !== undefined && row.checkpoint_id !== id) continue;
          if (before !== undefined && row.checkpoint_id >= before) continue;
          const tuple = await this.#tuple(threadId, row);
          if (!hasAll(tuple.metadata, options.filter)) continue;
          left -= 1;
          yield tuple;
        }
      } catch (error) {
        if (one !== undefined || !isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
      }
    }
  }

  override async deleteThread(threadId: string): Promise<void> {
    const thread = this.#thread(threadId);
    // Puts that began earlier must not arrive after the deletion.
    await this.#held.settled(thread);
    // The name goes first: a thread that begins anew after the deletion then lists itself again.
    await this.#index.remove(threadId);
    await this.#saver.delete(thread);
    this.#held.dropAll(thread);
    this.#writes.forget(thread);
  }

  #thread(threadId: string): string {
    return `${this.#prefix}/${threadId}`;
  }

  /** The checkpoints of all namespaces of a thread, newest first. */
  async *#rows(threadId: string): AsyncGenerator<Row> {
    for await (const record of inPages(this.#saver, this.#thread(threadId), { first: FIRST_PAGE })) {
      if (isRow(record)) yield rowOf(record);
    }
  }

  async #tuple(threadId: string, row: Row): Promise<CheckpointTuple> {
    const { namespace, checkpoint_id: id, parent } = row;
    const thread = this.#thread(threadId);
    const [writes, checkpoint, metadata] = await Promise.all([
      this.#writes.read(thread, recordId(namespace, id)),
      this.#checkpoint(thread, row),
      this.#load(row.metadata),
    ]);
    const pendingWrites = await Promise.all(
      writes.map(
        async ([taskId, , channel, value]): Promise<CheckpointPendingWrite> => [
          taskId,
          channel,
          await this.#load(value),
        ],
      ),
    );
    return {
      config: configOf(threadId, namespace, id),
      checkpoint,
      metadata: metadata as CheckpointMetadata,
      pendingWrites,
      ...(parent === null ? {} : { parentConfig: configOf(threadId, namespace, parent) }),
    };
  }

  async #checkpoint(thread: string, row: Row): Promise<LangGraphCheckpoint> {
    const dumped = { ...row.values };
    const holders = new Map<string, string[]>();
    for (const [channel, holder] of Object.entries(row.holders)) {
      holders.set(holder, [...(holders.get(holder) ?? []), channel]);
    }
    await Promise.all(
      [...holders].map(async ([holder, channels]) => {
        const record = await this.#saver.get(thread, { checkpointId: holder });
        for (const channel of channels) {
          const value = record === null ? undefined : rowOf(record).values[channel];
          if (value === undefined) throw corrupt(thread, holder, channel);
          dumped[channel] = value;
        }
      }),
    );
    const values = await Promise.all(
      Object.entries(dumped).map(async ([channel, value]) => [channel, await this.#load(value)] as const),
    );
    const checkpoint = {
      ...((await this.#load(row.checkpoint)) as object),
      channel_values: Object.fromEntries(values),
    } as LangGraphCheckpoint;
    if (checkpoint.v < 4 && row.parent !== null) await this.#migrateSends(thread, row, checkpoint);
    return checkpoint;
  }

  /** Before version 4 of LangGraph's format, sends were stored with the parent's writes. */
  async #migrateSends(thread: string, row: Row, checkpoint: LangGraphCheckpoint): Promise<void> {
    const writes = await this.#writes.read(thread, recordId(row.namespace, row.parent ?? ''));
    const sends = writes.filter(([, , channel]) => channel === TASKS);
    checkpoint.channel_values[TASKS] = await Promise.all(sends.map(([, , , value]) => this.#load(value)));
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  /** The records that hold a checkpoint's values, or `null` if the checkpoint does not exist. */
  async #holders(thread: string, id: string): Promise<Holders | null> {
    const known = this.#held.holders(thread, id);
    if (known !== undefined) return known;
    const record = await this.#saver.get(thread, { checkpointId: id });
    return record === null ? null : this.#held.remember(thread, id, rowOf(record));
  }

  async #around(thread: string, { parents }: CheckpointMetadata): Promise<string | undefined> {
    const ids = Object.entries(parents ?? {}).map((of) => recordId(...of));
    const known = (): string | undefined => ids.find((id) => this.#held.has(thread, id));
    if (ids.length > 0 && known() === undefined) await this.#held.settled(thread);
    return known();
  }

  async #dump(value: unknown): Promise<Dumped> {
    const [type, data] = await this.serde.dumpsTyped(value);
    return type === 'json'
      ? [type, new TextDecoder().decode(data)]
      : [type, Buffer.from(data).toString('base64')];
  }

  async #load([type, text]: Dumped): Promise<unknown> {
    return this.serde.loadsTyped(type, type === 'json' ? text : new Uint8Array(Buffer.from(text, 'base64')));
  }
}
