export { ArchivedSaver, type PrimarySaver } from './archived-saver.ts';
export { type Audit, type AuditDifference, auditSession } from './audit.ts';
export { createArchiveActivities } from './exporter.ts';
export type { ArchivedRun } from './rows.ts';
export { type ArchiveFileStatus, type ArchivePosition, SqliteArchive } from './sqlite-archive.ts';
export { archiveStatus, DEFAULT_ARCHIVE, startArchive } from './start.ts';
export type { ArchivePiece } from './write-piece.ts';
