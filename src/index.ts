/** Perdure: agent sessions on Temporal that survive crashes, deploys, people and time. */
export {
  type AgentOptions,
  type AnyTool,
  type DefinedAgent,
  type DefinedTool,
  defineAgent,
  defineTool,
  type Idempotency,
  type ModelChoice,
  type ModelRegistry,
  NotAttemptedError,
  type ToolContext,
  type ToolOptions,
  type Verification,
} from './agent/index.ts';
export {
  type ArchiveDatabase,
  type ArchivedRun,
  ArchivedSaver,
  type ArchiveFileStatus,
  type ArchivePiece,
  type ArchivePosition,
  type ArchiveStatements,
  type Audit,
  type AuditDifference,
  archiveStatus,
  auditSession,
  CheckpointArchive,
  openArchive,
  PostgresArchive,
  type PrimarySaver,
  SqliteArchive,
} from './archive/index.ts';
export { type Change, diff, type EffectSince, effectsSince } from './checkpoints/index.ts';
export {
  type ForkOptions,
  Session,
  type SessionListOptions,
  type SessionSummary,
  Sessions,
  type StartOptions,
  type StreamPart,
} from './client/index.ts';
export type { ArchiveStatus, UnreadableRun } from './contract/archive.ts';
export type * from './contract/calls.ts';
export {
  CHECKPOINT_ID_LIMIT,
  type Checkpoint,
  type CheckpointSaver,
  type GetOptions,
  type ListOptions,
  type PutOptions,
  type StoredStep,
} from './contract/checkpoint.ts';
export type { EditInput } from './contract/edit.ts';
export { ERROR_CODES, type ErrorCode, isPerdureError, PerdureError } from './contract/errors.ts';
export type * from './contract/inputs.ts';
export type { JsonObject, JsonValue } from './contract/json.ts';
export type { LazySchema } from './contract/lazy-schema.ts';
export { LIMIT } from './contract/limits.ts';
export type * from './contract/manifest.ts';
export type * from './contract/messages.ts';
export { DEFAULT_TASK_QUEUE, QUERY, SEARCH_ATTRIBUTE, SIGNAL, UPDATE, WORKFLOW } from './contract/names.ts';
export type { NextStep } from './contract/next-step.ts';
export type * from './contract/origin.ts';
export type { PlanInput } from './contract/plan.ts';
export type * from './contract/state.ts';
export type { ContentRef } from './contract/thread.ts';
export type * from './contract/views.ts';
export { MemorySaver, SqliteSaver, TemporalSaver } from './saver/index.ts';
export {
  type ArchiveWorkerOptions,
  createArchiveWorker,
  createWorker,
  modelsFromEnvironment,
  PerdurePlugin,
  type PerdurePluginOptions,
  type SessionWorkerOptions,
} from './worker/index.ts';
