export { estimateTokens } from './plan.ts';
export { type RecordLine, readRecordFile } from './record.ts';
export {
  type RecordedRequest,
  type ScriptedModel,
  type ScriptedModelOptions,
  startScriptedModel,
} from './server.ts';
export {
  type ChatMessage,
  type ChatTool,
  type ChatToolCall,
  type ChatToolResult,
  type Fault,
  type InterruptedFault,
  type Reply,
  type ReplyFinishReason,
  type ReplyToolCall,
  type ReplyUsage,
  type Script,
  type ScriptedRequest,
  type ScriptedTurn,
  scriptedTurns,
} from './types.ts';
