/** What the verbs of archives share. */
import { existsSync } from 'node:fs';
import type { CheckpointArchive } from '../archive/index.ts';
import type { ArchiveStatus } from '../contract/archive.ts';
import { PerdureError } from '../contract/errors.ts';
import { isPostgresUrl } from '../postgres/index.ts';
import type { Cli } from './cli.ts';

/** The help of an archive argument. */
export const ARCHIVE_HELP = 'a file or a PostgreSQL URL (default: PERDURE_ARCHIVE)';

/** The named archive, or the one in `PERDURE_ARCHIVE`. @throws PerdureError `INVALID_ARGUMENT` */
export function archivePlace(named: string | undefined): string {
  const place = named ?? process.env['PERDURE_ARCHIVE'];
  if (place) return place;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    'archive: name a file or a PostgreSQL URL, or set PERDURE_ARCHIVE',
  );
}

/** Opens an existing archive: a read must not create the file. @throws PerdureError `INVALID_ARGUMENT` */
export async function openExisting(cli: Cli, place: string): Promise<CheckpointArchive> {
  const { openArchive } = await import('../archive/index.ts');
  const archive = openArchive(place, await cli.dataConverter());
  if (isPostgresUrl(place) || existsSync(place)) return archive;
  throw new PerdureError('INVALID_ARGUMENT', `archive: ${place} does not exist. perdure archive creates it`);
}

/** What blocks an exporter, one line each. */
export function problems({ failure, unreadable }: ArchiveStatus): string[] {
  return [
    ...(failure === null
      ? []
      : [`cannot store since ${failure.since} (${failure.attempts} attempts): ${failure.message}`]),
    ...unreadable.map(
      ({ sessionId, runId, message }) =>
        `cannot read run ${runId} of ${sessionId}, will try again: ${message}`,
    ),
  ];
}
