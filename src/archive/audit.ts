import type { Client } from '@temporalio/client';
import { diff } from '../checkpoints/diff.ts';
import { findRuns } from '../checkpoints/runs.ts';
import { SessionCheckpoints } from '../checkpoints/session-checkpoints.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import { WORKFLOW } from '../contract/names.ts';
import { checkpointPlace } from '../temporal/checkpoint-id.ts';
import { findExecution, reading } from '../temporal/executions.ts';
import { orNull } from '../temporal/index.ts';
import type { CheckpointArchive } from './checkpoint-archive.ts';

/** The first difference between an archive and the history. */
export interface AuditDifference {
  checkpointId: string;
  /** A JSON Pointer (RFC 6901) into the record. Empty when one of the records is missing or unreadable. */
  path: string;
  /** The two values. `null`: no value. */
  archived: JsonValue;
  history: JsonValue;
  message: string;
}

/** The result of an audit. */
export interface Audit {
  sessionId: string;
  /** Runs whose history the server still has. */
  runs: number;
  /** Checkpoints that are equal as canonical JSON. */
  equal: number;
  /** Checkpoints of the history that the exporter has not reached yet. */
  pending: number;
  difference: AuditDifference | null;
}

/**
 * Folds a session's histories again and compares each checkpoint with the archive's, oldest run first, up to the first
 * difference. It does not check what the server no longer has. It needs no worker.
 *
 * @throws PerdureError `SESSION_NOT_FOUND` when the server has no history of the session; `CHECKPOINT_CORRUPTION`
 * when a history does not fold; `SERVER_UNAVAILABLE`
 */
export async function auditSession(
  client: Client,
  archive: CheckpointArchive,
  sessionId: string,
): Promise<Audit> {
  const audit: Audit = { sessionId, runs: 0, equal: 0, pending: 0, difference: null };
  const present = await reading(sessionId, () => findExecution(client, sessionId));
  const known = present?.type === WORKFLOW.session ? [present.runId] : [];
  const runs = await reading(sessionId, () => findRuns(client, sessionId, WORKFLOW.session, known));
  for (const runId of runs.reverse()) {
    if (audit.difference !== null) break;
    await reading(sessionId, () => auditRun(client, archive, runId, audit));
  }
  if (audit.runs > 0) return audit;
  throw new PerdureError(
    'SESSION_NOT_FOUND',
    `The server has no history of session ${sessionId} to compare with the archive`,
  );
}

async function auditRun(
  client: Client,
  archive: CheckpointArchive,
  runId: string,
  audit: Audit,
): Promise<void> {
  const { sessionId } = audit;
  const archived = archive.walk(sessionId, runId)[Symbol.asyncIterator]();
  const cursor = (await archive.run(sessionId, runId))?.cursor ?? 0;
  const differ = (difference: AuditDifference): void => {
    audit.difference ??= difference;
  };
  const next = async (): Promise<Checkpoint | null> => {
    try {
      const result = await archived.next();
      // Checkpoints archived after this audit began may be missing from the history that it has read.
      return result.done === true || eventOf(result.value) > cursor ? null : result.value;
    } catch (error) {
      if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
      const checkpointId = String(error.details['checkpointId']);
      differ({ checkpointId, path: '', archived: null, history: null, message: error.message });
      return null;
    }
  };
  const read = await orNull(
    new SessionCheckpoints(client)
      .walk({ workflowId: sessionId }, runId, 1, async (checkpoint) => {
        if (audit.difference !== null) return;
        if (eventOf(checkpoint) > cursor) {
          audit.pending += 1;
          return;
        }
        const record = await next();
        if (audit.difference !== null) return;
        const difference = compare(record, checkpoint);
        if (difference === null) audit.equal += 1;
        else differ(difference);
      })
      .then((end) => ({ end })),
  );
  if (read === null) return;
  audit.runs += 1;
  if (audit.difference !== null) return;
  const rest = await next();
  if (rest !== null) differ(onlyArchived(rest));
}

function compare(archived: Checkpoint | null, folded: Checkpoint): AuditDifference | null {
  const { id: checkpointId } = folded;
  // Both are in the order of their events: the earlier one is missing on the other side.
  if (archived !== null && eventOf(archived) < eventOf(folded)) return onlyArchived(archived);
  if (archived?.id !== checkpointId) {
    const message = `${checkpointId} is in the history, but not in the archive`;
    return { checkpointId, path: '', archived: null, history: json(folded), message };
  }
  // When retention has removed the run before, the parent of a run's first checkpoint cannot be read.
  const first = folded.parent_id === null && folded.metadata['step'] === 1;
  const history = first ? { ...folded, parent_id: archived.parent_id } : folded;
  if (canonicalJson(json(archived)) === canonicalJson(json(history))) return null;
  const [change] = diff({ state: json(archived) }, { state: json(history) });
  const path = change?.path ?? '';
  return {
    checkpointId,
    path,
    archived: change !== undefined && 'before' in change ? change.before : null,
    history: change !== undefined && 'value' in change ? change.value : null,
    message: `${checkpointId} differs at ${path}`,
  };
}

function onlyArchived(archived: Checkpoint): AuditDifference {
  const { id: checkpointId } = archived;
  const message = `${checkpointId} is in the archive, but not in the history`;
  return { checkpointId, path: '', archived: json(archived), history: null, message };
}

function eventOf({ id }: Checkpoint): number {
  return checkpointPlace(id)?.eventId ?? 0;
}

function json(checkpoint: Checkpoint): JsonObject {
  return checkpoint as unknown as JsonObject;
}
