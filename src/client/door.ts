/** `perdure/client`: for a program that talks to sessions and runs none. It loads no worker code. */
export type {
  Decision,
  EffectRef,
  Resolution,
  ToolAnswer,
  ToolCall,
  ToolQuestion,
} from '../contract/calls.ts';
export type { EditInput } from '../contract/edit.ts';
export {
  ERROR_CODES,
  type ErrorCode,
  isPerdureError,
  PerdureError,
  type Remedy,
} from '../contract/errors.ts';
export type {
  BudgetInput,
  CancelInput,
  DecideInput,
  PauseInput,
  ResolveInput,
  ResumeInput,
  SendInput,
} from '../contract/inputs.ts';
export type { JsonObject, JsonValue } from '../contract/json.ts';
export { LIMIT } from '../contract/limits.ts';
export type { LiveChannel, LiveCoding, LiveKey, LiveListener, LiveWriter } from '../contract/live-text.ts';
export type { AgentChange } from '../contract/manifest.ts';
export type { Message } from '../contract/messages.ts';
export { DEFAULT_TASK_QUEUE } from '../contract/names.ts';
export type { Past } from '../contract/past.ts';
export type {
  PoolAmount,
  PoolAmounts,
  PoolCap,
  PoolLimits,
  PoolPeriod,
  PoolSetInput,
  PoolShare,
  PoolView,
} from '../contract/pool.ts';
export type { SessionResult } from '../contract/session-input.ts';
export type { Phase, SessionState } from '../contract/state.ts';
export type { Child, ChildEnd, ParentLink, TreeUsage } from '../contract/tree.ts';
export type { Undo, UndoInput, UndoPlan, UndoStep } from '../contract/undo.ts';
export type { StoredValue, ValueRef, ValueStore } from '../contract/values.ts';
export type {
  BudgetView,
  CallDetail,
  PendingCall,
  PendingQuestion,
  SessionView,
  TranscriptPage,
} from '../contract/views.ts';
export { RedisLiveChannel } from '../live/index.ts';
export { DirectoryValues, PostgresValues, type S3Options, S3Values, type Value } from '../values/index.ts';
export {
  type CallNews,
  type DurablePart,
  type FileData,
  type ForkOptions,
  type Inbox,
  type InboxAnswer,
  type InboxItem,
  type InboxOptions,
  type LiveDelta,
  type LivePart,
  listVersions,
  type MessagePart,
  type MovedSession,
  moveSession,
  type PartsInput,
  Pool,
  type RunCause,
  type ScheduleInput,
  Session,
  type SessionListOptions,
  type SessionNews,
  type SessionStores,
  type SessionSummary,
  Sessions,
  type StartedAgent,
  type StartOptions,
  type StreamOptions,
  type StreamPart,
  scheduleSessions,
  setCurrentVersion,
  type Tree,
  type TreeItem,
  type TreeNode,
  type VersionStatus,
  type VersionSummary,
  type Versions,
  type WorkerVersion,
} from './index.ts';
