/** The place of a session's checkpoint, which its id names. */

/** A run, and the event that completed the workflow task. */
export interface Place {
  runId: string;
  eventId: number;
}

/** The place that an id names, or `null` when it is not the id of a session's checkpoint. */
export function placeOf(id: string): Place | null {
  const match = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9]\d{0,9})$/.exec(id);
  return match === null ? null : { runId: match[1] ?? '', eventId: Number(match[2]) };
}
