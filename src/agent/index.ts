export type { AgentOptions, AnyTool, DefinedAgent, ModelChoice } from './agent-options.ts';
export {
  type AgentRuntime,
  ANTHROPIC,
  type Model,
  type ModelRegistry,
  plainToolsWarning,
  resolveAgent,
} from './agent-runtime.ts';
export { type AgentToolOptions, agentTool, hasBackground, withSubAgents } from './agent-tool.ts';
export { type AskPersonOptions, askPerson, type Question } from './ask-person.ts';
export {
  agentStop,
  type ReminderInput,
  remindMe,
  type ScratchpadWrite,
  type SleepInput,
  scratchpad,
  sleepUntil,
  type TimedOptions,
} from './built-ins.ts';
export { compensating } from './compensating.ts';
export type { Compensation, CompensationContext } from './compensation.ts';
export { readContext } from './context.ts';
export {
  type CompactionChoice,
  type CompactionInfo,
  type ContextWindowOptions,
  chooseCompaction,
} from './context-window.ts';
export { defineAgent } from './define-agent.ts';
export {
  type DefinedTool,
  defineTool,
  NotAttemptedError,
  type SubAgent,
  type ToolEffect,
} from './define-tool.ts';
export { instructionsFor } from './instructions.ts';
export { parseArgs, prepareCall } from './prepare-call.ts';
export { QuestionError } from './question-error.ts';
export type { ToolContext, Verification } from './tool-context.ts';
export type {
  ApprovalOptions,
  ApprovalRules,
  Idempotency,
  ModelOutputOptions,
  ToolOptions,
} from './tool-options.ts';
export { deadline, validate } from './validate.ts';
