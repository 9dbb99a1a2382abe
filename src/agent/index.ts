export {
  type AgentRuntime,
  ANTHROPIC,
  type Model,
  type ModelRegistry,
  plainToolsWarning,
  resolveAgent,
} from './agent-runtime.ts';
export { type AskPersonOptions, askPerson, type Question } from './ask-person.ts';
export { readContext } from './context.ts';
export {
  type CompactionChoice,
  type CompactionInfo,
  type ContextWindowOptions,
  chooseCompaction,
} from './context-window.ts';
export {
  type AgentOptions,
  type AnyTool,
  type DefinedAgent,
  defineAgent,
  type ModelChoice,
} from './define-agent.ts';
export {
  type ApprovalOptions,
  type ApprovalRules,
  type DefinedTool,
  defineTool,
  type Idempotency,
  type ModelOutputOptions,
  NotAttemptedError,
  type ToolContext,
  type ToolEffect,
  type ToolOptions,
  type Verification,
} from './define-tool.ts';
export { instructionsFor } from './instructions.ts';
export { parseArgs, prepareCall } from './prepare-call.ts';
export { deadline, validate } from './validate.ts';
