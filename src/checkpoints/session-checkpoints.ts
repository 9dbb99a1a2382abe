/** The checkpoints of a session: its history, one per completed workflow task. */
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { LRUCache } from 'lru-cache';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { copyJson, type JsonObject } from '../contract/json.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { type Fold, type FoldedTask, foldHistory, type RunEnd } from '../history/index.ts';
import { phaseOf } from '../session/state.ts';
import { type CheckpointPlace, checkpointPlace } from '../temporal/checkpoint-id.ts';
import { type Execution, reading } from '../temporal/executions.ts';
import {
  type HistoryEvent,
  orNull,
  previousRun,
  readEvents,
  readPages,
  readStart,
} from '../temporal/index.ts';
import { KeptFold } from './kept-fold.ts';
import { findRuns } from './runs.ts';
import { Turns } from './turns.ts';

const { EventType } = proto.temporal.api.enums.v1;
/** Sessions whose folded state is kept in memory. */
const CACHE_SIZE = 4;

/**
 * Reads checkpoints from the histories of sessions. It needs no worker, and closed sessions work in the same way.
 *
 * Each call folds a history once, from its start to the last requested checkpoint, and keeps only the returned states.
 * For the most recently used sessions, a request for the latest checkpoint continues from the previous fold.
 */
export class SessionCheckpoints {
  readonly #client: Client;
  /** By run: the folds that a request for the latest checkpoint continues from. */
  readonly #kept = new LRUCache<string, KeptFold>({ max: CACHE_SIZE });
  readonly #turns = new Turns();

  constructor(client: Client) {
    this.#client = client;
  }

