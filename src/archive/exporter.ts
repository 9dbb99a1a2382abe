/** One round of the exporter: scans the sessions and stores what is new. */
import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { runBefore } from '../checkpoints/runs.ts';
import { SessionCheckpoints } from '../checkpoints/session-checkpoints.ts';
import {
  type ArchiveActivities,
  type ArchiveRound,
  type ArchiveRoundInput,
  UNREADABLE_SHOWN,
  type UnreadableRun,
} from '../contract/archive.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { isPerdureError, messageOf } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { RunEnd } from '../history/index.ts';
import { checkpointPlace } from '../temporal/checkpoint-id.ts';
import { findExecution, reading } from '../temporal/executions.ts';
import { orNull } from '../temporal/index.ts';
import type { CheckpointArchive } from './checkpoint-archive.ts';
import { openArchive } from './open.ts';
import type { ArchiveOptions } from './row-codec.ts';

/** How often the sessions are scanned, in milliseconds, and how much of the time a scan may take. */
const LOOK_MS = 2_000;
const SHARE = 0.5;
/** A round without news ends after this time, so that the exporter's history stays short. */
const QUIET_MS = 10_000;
/**
 * A longer scan continues in the next round, well before the activity times out. The status is updated between rounds.
 */
const ROUND_MS = 120_000;
/** Checkpoints in one transaction. */
const PIECE = 50;
/** Visibility lags, so runs that closed this long before the last scan are read again. */
const MARGIN_MS = 600_000;
/** How often all closed runs are scanned, in case visibility has missed one. */
const THOROUGH_MS = 3_600_000;
/** How long an unreadable run that has not changed is skipped. */
const UNREADABLE_MS = 60_000;

/** A scan in progress. */
interface Look {
  at: number;
  thorough: boolean;
  seen: Set<string>;
}

/** A run to read, and how it was found. */
interface Due {
  sessionId: string;
  runId: string;
  kind: 'closed' | 'unreadable' | 'open';
}

/** What one worker's exporter remembers between rounds. Losing it only costs time. */
interface Memory {
  thoroughAt: number;
  /** When the last complete scan began. */
  lookedAt: number;
  /** When the next scan may begin, as `performance.now()`. */
  nextAt: number;
  look: Look | null;
  unreadable: Map<string, UnreadableRun & { events: number; at: number }>;
}

/**
 * The activities of the exporter's worker.
 *
 * @param options.path - the archive's file, or the URL of its PostgreSQL database
 * @param options.dataConverter - the one of the sessions
 * @param options.roundMs - milliseconds after which a scan leaves the remaining runs to the next round
 * @throws PerdureError `INVALID_ARGUMENT` when the path is neither
 */
