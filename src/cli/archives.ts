/** What the verbs of archives share. */
import { existsSync } from 'node:fs';
import type { ArchiveStatus } from '../contract/archive.ts';
import { PerdureError } from '../contract/errors.ts';

/** An archive that exists. @throws PerdureError `INVALID_ARGUMENT`: a reading must not make the file */
export function existing(file: string): string {
  if (existsSync(file)) return file;
  throw new PerdureError('INVALID_ARGUMENT', `file: there is no archive ${file}`);
}

/** What stands in an exporter's way, a line each. */
export function problems({ failure, unreadable }: ArchiveStatus): string[] {
  return [
    ...(failure === null
      ? []
      : [
          `nothing can be stored since ${failure.since}, after ${failure.attempts} attempts: ${failure.message}`,
        ]),
    ...unreadable.map(
      ({ sessionId, runId, message }) => `left for later: run ${runId} of ${sessionId}: ${message}`,
    ),
  ];
}
