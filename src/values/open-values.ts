import type { ValueStore } from '../contract/values.ts';
import { DirectoryValues } from './directory-values.ts';
import { PostgresValues } from './postgres-values.ts';

/** Opens a store: the URL of a PostgreSQL database, or the path of a directory. */
export function openValues(place: string): ValueStore {
  return /^postgres(ql)?:\/\//i.test(place) ? new PostgresValues(place) : new DirectoryValues(place);
}
