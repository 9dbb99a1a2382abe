import { Turns } from '../checkpoints/turns.ts';
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
import { checkpointPlace } from '../temporal/checkpoint-id.ts';
import { checkGet, checkList, checkPut, checkStep } from '../thread/checks.ts';
import type { ArchivePosition, CheckpointArchive } from './checkpoint-archive.ts';

/** The saver in front of an archive: `TemporalSaver`, whose histories retention removes. */
export interface PrimarySaver extends Omit<CheckpointSaver, 'delete'> {
  delete(threadId: string, options?: { end?: boolean }): Promise<void>;
}

/**
 * A saver with an archive behind it: `get` and `list` keep answering for sessions whose histories the namespace's
 * retention has removed. It reads from the primary first; the archive adds what the primary no longer has, in the order
 * of the histories and without duplicates. A session's checkpoint has the messages and calls of its run, as in the
 * history. Writes go to the primary. A write to a session that only the archive has is refused.
 *
 * It throws the errors of both. Nothing is left out silently: when either cannot be read, the call rejects.
 */
export class ArchivedSaver implements CheckpointSaver {
  readonly #primary: PrimarySaver;
  readonly #archive: CheckpointArchive;
  readonly #turns = new Turns();

  constructor(primary: PrimarySaver, archive: CheckpointArchive) {
    this.#primary = primary;
    this.#archive = archive;
  }

  /** @throws PerdureError `CONFLICT` for a session that only the archive has: a thread with its id would hide it */
  async put(threadId: string, state: JsonObject, options: PutOptions = {}): Promise<Checkpoint> {
    const { id, state: copy, parentId, metadata } = checkPut(threadId, state, options);
    await this.#refuseArchived(threadId);
    return this.#primary.put(threadId, copy, { parentId, metadata, ...(id === null ? {} : { id }) });
  }

  async get(threadId: string, options: GetOptions = {}): Promise<Checkpoint | null> {
    const id = checkGet(threadId, options);
    const present = await this.#primary.get(threadId, options);
    if (present !== null) return present;
    // The archive's latest checkpoint is older than anything in the primary, so ask it only when the primary has none.
    const archived = id ?? (await this.#archive.list(threadId, null, 1))[0]?.id;
    // A list marks a damaged record. To read one fails.
    return archived === undefined ? null : this.#archive.get(threadId, archived);
  }

  async list(threadId: string, options: ListOptions = {}): Promise<Checkpoint[]> {
    const { before, limit } = checkList(threadId, options);
    if (limit <= 0) return [];
    const present = await this.#primary.list(threadId, options);
    if (present.length >= limit) return present;
    let position: ArchivePosition | null = null;
    if (before !== null) {
      if (present.length === 0 && (await this.get(threadId, { checkpointId: before })) === null) return [];
      position = await this.#archive.positionOf(threadId, before);
    }
    const archived = await this.#archive.list(threadId, position, limit);
    return this.#merged(threadId, present, archived, limit);
  }

  /**
   * Deletes the thread from both. A session is deleted with its sub-agents.
   *
   * @throws what the primary throws; then the archive is unchanged
   */
  async delete(threadId: string, options: { end?: boolean } = {}): Promise<void> {
    await this.#primary.delete(threadId, options);
    await this.#archive.delete(threadId);
  }

  /** @throws PerdureError `CONFLICT` for a session, also one that only the archive has */
  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    const copy = checkStep(threadId, key, value);
    await this.#refuseArchived(threadId);
    return this.#primary.putStep(threadId, key, copy);
  }

  getStep(threadId: string, key: string): Promise<StoredStep | null> {
    return this.#primary.getStep(threadId, key);
  }

  listSteps(threadId: string): Promise<StoredStep[]> {
    return this.#primary.listSteps(threadId);
  }

  /** Checks run one after the other, so that writes to a thread keep the order of their calls. */
  #refuseArchived(threadId: string): Promise<void> {
    return this.#turns.run(threadId, async () => {
      if ((await this.#archive.runs(threadId)).length === 0) return;
      const present = await this.#primary.get(threadId);
      if (present !== null && checkpointPlace(present.id) !== null) return;
      throw new PerdureError(
        'CONFLICT',
        `Thread ${threadId} is a session that only the archive has, so it cannot be written. Use another thread id, or rewind the session with this saver.`,
      );
    });
  }

  /** Merges both, newest first. A run that the archive does not have yet is newer than all its runs. */
  async #merged(
    threadId: string,
    present: readonly Checkpoint[],
    archived: readonly Checkpoint[],
    limit: number,
  ): Promise<Checkpoint[]> {
    const starts = new Map<string, number>();
    const startOf = async ({ id }: Checkpoint): Promise<number> => {
      const runId = checkpointPlace(id)?.runId ?? '';
      let start = starts.get(runId);
      if (start === undefined) {
        start = (await this.#archive.positionOf(threadId, id))?.startedAt ?? Number.POSITIVE_INFINITY;
        starts.set(runId, start);
      }
      return start;
    };
    const merged: Checkpoint[] = [];
    const ids = new Set(present.map(({ id }) => id));
    const [here, there] = [[...present], archived.filter(({ id }) => !ids.has(id))];
    while (merged.length < limit) {
      const [mine, theirs] = [here[0], there[0]];
      if (mine === undefined && theirs === undefined) break;
      const first =
        mine !== undefined && (theirs === undefined || (await isNewer(mine, theirs, startOf))) ? here : there;
      const next = first.shift();
      if (next !== undefined) merged.push(next);
    }
    return merged;
  }
}

async function isNewer(
  a: Checkpoint,
  b: Checkpoint,
  startOf: (checkpoint: Checkpoint) => Promise<number>,
): Promise<boolean> {
  const [mine, theirs] = [await startOf(a), await startOf(b)];
  if (mine !== theirs) return mine > theirs;
  return (checkpointPlace(a.id)?.eventId ?? 0) > (checkpointPlace(b.id)?.eventId ?? 0);
}
