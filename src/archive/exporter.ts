/** One round of the exporter: looks through the sessions, and stores what is new. */
import { Context } from '@temporalio/activity';
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import {
  type ArchiveActivities,
  type ArchiveRound,
  type ArchiveRoundInput,
  UNREADABLE_SHOWN,
  type UnreadableRun,
} from '../contract/archive.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { isPerdureError } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import { orNull, type RunEnd } from '../history/index.ts';
import { runBefore } from '../saver/runs.ts';
import { SessionCheckpoints } from '../saver/session-checkpoints.ts';
import { findExecution, reading } from '../saver/wire.ts';
import type { CheckpointArchive } from './checkpoint-archive.ts';
import { openArchive } from './open.ts';
import { placeOf } from './place.ts';

/** How often the sessions are looked through, in milliseconds, and how much of the time that may take. */
const LOOK_MS = 2_000;
const SHARE = 0.5;
/** A round in which nothing is new ends after this time, so that the exporter's history stays short. */
const QUIET_MS = 10_000;
/** Checkpoints of one transaction. */
const PIECE = 50;
/** Visibility lags: what has closed so long before the last look is looked at again. */
const MARGIN_MS = 600_000;
/** Every so often all closed runs are looked at, whatever visibility said before. */
const THOROUGH_MS = 3_600_000;
/** A run that could not be read and has not changed is left alone for this time. */
const UNREADABLE_MS = 60_000;

/** What the exporter of one worker remembers between rounds; losing it costs time only. */
interface Memory {
  thoroughAt: number;
  lookedAt: number;
  unreadable: Map<string, UnreadableRun & { events: number; at: number }>;
}

/** The activities of the exporter's worker. @param options.path - the archive's file, or the URL of its PostgreSQL database */
export function createArchiveActivities({ path }: { path: string }): ArchiveActivities {
  const memory: Memory = { thoroughAt: 0, lookedAt: 0, unreadable: new Map() };
  return {
    archiveRound: async (input) => {
      // Opened anew each time: a file that was replaced, or is of a newer version by now, is found out.
      const archive = openArchive(path);
      try {
        return await new Round(archive, memory).run(input);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw ApplicationFailure.create({ message, type: codeOf(error), nonRetryable: true });
      } finally {
        await archive.close();
      }
    },
  };
}

class Round {
  readonly #archive: CheckpointArchive;
  readonly #memory: Memory;
  readonly #context: Context = Context.current();
  readonly #client: Client = this.#context.client;
  readonly #sessions: SessionCheckpoints = new SessionCheckpoints(this.#client);
  #stored = 0;

  constructor(archive: CheckpointArchive, memory: Memory) {
    this.#archive = archive;
    this.#memory = memory;
  }

