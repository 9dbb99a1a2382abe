export {
  type AgentRuntime,
  type Model,
  type ModelRegistry,
  plainToolsWarning,
  resolveAgent,
} from './agent-runtime.ts';
export {
  type AgentOptions,
  type AnyTool,
  type DefinedAgent,
  defineAgent,
  type ModelChoice,
} from './define-agent.ts';
export {
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
export { deadline, parseArgs, prepareCall } from './prepare-call.ts';
