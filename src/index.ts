/** Perdure: agent sessions on Temporal that survive crashes, deploys, people and time. */
export {
  type AgentOptions,
  type AgentToolOptions,
  type AnyTool,
  type ApprovalOptions,
  type ApprovalRules,
  type AskPersonOptions,
  agentTool,
  askPerson,
  type CompactionChoice,
  type CompactionInfo,
  type Compensation,
  type CompensationContext,
  type ContextWindowOptions,
  type DefinedAgent,
  type DefinedTool,
  defineAgent,
  defineTool,
  type Idempotency,
  type ModelChoice,
  type ModelOutputOptions,
  type ModelRegistry,
  NotAttemptedError,
  type Question,
  QuestionError,
  type ReminderInput,
  remindMe,
  type ScratchpadWrite,
  type SleepInput,
  type SubAgent,
  scratchpad,
  sleepUntil,
  type TimedOptions,
  type ToolContext,
  type ToolEffect,
  type ToolOptions,
  type Verification,
} from './agent/index.ts';
export {
  type Change,
  diff,
  type EffectSince,
  effectsSince,
  undoPlanSince,
  wholeCheckpoint,
} from './checkpoints/index.ts';
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
  type SessionReading,
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
} from './client/index.ts';
export type { BuiltIn, Reminder, Sleeping } from './contract/built-in.ts';
export type {
  Actor,
  ApproverRules,
  CallStatus,
  Decision,
  DecisionRecord,
  Dispatch,
  EffectOutcome,
  EffectRef,
  PreparedBefore,
  Resolution,
  ResolutionRecord,
  SeenCall,
  SeenDispatch,
  ToolAnswer,
  ToolCall,
  ToolQuestion,
} from './contract/calls.ts';
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
export { ERROR_CODES, type ErrorCode, isPerdureError, PerdureError, type Remedy } from './contract/errors.ts';
export type {
  BudgetInput,
  BudgetLimitsInput,
  CancelInput,
  DecideInput,
  PauseInput,
  ResolveInput,
  ResumeInput,
  SendInput,
} from './contract/inputs.ts';
export type { JsonObject, JsonValue } from './contract/json.ts';
export { LIMIT } from './contract/limits.ts';
export type { LiveChannel, LiveCoding, LiveKey, LiveListener, LiveWriter } from './contract/live-text.ts';
export type {
  AgentChange,
  AgentPolicy,
  ApprovalPolicy,
  BudgetLimits,
  CompensationPolicy,
  ContextWindow,
  Effect,
  IdempotencyScope,
  Manifest,
  ModelManifest,
  ModelPrice,
  NotifyEvent,
  NotifyPolicy,
  QuestionPolicy,
  SubAgentLimits,
  ToolManifest,
} from './contract/manifest.ts';
export type {
  Block,
  CallResult,
  FileBlock,
  Message,
  MessageBlock,
  Position,
  ReasoningBlock,
  SourceBlock,
  Summary,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from './contract/messages.ts';
export { DEFAULT_TASK_QUEUE } from './contract/names.ts';
export type { NextStep } from './contract/next-step.ts';
export type { Notification } from './contract/notifications.ts';
export type { CarriedEffect, Origin } from './contract/origin.ts';
export type { Past } from './contract/past.ts';
export type { PlanInput } from './contract/plan.ts';
export type {
  PoolAmount,
  PoolAmounts,
  PoolCap,
  PoolLimits,
  PoolPeriod,
  PoolSetInput,
  PoolShare,
  PoolView,
} from './contract/pool.ts';
export type { Limited } from './contract/rates.ts';
export type { SessionResult } from './contract/session-input.ts';
export type {
  Budget,
  InFlight,
  Notice,
  Phase,
  PlanStep,
  QueuedMessage,
  SessionMode,
  SessionState,
  SessionStatus,
  Spent,
  Wait,
  WaitReason,
} from './contract/state.ts';
export type { ContentRef } from './contract/thread.ts';
export type {
  AgentReport,
  AtEnd,
  Background,
  BackgroundStart,
  Child,
  ChildEnd,
  ParentLink,
  TreeUsage,
} from './contract/tree.ts';
export type { Undo, UndoInput, UndoPlan, UndoStep } from './contract/undo.ts';
export type { StoredValue, ValueRef, ValueStore } from './contract/values.ts';
export type {
  ApprovalNeeds,
  BudgetView,
  CallDetail,
  CallsPage,
  Page,
  PageInput,
  PendingCall,
  PendingQuestion,
  SessionView,
  TooLarge,
  TranscriptPage,
} from './contract/views.ts';
export { RedisLiveChannel } from './live/index.ts';
export { MemorySaver, SqliteSaver, TemporalSaver } from './saver/index.ts';
export { DirectoryValues, PostgresValues, type S3Options, S3Values, type Value } from './values/index.ts';
export type { Webhook, WebhookEvent } from './webhooks/index.ts';
export {
  createWorker,
  type DeploymentOptions,
  modelsFromEnvironment,
  PerdurePlugin,
  type PerdurePluginOptions,
  type SessionWorkerOptions,
} from './worker/index.ts';
export type { RateLimit } from './worker/rate-limits.ts';
