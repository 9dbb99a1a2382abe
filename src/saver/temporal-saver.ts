import type { Client } from '@temporalio/client';
import { SessionCheckpoints } from '../checkpoints/session-checkpoints.ts';
import { SessionDeletion } from '../checkpoints/session-deletion.ts';
import type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { DEFAULT_TASK_QUEUE, WORKFLOW } from '../contract/names.ts';
import type { ValueStore } from '../contract/values.ts';
import { reservedProblem } from '../contract/workflow-ids.ts';
import { type Execution, findExecution, reading } from '../temporal/executions.ts';
import { checkGet, checkId, checkList, checkPut, checkStep } from '../thread/checks.ts';
import { Batches, type Waiting } from './batches.ts';
import { putOnSession } from './session-edit.ts';
import { ThreadStore } from './thread-store.ts';
import type { ThreadWrite, Written } from './thread-writes.ts';

const ANSWER_MS = 15_000;

/**
 * Checkpoints that Temporal holds.
 *
 * A thread with a session's id is that session. Its checkpoints are the completed workflow tasks of its history, and
 * reading them needs no worker. Ids are `<run>:<event>`, the state is that of the session with the messages and calls
 * of its run (`wholeCheckpoint` adds those of earlier runs), and the metadata is
 * `{ source: 'session', turn, phase, step, at }`, where `step` counts from 1 in each run.
 *
 * Any other thread is stored in a workflow that a worker of this package runs. When `put` has returned, the checkpoint
 * is in the server's database.
 *
 * Besides the contract's errors, calls throw PerdureError `SERVER_UNAVAILABLE`, `NO_WORKER` (other threads only; the
 * write may still happen, so repeat it with `details.id`), and `CHECKPOINT_CORRUPTION` when a history cannot be read (a
 * wrong codec, another program, a newer version), or when somebody has ended the thread's workflow. A thread whose
 * workflow was ended can be read until retention removes it. Delete it to start it again.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { diff, TemporalSaver } from 'perdure';
 *
 * const saver = new TemporalSaver(new Client());
 * const [latest, previous] = await saver.list('ticket-7', { limit: 2 });
 * if (latest && previous) console.log(diff(previous, latest));
 * ```
 */
