/**
 * `perdure/langgraph`: LangGraph.js checkpoints in any home of this package.
 *
 * One thread of the store holds one thread of LangGraph with all its namespaces. A checkpoint is a record; the
 * writes that are pending on it are one step; a thread's name is a step of an index, for lists over all threads.
 */
export type * from '../contract/checkpoint.ts';

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
import type { CheckpointSaver } from '../contract/checkpoint.ts';
import { Batches, type Waiting } from './batches.ts';
import {
  type Configurable,
  configOf,
  corrupt,
  type Dumped,
  hasAll,
  merge,
  missing,
  placeOf,
  type Row,
  recordId,
  rowOf,
  type StoredWrite,
} from './langgraph-rows.ts';

/** How records are looked at while one of a kind is sought: few at first, then more. */
const PAGE = { first: 4, most: 256 } as const;

/** Checkpoints of which it is remembered where their values are. */
const HELD_AT_HAND = 1_000;

/** Writes that are to be stored beside those that a checkpoint has. */
interface NewWrites {
  key: string;
  fresh: readonly StoredWrite[];
}

/**
 * A LangGraph.js checkpointer over a {@link CheckpointSaver}: with `TemporalSaver` its threads are as durable as
 * Temporal, with `SqliteSaver` as a file.
 *
 * The latest checkpoint is the one that was put last. A put or a write that is repeated is stored once; a
 * checkpoint is never overwritten (`CONFLICT`).
 *
 * @throws PerdureError what the saver throws, and `INVALID_ARGUMENT` for a config without `thread_id`.
 */
export class LangGraphSaver extends BaseCheckpointSaver {
  readonly #saver: CheckpointSaver;
  readonly #prefix: string;
  /** The writes of one thread are read, merged and stored in their order: those together that wait together. */
  readonly #merging: Batches<NewWrites, void> = new Batches((thread, batch) => this.#merge(thread, batch));
  readonly #indexed = new Map<string, Promise<void>>();
  readonly #held = new Map<string, Record<string, string>>();

  /**
   * @param options - `prefix` keeps several checkpointers on one store apart (default `langgraph`); `serde` is
   * LangGraph's serializer.
   */
  constructor(saver: CheckpointSaver, options: { prefix?: string; serde?: SerializerProtocol } = {}) {
    super(options.serde);
    this.#saver = saver;
    this.#prefix = options.prefix ?? 'langgraph';
  }

