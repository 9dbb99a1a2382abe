export { Postgres, type Querying } from './postgres.ts';
export { isPostgresUrl } from './url.ts';
