export { DirectoryValues } from './directory-values.ts';
export { openValues } from './open-values.ts';
export { PostgresValues } from './postgres-values.ts';
export { pruneValues } from './prune.ts';
export type { S3Options } from './s3-url.ts';
export { S3Values } from './s3-values.ts';
export { usable, type Value, Values } from './values.ts';
