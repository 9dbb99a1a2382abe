/** A session's checkpoint has an id of its run and of the event that completed a workflow task: `<runId>:<eventId>`. */
import { PerdureError } from '../contract/errors.ts';

/** Where a checkpoint is in the history. */
export interface CheckpointPlace {
  runId: string;
  eventId: number;
}

/** The place that an id names, or `null` when it is no id of a session's checkpoint. */
export function checkpointPlace(id: string): CheckpointPlace | null {
  const match = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9]\d{0,9})$/.exec(id);
  return match === null ? null : { runId: match[1] ?? '', eventId: Number(match[2]) };
}

/** {@link checkpointPlace} of an id that somebody wrote. @throws PerdureError `INVALID_ARGUMENT` */
export function parseCheckpointId(id: string): CheckpointPlace {
  const place = checkpointPlace(id);
  if (place !== null) return place;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `checkpoint is ${JSON.stringify(id.slice(0, 80))}: write <runId>:<eventId>, as the saver lists them`,
  );
}