export class TemporalSaver implements CheckpointSaver {
  readonly #client: Client;
  readonly #sessions: SessionCheckpoints;
  readonly #deletion: SessionDeletion;
  readonly #threads: ThreadStore;
  /** Writes of one thread are sent in the order of their calls: more updates at once would only wait longer. */
  readonly #writes: Batches<ThreadWrite, Written> = new Batches((threadId, batch) =>
    this.#write(threadId, batch),
  );

  /**
   * @param client - Temporal's client; its namespace and codecs apply.
   * @param options - `taskQueue`: the task queue of the workers that run threads. Default: `perdure`. `timeoutMs`: how
   * long a call waits for such a worker. Default: 15 seconds. `values`: the workers' value store. Deleting a session
   * also deletes the values that only it refers to.
   */
  constructor(
    client: Client,
    options: { taskQueue?: string; timeoutMs?: number; values?: ValueStore | undefined } = {},
  ) {
    this.#client = client;
    this.#sessions = new SessionCheckpoints(client);
    this.#deletion = new SessionDeletion(client, this.#sessions, options.values);
    this.#threads = new ThreadStore(client, {
      taskQueue: options.taskQueue ?? DEFAULT_TASK_QUEUE,
      timeoutMs: options.timeoutMs ?? ANSWER_MS,
    });
  }

  /**
   * Stores a checkpoint. For a session, `put` edits the transcript, plan or scratchpad of the session at rest, which
   * needs a worker, and returns the checkpoint that the session made. The metadata must be `{ by, reason }`, of at most
   * 200 and 1,700 characters.
   *
   * With `parentId`, the edit is the difference to that checkpoint, and is made only if transcript, plan and scratchpad
   * have not changed since. A repeated put returns the record of the first. Without `parentId`, the parent is the
   * latest checkpoint.
   *
   * @throws PerdureError of a session: `SESSION_BUSY` while a turn runs, `SESSION_CLOSED`, `SESSION_FULL`, `TOO_LARGE`,
   * `INVALID_ARGUMENT` naming a field that cannot be edited, or when transcript, plan or scratchpad has changed since
   * the parent; of any other thread `TOO_LARGE` over 20 MB, or when the thread is full with about 60,000 checkpoints
   * and steps
   */
  async put(threadId: string, state: JsonObject, options: PutOptions = {}): Promise<Checkpoint> {
    const put = checkPut(threadId, state, options);
    return (await this.#writes.add(threadId, { put })) as Checkpoint;
  }

  async get(threadId: string, options: GetOptions = {}): Promise<Checkpoint | null> {
    const id = checkGet(threadId, options);
    const session = await this.#session(threadId);
    if (session === null) return this.#threads.get(threadId, id);
    return id === null ? this.#sessions.latest(session) : this.#sessions.get(session, id);
  }

  async list(threadId: string, options: ListOptions = {}): Promise<Checkpoint[]> {
    const { before, limit } = checkList(threadId, options);
    if (limit <= 0) return [];
    const session = await this.#session(threadId);
    return session === null
      ? this.#threads.list(threadId, before, limit)
      : this.#sessions.list(session, before, limit);
  }

  /**
   * Deletes a thread and waits until it is gone. For a thread that is not a session, an empty workflow stays for a day and
   * refuses late writes. A session is deleted with the sessions of its sub-agents, and with what it has stored outside
   * its history, also when retention has already removed that. An interrupted deletion can be repeated.
   *
   * @param options - `end`: also end a session that runs or has running sub-agents, without waiting for calls in
   * flight.
   * @throws PerdureError `SESSION_BUSY` for such a session without `end`. `details.open`: its open sub-agents
   */
  async delete(threadId: string, options: { end?: boolean } = {}): Promise<void> {
    checkId('threadId', threadId);
    return this.#writes.alone(threadId, async () => {
      const session = await this.#session(threadId);
      if (session !== null) return this.#deletion.delete(session, options.end === true);
      return reading(threadId, async () => {
        // It may be a session whose runs retention has removed.
        await this.#deletion.deleteContent(threadId);
        await this.#threads.delete(threadId);
      });
    });
  }

  /** @throws PerdureError `CONFLICT` for a session */
  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    const copy = checkStep(threadId, key, value);
    return (await this.#writes.add(threadId, { step: { key, value: copy } })) as StoredStep;
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    checkId('threadId', threadId);
    checkId('key', key);
    return (await this.#session(threadId)) === null ? this.#threads.getStep(threadId, key) : null;
  }

  async listSteps(threadId: string): Promise<StoredStep[]> {
    checkId('threadId', threadId);
    return (await this.#session(threadId)) === null ? this.#threads.listSteps(threadId) : [];
  }

  async #session(threadId: string): Promise<Execution | null> {
    if (threadId.length > LIMIT.sessionId || this.#threads.knows(threadId)) return null;
    const found = await reading(threadId, () => findExecution(this.#client, threadId));
    return found?.type === WORKFLOW.session ? found : null;
  }

  async #write(threadId: string, batch: readonly Waiting<ThreadWrite, Written>[]): Promise<void> {
    const session = await this.#session(threadId);
    if (session === null) {
      const reserved = reservedProblem(threadId);
      if (reserved !== null)
        throw new PerdureError('INVALID_ARGUMENT', `threadId: ${reserved}`, {
          details: { field: 'threadId' },
        });
      return this.#threads.write(threadId, batch);
    }
    for (const { item, resolve, reject } of batch) {
      if ('put' in item)
        await putOnSession(this.#client, this.#sessions, session, item.put).then(resolve, reject);
      else reject(notAThread(threadId));
    }
  }
}

function notAThread(threadId: string): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `Thread ${threadId} is a session: its checkpoints come from its history. Use another thread id, or change the session with Session.edit.`,
  );
}