  /** Looks until something was stored, for a while. A worker that shuts down ends the round early. */
  async run({ archiveId: expected }: ArchiveRoundInput): Promise<ArchiveRound> {
    const { namespace } = this.#client.options;
    const { namespaceInfo } = await this.#client.workflowService.describeNamespace({ namespace });
    const archiveId = await this.#archive.claim(namespaceInfo?.id ?? '', namespace, expected);
    const signs = setInterval(() => this.#context.heartbeat(), 2_000);
    try {
      const quietAt = Date.now() + QUIET_MS;
      let upTo: string | null = null;
      while (!this.#ending) {
        const at = Date.now();
        const before = this.#memory.lookedAt;
        await this.#look(at);
        if (this.#ending) break;
        // Visibility lags: what one look has not been shown yet, the next has.
        if (before > 0) {
          upTo = new Date(before).toISOString();
          await this.#archive.setUpTo(upTo);
        }
        if (this.#stored > 0 || Date.now() > quietAt) break;
        await this.#rest(Math.max(LOOK_MS, (Date.now() - at) / SHARE));
      }
      const unreadable = [...this.#memory.unreadable.values()]
        .slice(0, UNREADABLE_SHOWN)
        .map(({ sessionId, runId, message }) => ({ sessionId, runId, message }));
      return { archiveId, stored: this.#stored, upTo, unreadable };
    } finally {
      clearInterval(signs);
    }
  }

  get #ending(): boolean {
    return this.#context.cancellationSignal.aborted;
  }

  async #rest(ms: number): Promise<void> {
    await this.#context.sleep(ms).catch((error: unknown) => {
      if (!this.#ending) throw error;
    });
  }

  async #look(at: number): Promise<void> {
    const memory = this.#memory;
    const thorough = at - memory.thoroughAt > THOROUGH_MS;
    const since = new Date(memory.lookedAt - MARGIN_MS).toISOString();
    const recent = thorough ? '' : ` AND (ExecutionStatus = 'Running' OR CloseTime > '${since}')`;
    const query = `WorkflowType = '${WORKFLOW.session}'${recent}`;
    const unreadable = new Set<string>();
    for await (const info of this.#client.workflow.list({ query })) {
      if (this.#ending) return;
      await this.#visit(info);
      if (memory.unreadable.has(info.runId)) unreadable.add(info.runId);
    }
    // What the server has no more cannot be tried again.
    for (const runId of memory.unreadable.keys())
      if (thorough && !unreadable.has(runId)) memory.unreadable.delete(runId);
    memory.lookedAt = at;
    if (thorough) memory.thoroughAt = at;
  }

  async #visit({ workflowId: sessionId, runId }: WorkflowExecutionInfo): Promise<void> {
    const known = await this.#archive.run(sessionId, runId);
    if (known?.complete) return;
    const { namespace } = this.#client.options;
    const execution = { workflowId: sessionId, runId };
    const found = await orNull(
      this.#client.workflowService.describeWorkflowExecution({ namespace, execution }),
    );
    const events = Number(found?.workflowExecutionInfo?.historyLength ?? 0);
    const { unreadable } = this.#memory;
    if (events === 0) unreadable.delete(runId);
    if (events === 0 || (known?.events === events && !unreadable.has(runId))) return;
    const before = unreadable.get(runId);
    if (before?.events === events && Date.now() - before.at < UNREADABLE_MS) return;
    const problem = await this.#export(sessionId, runId, events);
    if (problem === null) unreadable.delete(runId);
    else unreadable.set(runId, { sessionId, runId, message: problem.slice(0, 500), events, at: Date.now() });
  }

  /**
   * Where a run has its place in the order of its session: when it started, or just after the run that it has followed
   * on, for the server's clock may have stepped back between the two. `null` when neither server nor archive has it.
   */
  async #placeOf(sessionId: string, runId: string): Promise<number | null> {
    const known = await this.#archive.run(sessionId, runId);
    if (known !== null) return known.startedAt;
    const found = await findExecution(this.#client, sessionId, runId);
    if (found === null) return null;
    const before = await runBefore(this.#client, sessionId, runId);
    const place = before ? await this.#placeOf(sessionId, before) : null;
    return place === null ? found.startedAt : Math.max(found.startedAt, place + 1);
  }

  /** Stores a run from its cursor on. @returns why its history cannot be read, or `null` */
  async #export(sessionId: string, runId: string, events: number): Promise<string | null> {
    const epoch = await this.#archive.epoch(sessionId);
    const startedAt = await this.#placeOf(sessionId, runId);
    // It was deleted meanwhile.
    if (startedAt === null) return null;
    let after = (await this.#archive.run(sessionId, runId))?.cursor ?? 0;
    let previous: Checkpoint | null = null;
    let piece: Checkpoint[] = [];
    let moved = false;
    const store = async (seen: number, complete: boolean): Promise<void> => {
      const part = { sessionId, runId, startedAt, epoch, after, checkpoints: piece, previous };
      const run = await this.#archive.append({ ...part, events: seen, complete });
      // Another exporter has gone on, or the thread was deleted: the next look sees what is left.
      if (run === null) moved = true;
      else {
        after = run.cursor;
        this.#stored += piece.length;
      }
      previous = piece.at(-1) ?? previous;
      piece = [];
    };
    /** The archive's failure in the middle of the reading, which is not the history's. */
    let failed: Error | undefined;
    const visit = async (checkpoint: Checkpoint): Promise<void> => {
      if (moved) return;
      if ((placeOf(checkpoint.id)?.eventId ?? 0) <= after) {
        previous = checkpoint;
        return;
      }
      piece.push(checkpoint);
      if (piece.length < PIECE) return;
      await store(0, false).catch((error: unknown) => {
        failed = error instanceof Error ? error : new Error(String(error));
        throw failed;
      });
    };
    let end: RunEnd | null;
    try {
      // A run that was deleted meanwhile is not there.
      end = await reading(sessionId, () =>
        orNull(this.#sessions.walk({ workflowId: sessionId }, runId, after, visit)),
      );
    } catch (error) {
      if (failed !== undefined) throw failed;
      if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
      // What came before the unreadable part is stored.
      if (!moved) await store(events, false);
      return error.message;
    }
    if (!moved) await store(events, end !== null);
    return null;
  }
}

function codeOf(error: unknown): string {
  if (isPerdureError(error)) return error.code;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'UNEXPECTED';
}
