/** `perdure/archive`: checkpoints that outlive the server's retention. */
export type { Change } from '../checkpoints/index.ts';
export type { ArchiveStatus, UnreadableRun } from '../contract/archive.ts';
export type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../contract/checkpoint.ts';
export type { JsonObject, JsonValue } from '../contract/json.ts';
export { ArchivedSaver, type PrimarySaver } from './archived-saver.ts';
export { type Audit, type AuditDifference, auditSession } from './audit.ts';
export { type ArchiveFileStatus, type ArchivePosition, CheckpointArchive } from './checkpoint-archive.ts';
export { type ArchiveWorkerOptions, createArchiveWorker } from './create-archive-worker.ts';
export type { ArchiveDatabase, ArchiveStatements } from './database.ts';
export { openArchive } from './open.ts';
export { PostgresArchive } from './postgres-archive.ts';
export type { ArchiveOptions } from './row-codec.ts';
export type { ArchivedRun } from './rows.ts';
export { SqliteArchive } from './sqlite-archive.ts';
export { archiveStatus } from './start.ts';
export type { ArchivePiece } from './write-piece.ts';
