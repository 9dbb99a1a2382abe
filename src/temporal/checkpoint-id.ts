/** Ids of sessions' checkpoints: `<runId>:<eventId>`, where the event completed a workflow task. */
import { PerdureError } from '../contract/errors.ts';

export interface CheckpointPlace {
  runId: string;
  eventId: number;
}

/** The place that an id names, or `null` for other ids. */
export function checkpointPlace(id: string): CheckpointPlace | null {
  const match = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9]\d{0,9})$/.exec(id);
  return match === null ? null : { runId: match[1] ?? '', eventId: Number(match[2]) };
}

/** {@link checkpointPlace} of a caller's id. @throws PerdureError `INVALID_ARGUMENT` */
export function parseCheckpointId(id: string): CheckpointPlace {
  const place = checkpointPlace(id);
  if (place !== null) return place;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `checkpoint ${JSON.stringify(id.slice(0, 80))} is not an id: write <runId>:<eventId>, as in the list of checkpoints`,
  );
}
