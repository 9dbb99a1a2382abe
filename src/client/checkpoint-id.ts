import { PerdureError } from '../contract/errors.ts';

/** A checkpoint's id is the run and the completed workflow task that it is: `<runId>:<eventId>`. */
export function parseCheckpointId(id: string): { runId: string; eventId: number } {
  const match = /^([0-9a-f-]{36}):([1-9]\d*)$/.exec(id);
  if (match === null) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `checkpoint is ${JSON.stringify(id.slice(0, 80))}: write <runId>:<eventId>, as the saver lists them`,
    );
  }
  return { runId: match[1] ?? '', eventId: Number(match[2]) };
}
