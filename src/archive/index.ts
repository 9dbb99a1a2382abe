export { ArchivedSaver } from './archived-saver.ts';
export { auditSession } from './audit.ts';
export { type ArchiveFileStatus, CheckpointArchive } from './checkpoint-archive.ts';
export { createArchiveActivities } from './exporter.ts';
export { openArchive } from './open.ts';
export { archiveStatus, DEFAULT_ARCHIVE } from './start.ts';