  /** The checkpoint with an id, or `null`. */
  async get(session: Execution, id: string): Promise<Checkpoint | null> {
    const place = checkpointPlace(id);
    if (place === null) return null;
    const { runId, eventId } = place;
    return reading(session.workflowId, async () => {
      const found = await orNull(this.#fold(session, runId, [eventId], 1));
      return found?.[0] ?? null;
    });
  }

  /** The latest checkpoint. `null` when no worker has started the session yet, or it was deleted meanwhile. */
  async latest(session: Execution): Promise<Checkpoint | null> {
    const { workflowId, runId } = session;
    const found = await reading(workflowId, () =>
      orNull(
        this.#turns.run(runId, async () => {
          const kept = this.#kept.get(runId) ?? new KeptFold(this.#client, workflowId, runId);
          // A fold that fails is not kept.
          this.#kept.delete(runId);
          await kept.catchUp();
          this.#kept.set(runId, kept);
          const { task, step, previous } = kept;
          if (task === null) return null;
          const parent = await this.#parent(session, runId, previous, task.state);
          return checkpointOf(workflowId, runId, task, step, parent);
        }),
      ),
    );
    // A run that has just started may have no completed task. Then the latest checkpoint is of the run before.
    return found ?? (await this.list(session, null, 1))[0] ?? null;
  }

  /** Checkpoints, newest first, over all runs that the server still has. */
  async list(session: Execution, before: string | null, limit: number): Promise<Checkpoint[]> {
    const end = before === null ? null : checkpointPlace(before);
    if (before !== null && end === null) return [];
    return reading(session.workflowId, async () => {
      const found: Checkpoint[] = [];
      let at: CheckpointPlace | null = end;
      for await (const runId of this.#runs(session, end?.runId)) {
        const wanted = limit - found.length;
        // The first page is on its way while the end of the run is read.
        const pages = begun(readPages(this.#client, { workflowId: session.workflowId, runId }));
        // One more task than requested: it is the parent of the oldest checkpoint.
        const read = await orNull(this.#tasksBefore(session, runId, at?.eventId ?? null, wanted + 1));
        if (read === null || (at !== null && !read.endIsTask)) {
          if (at !== null) return [];
          continue;
        }
        at = null;
        found.push(...((await orNull(this.#fold(session, runId, read.tasks, wanted, pages))) ?? []));
        if (found.length >= limit) break;
      }
      return found;
    });
  }

  /** The runs of a session, from one run (default: the present) to the oldest. They are found on demand. */
  async *#runs(session: Execution, from?: string): AsyncGenerator<string> {
    const first = from ?? session.runId;
    yield first;
    const runs = await this.runs(session, first);
    // If retention has removed the run, it has removed all runs before it.
    if (runs.includes(first)) yield* runs.slice(runs.indexOf(first) + 1);
  }

  /** The runs that the server still has, newest first. `known`: a run that visibility may not show yet. */
  async runs({ workflowId, runId }: Execution, known: string = runId): Promise<string[]> {
    return findRuns(this.#client, workflowId, WORKFLOW.session, [...new Set([runId, known])]);
  }

  /**
   * Visits the checkpoints of a run one at a time, oldest first, from an event on. So a long run is never in memory as
   * a whole.
   *
   * @returns how the run ended, or `null` while it runs.
   * @throws Temporal's `ServiceError` when the run is not there
   */
  async walk(
    session: Pick<Execution, 'workflowId'>,
    runId: string,
    from: number,
    visit: (checkpoint: Checkpoint) => void | Promise<void>,
  ): Promise<RunEnd | null> {
    const range = { wanted: (eventId: number) => eventId >= from, last: Number.POSITIVE_INFINITY };
    return (await this.#visit(session, runId, range, visit)).end;
  }

  /**
   * The last completed workflow tasks before an event (default: the end of the run), newest first, and whether that
   * event itself completed a task.
   */
  async #tasksBefore(
    { workflowId }: Pick<Execution, 'workflowId'>,
    runId: string,
    end: number | null,
    count: number,
  ): Promise<{ tasks: number[]; endIsTask: boolean }> {
    const tasks: number[] = [];
    let endIsTask = false;
    for await (const event of readEvents(this.#client, { workflowId, runId }, { backwards: true })) {
      if (event.eventType !== EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) continue;
      const eventId = Number(event.eventId);
      if (end !== null && eventId >= end) {
        endIsTask ||= eventId === end;
        continue;
      }
      if (tasks.push(eventId) === count) break;
    }
    return { tasks, endIsTask };
  }

  /**
   * The checkpoints of the first `count` tasks, newest first. The task after these is the parent of the oldest
   * checkpoint.
   */
  async #fold(
    session: Execution,
    runId: string,
    tasks: readonly number[],
    count: number,
    pages?: AsyncIterable<readonly HistoryEvent[]>,
  ): Promise<Checkpoint[]> {
    const [newest] = tasks;
    if (newest === undefined) return [];
    const wanted = new Set(tasks.slice(0, count));
    const found: Checkpoint[] = [];
    const range = { wanted: (eventId: number) => wanted.has(eventId), last: newest };
    await this.#visit(session, runId, range, (checkpoint) => void found.unshift(checkpoint), pages);
    return found;
  }

  async #visit(
    session: Pick<Execution, 'workflowId'>,
    runId: string,
    { wanted, last }: { wanted: (eventId: number) => boolean; last: number },
    visit: (checkpoint: Checkpoint) => void | Promise<void>,
    pages: AsyncIterable<readonly HistoryEvent[]> = readPages(this.#client, {
      workflowId: session.workflowId,
      runId,
    }),
  ): Promise<Fold> {
    let step = 0;
    let previous: number | null = null;
    const show = async (task: FoldedTask, parent: number | null): Promise<void> => {
      const place = await this.#parent(session, runId, parent, task.state);
      await visit(checkpointOf(session.workflowId, runId, task, step, place));
    };
    const onTask = (task: FoldedTask): void | Promise<void> => {
      step += 1;
      const parent = previous;
      previous = task.eventId;
      if (wanted(task.eventId)) return show(task, parent);
    };
    return foldHistory(pages, this.#client.options, { runId, onTask, last });
  }

  /**
   * The parent of a checkpoint: the task before it. For the first task of a run, it is the last task of the previous
   * run, or the checkpoint that a rewind went back to.
   */
  async #parent(
    session: Pick<Execution, 'workflowId'>,
    runId: string,
    previous: number | null,
    { origin }: SessionState,
  ): Promise<CheckpointPlace | null> {
    if (previous !== null) return { runId, eventId: previous };
    if (origin?.kind === 'rewind' && origin.sessionId === session.workflowId) return origin;
    const start = await readStart(this.#client, { workflowId: session.workflowId, runId });
    const continued = previousRun(start);
    if (continued === null) return null;
    const read = await orNull(this.#tasksBefore(session, continued, null, 1));
    const [eventId] = read?.tasks ?? [];
    return eventId === undefined ? null : { runId: continued, eventId };
  }
}

function checkpointOf(
  sessionId: string,
  runId: string,
  { eventId, at, state }: FoldedTask,
  step: number,
  parent: CheckpointPlace | null,
): Checkpoint {
  return {
    id: idOf({ runId, eventId }),
    thread_id: sessionId,
    created_at: at,
    state: copyJson(state) as unknown as JsonObject,
    parent_id: parent === null ? null : idOf(parent),
    metadata: { source: 'session', turn: state.turn, phase: phaseOf(state), step, at },
  };
}

function idOf({ runId, eventId }: CheckpointPlace): string {
  return `${runId}:${eventId}`;
}

/** Requests the first page at once, not when somebody reads it. */
function begun<T>(pages: AsyncGenerator<T>): AsyncIterable<T> {
  const first = pages.next();
  first.catch(() => undefined);
  return (async function* () {
    const beginning = await first;
    if (beginning.done === true) return;
    yield beginning.value;
    yield* pages;
  })();
}
