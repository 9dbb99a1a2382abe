/** The sandbox-safe entry point: what a worker registers, and what a workflow of your own may import. */

export type { ArchiveInput, ArchiveStatus, UnreadableRun } from '../contract/archive.ts';
export type { BudgetLimitsInput, SendInput } from '../contract/inputs.ts';
export type { Message, Position } from '../contract/messages.ts';
export { DEFAULT_TASK_QUEUE, QUERY, SEARCH_ATTRIBUTE, SIGNAL, UPDATE, WORKFLOW } from '../contract/names.ts';
export type { NotifyInput, WebhookInput } from '../contract/notifications.ts';
export type { OriginInput } from '../contract/origin.ts';
export type { Leaving, MessageNotes } from '../contract/piece.ts';
export type { PoolInput } from '../contract/pool.ts';
export type { RateLimiterInput } from '../contract/rates.ts';
export type { EffectInput, SessionInput, SessionResult } from '../contract/session-input.ts';
export type { SessionEvent, SessionEvents, WaitKind } from '../contract/telemetry.ts';
export type {
  ContentRef,
  Garbage,
  SegmentInput,
  SegmentRef,
  ThreadEntry,
  ThreadInput,
} from '../contract/thread.ts';
export type { ParentLink } from '../contract/tree.ts';
export { archiveExporter } from './archive.ts';
export { budgetPool } from './pool.ts';
export { rateLimiter } from './rates.ts';
export { agentSession } from './session.ts';
export type { HandedPast, IssuedCall, PerdureSinks, TranscriptPiece } from './sinks.ts';
export { checkpointSegment, checkpointThread } from './thread.ts';
export { webhookDelivery } from './webhooks.ts';
