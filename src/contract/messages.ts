/**
 * The transcript: messages made of blocks. Field names are those of the durable-state contract, because
 * checkpoints hand this shape to harnesses in other languages.
 */
import type { JsonObject, JsonValue } from './json.ts';

/** Text that a person or the model wrote. `metadata` is the provider's own, kept because some need it back. */
export interface TextBlock {
  kind: 'text';
  text: string;
  metadata?: JsonObject;
}

/** The model's reasoning, where the provider shows it. Signatures live in `metadata`. */
export interface ReasoningBlock {
  kind: 'reasoning';
  text: string;
  metadata?: JsonObject;
}

/** A call that the model asked for. `id` is ours (`call_<turn>_<n>`), unique in the session. */
export interface ToolCallBlock {
  kind: 'tool_call';
  id: string;
  name: string;
  args: JsonValue;
  metadata?: JsonObject;
}

/** What the model was told of a call's end. `content` is the tool's output, or words when `is_error`. */
export interface ToolResultBlock {
  kind: 'tool_result';
  call_id: string;
  name: string;
  content: JsonValue;
  /** What the model is sent in place of `content`: a tool result's output in the AI SDK's shape. */
  model_output?: JsonObject;
  is_error: boolean;
}

/** A part of a message, told apart by `kind`. */
export type Block = TextBlock | ReasoningBlock | ToolCallBlock | ToolResultBlock;

/** One message. `id` is unique in the session; `created_at` is an ISO 8601 time in UTC, derived from the history. */
export interface Message {
  id: string;
  role: 'user' | 'assistant' | 'tool';
  created_at: string;
  blocks: Block[];
}

/** What the model is told of a call. */
export interface CallResult {
  content: JsonValue;
  isError: boolean;
  /** What the model is sent in place of `content`, as the tool's `toModelOutput` gave it. */
  modelOutput?: JsonObject;
}

/** The blocks of the message that tells the model what became of its calls. */
export function resultBlocks(
  calls: readonly { id: string; name: string; result: CallResult | null }[],
): ToolResultBlock[] {
  return calls.map(({ id, name, result }) => ({
    kind: 'tool_result',
    call_id: id,
    name,
    content: result?.content ?? null,
    ...(result?.modelOutput === undefined ? {} : { model_output: result.modelOutput }),
    is_error: result?.isError ?? true,
  }));
}

/** Where a transcript stands: how many messages, and the chained digest over them. */
export interface Position {
  count: number;
  digest: string;
}
