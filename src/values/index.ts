export { DirectoryValues } from './directory-values.ts';
export { openValues } from './open-values.ts';
export { PostgresValues } from './postgres-values.ts';
export { pruneValues } from './prune.ts';
export { type Value, Values } from './values.ts';