  override async put(
    config: RunnableConfig,
    checkpoint: LangGraphCheckpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions = {},
  ): Promise<RunnableConfig> {
    const { threadId, namespace, checkpointId: parent } = placeOf(config);
    await this.#index(threadId);
    const thread = this.#thread(threadId);
    const id = recordId(namespace, checkpoint.id);
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    // Only what has changed is stored; of the rest, where it is.
    const changed = Object.entries(values).filter(([channel]) => channel in newVersions);
    const inherited = parent === undefined ? {} : await this.#holders(thread, recordId(namespace, parent));
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
        Object.entries(inherited).filter(([channel]) => channel in values && !(channel in newVersions)),
      ),
    };
    await this.#saver.put(thread, { ...row }, { id });
    this.#remember(thread, id, row);
    return configOf(threadId, namespace, checkpoint.id);
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
    await this.#index(threadId);
    await this.#merging.add(thread, { key: recordId(namespace, checkpointId), fresh });
  }

  async #merge(thread: string, batch: readonly Waiting<NewWrites, void>[]): Promise<void> {
    const byKey = new Map<string, Waiting<NewWrites, void>[]>();
    for (const one of batch) byKey.set(one.item.key, [...(byKey.get(one.item.key) ?? []), one]);
    await Promise.all(
      [...byKey].map(async ([key, waiting]) => {
        try {
          const stored = await this.#writes(thread, key);
          const merged = waiting.reduce((writes, { item }) => merge(writes, item.fresh), stored);
          if (merged !== stored) await this.#saver.putStep(thread, key, merged);
          for (const { resolve } of waiting) resolve();
        } catch (error) {
          for (const { reject } of waiting) reject(error);
        }
      }),
    );
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if ((config.configurable as Configurable | undefined)?.thread_id === undefined) return undefined;
    const { threadId, namespace, checkpointId } = placeOf(config);
    if (checkpointId !== undefined) {
      const record = await this.#saver.get(this.#thread(threadId), {
        checkpointId: recordId(namespace, checkpointId),
      });
      return record === null ? undefined : this.#tuple(threadId, rowOf(record));
    }
    for await (const row of this.#rows(threadId)) {
      if (row.namespace === namespace) return this.#tuple(threadId, row);
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
    const threads = one === undefined ? await this.#threads() : [one];
    for (const threadId of threads) {
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
    }
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#saver.delete(this.#thread(threadId));
    this.#indexed.delete(threadId);
    await this.#saver.putStep(this.#prefix, threadId, null);
  }

  #thread(threadId: string): string {
    return `${this.#prefix}/${threadId}`;
  }

  /** Lets lists over all threads find this one. */
  #index(threadId: string): Promise<void> {
    const known = this.#indexed.get(threadId);
    if (known !== undefined) return known;
    const indexing = this.#addToIndex(threadId);
    this.#indexed.set(threadId, indexing);
    // What has failed is tried again by who comes next.
    indexing.catch(() => this.#indexed.delete(threadId));
    return indexing;
  }

  async #addToIndex(threadId: string): Promise<void> {
    const known = await this.#saver.getStep(this.#prefix, threadId);
    if (known?.value !== true) await this.#saver.putStep(this.#prefix, threadId, true);
  }

  async #threads(): Promise<string[]> {
    const steps = await this.#saver.listSteps(this.#prefix);
    return steps.filter(({ value }) => value === true).map(({ key }) => key);
  }

  /** The checkpoints of a thread, newest first, of all its namespaces. */
  async *#rows(threadId: string): AsyncGenerator<Row> {
    const thread = this.#thread(threadId);
    let before: string | undefined;
    for (let limit: number = PAGE.first; ; limit = Math.min(limit * 4, PAGE.most)) {
      const page = await this.#saver.list(thread, before === undefined ? { limit } : { limit, before });
      yield* page.map(rowOf);
      before = page.at(-1)?.id;
      if (page.length < limit || before === undefined) return;
    }
  }

  async #tuple(threadId: string, row: Row): Promise<CheckpointTuple> {
    const { namespace, checkpoint_id: id, parent } = row;
    const thread = this.#thread(threadId);
    const [writes, checkpoint, metadata] = await Promise.all([
      this.#writes(thread, recordId(namespace, id)),
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

  /** Before version 4 of LangGraph's format, what a task sends lay with the parent's writes. */
  async #migrateSends(thread: string, row: Row, checkpoint: LangGraphCheckpoint): Promise<void> {
    const writes = await this.#writes(thread, recordId(row.namespace, row.parent ?? ''));
    const sends = writes.filter(([, , channel]) => channel === TASKS);
    checkpoint.channel_values[TASKS] = await Promise.all(sends.map(([, , , value]) => this.#load(value)));
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  /** Of each channel of a checkpoint, the record that holds its value. */
  async #holders(thread: string, id: string): Promise<Record<string, string>> {
    const known = this.#held.get(`${thread}\n${id}`);
    if (known !== undefined) return known;
    const record = await this.#saver.get(thread, { checkpointId: id });
    return record === null ? {} : this.#remember(thread, id, rowOf(record));
  }

  #remember(thread: string, id: string, row: Row): Record<string, string> {
    const own = Object.keys(row.values).map((channel) => [channel, id] as const);
    const holders = { ...row.holders, ...Object.fromEntries(own) };
    this.#held.set(`${thread}\n${id}`, holders);
    const oldest = this.#held.keys().next().value;
    if (this.#held.size > HELD_AT_HAND && oldest !== undefined) this.#held.delete(oldest);
    return holders;
  }

  async #writes(thread: string, key: string): Promise<StoredWrite[]> {
    const step = await this.#saver.getStep(thread, key);
    return (step?.value ?? []) as unknown as StoredWrite[];
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