export function createArchiveActivities({
  path,
  dataConverter,
  roundMs = ROUND_MS,
}: ArchiveOptions & {
  path: string;
  roundMs?: number;
}): ArchiveActivities {
  openArchive(path); // Refuses a wrong path before anything starts.
  const memory: Memory = { thoroughAt: 0, lookedAt: 0, nextAt: 0, look: null, unreadable: new Map() };
  return {
    archiveRound: async (input) => {
      // Open the archive each time, to notice a file that was replaced or has a newer version.
      const archive = openArchive(path, { dataConverter });
      try {
        return await new Round(archive, memory).run(input, roundMs);
      } catch (error) {
        const message = messageOf(error);
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

  /** Scans until something was stored or the round's time is up. A worker shutdown ends the round early. */
  async run({ archiveId: expected }: ArchiveRoundInput, roundMs: number): Promise<ArchiveRound> {
    // Heartbeats first: if the database does not answer, the round fails with that error, not with a missed heartbeat.
    const signs = setInterval(() => this.#context.heartbeat(), 2_000);
    try {
      const { namespace } = this.#client.options;
      const { namespaceInfo } = await this.#client.workflowService.describeNamespace({ namespace });
      const archiveId = await this.#archive.claim(namespaceInfo?.id ?? '', namespace, expected);
      const quietAt = Date.now() + QUIET_MS;
      let upTo: string | null = null;
      for (;;) {
        // Pause even after a round that stored something: sessions may write all the time.
        await this.#rest(this.#memory.nextAt - performance.now());
        if (this.#ending) break;
        const at = performance.now();
        const before = this.#memory.lookedAt;
        if (!(await this.#look(Date.now() + roundMs))) break;
        this.#memory.nextAt = at + Math.max(LOOK_MS, (performance.now() - at) / SHARE);
        // Visibility lags, so a scan proves that the archive is complete only up to the start of the scan before it.
        if (before > 0) {
          upTo = new Date(before).toISOString();
          await this.#archive.setUpTo(upTo);
        }
        if (this.#stored > 0 || Date.now() > quietAt) break;
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
    if (ms <= 0) return;
    await this.#context.sleep(ms).catch((error: unknown) => {
      if (!this.#ending) throw error;
    });
  }

  /** Continues the scan in progress, or begins one. @returns whether it is complete */
  async #look(endsAt: number): Promise<boolean> {
    const memory = this.#memory;
    const now = Date.now();
    memory.look ??= { at: now, thorough: now - memory.thoroughAt > THOROUGH_MS, seen: new Set() };
    const { at, thorough, seen } = memory.look;
    for await (const { sessionId, runId, kind } of this.#due(thorough)) {
      if (this.#ending) return false;
      // A run that has closed since it was listed is listed again.
      const key = `${kind} ${runId}`;
      if (seen.has(key)) continue;
      await this.#visit(sessionId, runId);
      seen.add(key);
      if (Date.now() >= endsAt) return false;
    }
    memory.look = null;
    memory.lookedAt = at;
    if (thorough) memory.thoroughAt = at;
    return !this.#ending;
  }

  /** The runs to read. Closed runs come first, because retention removes them. */
  async *#due(thorough: boolean): AsyncGenerator<Due> {
    const { lookedAt, unreadable } = this.#memory;
    const since = new Date(lookedAt - MARGIN_MS).toISOString();
    yield* this.#listed('closed', thorough ? "ExecutionStatus != 'Running'" : `CloseTime > '${since}'`);
    // These may have closed long ago.
    for (const { sessionId, runId } of unreadable.values()) yield { sessionId, runId, kind: 'unreadable' };
    yield* this.#listed('open', "ExecutionStatus = 'Running'");
  }

  async *#listed(kind: Due['kind'], state: string): AsyncGenerator<Due> {
    const query = `WorkflowType = '${WORKFLOW.session}' AND ${state}`;
    for await (const { workflowId, runId } of this.#client.workflow.list({ query }))
      yield { sessionId: workflowId, runId, kind };
  }

  async #visit(sessionId: string, runId: string): Promise<void> {
    const { unreadable } = this.#memory;
    const known = await this.#archive.run(sessionId, runId);
    if (known?.complete) {
      // Another exporter may have completed the run.
      unreadable.delete(runId);
      return;
    }
    const { namespace } = this.#client.options;
    const execution = { workflowId: sessionId, runId };
    const found = await orNull(
      this.#client.workflowService.describeWorkflowExecution({ namespace, execution }),
    );
    const info = found?.workflowExecutionInfo;
    const events = Number(info?.historyLength ?? 0);
    if (events === 0) unreadable.delete(runId);
    // A closed run that is not marked as complete was not read to its end.
    const unchanged = known?.events === events && !info?.closeTime && !unreadable.has(runId);
    if (events === 0 || unchanged) return;
    const before = unreadable.get(runId);
    if (before?.events === events && Date.now() - before.at < UNREADABLE_MS) return;
    const problem = await this.#export(sessionId, runId, events);
    if (problem === null) unreadable.delete(runId);
    else unreadable.set(runId, { sessionId, runId, message: problem.slice(0, 500), events, at: Date.now() });
  }

  /**
   * The position of a run within its session: its start, or just after the run before, because the server's clock may
   * have stepped back between them. `null` when neither server nor archive has the run.
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

  /** Stores a run from its cursor on. @returns why the history cannot be read, or `null` */
  async #export(sessionId: string, runId: string, events: number): Promise<string | null> {
    const epoch = await this.#archive.epoch(sessionId);
    const startedAt = await this.#placeOf(sessionId, runId);
    // The run was deleted meanwhile.
    if (startedAt === null) return null;
    let after = (await this.#archive.run(sessionId, runId))?.cursor ?? 0;
    let previous: Checkpoint | null = null;
    let piece: Checkpoint[] = [];
    let moved = false;
    const store = async (seen: number, complete: boolean): Promise<void> => {
      const part = { sessionId, runId, startedAt, epoch, after, checkpoints: piece, previous };
      const run = await this.#archive.append({ ...part, events: seen, complete });
      // Another exporter has stored this, or the thread was deleted: the next scan reads the rest.
      if (run === null) moved = true;
      else {
        after = run.cursor;
        this.#stored += piece.length;
      }
      previous = piece.at(-1) ?? previous;
      piece = [];
    };
    /** A failure of the archive while the history is being read. */
    let failed: Error | undefined;
    const visit = async (checkpoint: Checkpoint): Promise<void> => {
      if (moved) return;
      if ((checkpointPlace(checkpoint.id)?.eventId ?? 0) <= after) {
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
      // `null` when the run was deleted meanwhile.
      end = await reading(sessionId, () =>
        orNull(this.#sessions.walk({ workflowId: sessionId }, runId, after, visit)),
      );
    } catch (error) {
      if (failed !== undefined) throw failed;
      if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
      // Everything before the unreadable part is stored, but the run does not count as complete.
      if (!moved && piece.length > 0) await store(0, false);
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
