export type { Inbox, InboxAnswer, InboxItem, InboxOptions } from '../contract/inbox.ts';
export type { LiveDelta } from '../contract/live-text.ts';
export type { SessionSummary } from '../contract/views.ts';
export type { WorkerVersion } from '../temporal/pollers.ts';
export {
  listVersions,
  setCurrentVersion,
  type VersionStatus,
  type VersionSummary,
  type Versions,
} from '../temporal/versions.ts';
export type { SessionListOptions } from '../temporal/visibility.ts';
export { checkNewId, type StartedAgent } from './checks.ts';
export type { FileData, MessagePart, PartsInput } from './message-parts.ts';
export { Pool } from './pool.ts';
export { type ScheduleInput, scheduleSessions } from './schedule.ts';
export { Session, type SessionReading, type SessionStores } from './session.ts';
export { Sessions } from './sessions.ts';
export type { ForkOptions, StartOptions } from './start-options.ts';
export type { StreamOptions, StreamPart } from './stream.ts';
export type { LivePart } from './stream-answer.ts';
export type { CallNews, RunCause, SessionNews } from './stream-parts.ts';
export type { DurablePart } from './stream-subscription.ts';
export type { Tree, TreeItem, TreeNode } from './tree.ts';
export { type MovedSession, moveSession } from './versions.ts';
