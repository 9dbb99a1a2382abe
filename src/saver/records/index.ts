export {
  RUN_PHASES,
  RUN_STATES,
  type RunCheckpoint,
  type RunPhase,
  type RunState,
  type RuntimeSnapshot,
  readRunCheckpoint,
  readSnapshot,
  type TerminalResult,
  type ToolExecution,
} from './run-record.ts';
export { runCheckpoint, runPhases, terminalResult } from './run-view.ts';
export {
  type AgentCheckpoint,
  type ConstraintState,
  type PendingDelegation,
  readSessionCheckpoint,
  resumedSection,
  type SessionCheckpoint,
  type TranscriptEvent,
  tailOf,
} from './session-record.ts';
export {
  type PauseEvent,
  pauseEvents,
  type SessionCheckpointOptions,
  sessionCheckpoint,
} from './session-view.ts';
