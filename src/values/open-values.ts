import type { ValueStore } from '../contract/values.ts';
import { isPostgresUrl } from '../postgres/index.ts';
import { DirectoryValues } from './directory-values.ts';
import { PostgresValues } from './postgres-values.ts';

/** Opens a store: the URL of a PostgreSQL database, or the path of a directory. */
export function openValues(place: string): ValueStore {
  return isPostgresUrl(place) ? new PostgresValues(place) : new DirectoryValues(place);
}
