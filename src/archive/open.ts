import { isPostgresUrl } from '../postgres/index.ts';
import type { CheckpointArchive } from './checkpoint-archive.ts';
import { PostgresArchive } from './postgres-archive.ts';
import type { ArchiveOptions } from './row-codec.ts';
import { SqliteArchive } from './sqlite-archive.ts';

/**
 * The archive at the URL of a PostgreSQL database or the path of an SQLite file. Its first call opens it.
 *
 * @throws PerdureError `INVALID_ARGUMENT` for any other URL
 */
export function openArchive(place: string, options: ArchiveOptions = {}): CheckpointArchive {
  return isPostgresUrl(place) ? new PostgresArchive(place, options) : new SqliteArchive(place, options);
}
