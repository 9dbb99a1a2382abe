/** The test kit for users: harness, scripted model, wires, conformance. */

export type { DefinedAgent } from '../agent/index.ts';
export type { Session, Sessions, StartOptions } from '../client/index.ts';
export type { CheckpointSaver } from '../contract/checkpoint.ts';
export type { Phase } from '../contract/state.ts';
export type { SessionView } from '../contract/views.ts';
export type { SessionWorkerOptions } from '../worker/index.ts';
export { checkpointSaverConformance, type Runner, type SaverUnderTest } from './conformance/index.ts';
export {
  breakpoint,
  createHarness,
  type Harness,
  type HarnessOptions,
  type HarnessProcessOptions,
  type HarnessWorker,
  type WorkerProcess,
} from './harness/index.ts';
export { historyFromJSON, historyToJSON } from './history-json.ts';
export {
  type ChatMessage,
  type ChatTool,
  type ChatToolCall,
  type ChatToolResult,
  estimateTokens,
  type Fault,
  type InterruptedFault,
  type RecordedRequest,
  type RecordLine,
  type Reply,
  type ReplyFinishReason,
  type ReplyToolCall,
  type ReplyUsage,
  readRecordFile,
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedRequest,
  type ScriptedTurn,
  scriptedTurns,
  startScriptedModel,
} from './scripted-model/index.ts';
export { openWire, type Wire } from './wire.ts';
