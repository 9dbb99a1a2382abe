/** The run-checkpoint record and its reader. */
import * as z from 'zod';
import { PerdureError } from '../../contract/errors.ts';
import { digestJson, type JsonObject, type JsonValue } from '../../contract/json.ts';
import { argsDigest } from '../../contract/keys.ts';
import type { Message } from '../../contract/messages.ts';
import { json, object } from './kept-json.ts';
import { messageSchema } from './message-record.ts';

/** Where a run stood when a record was written. `runtime_state` holds the snapshot from which it is resumed. */
export const RUN_PHASES = [
  'run_started',
  'step_started',
  'pre_llm',
  'post_llm',
  'pre_tool_batch',
  'post_tool_batch',
  'pre_subagent_batch',
  'post_subagent_batch',
  'run_terminal',
  'runtime_state',
] as const;
export type RunPhase = (typeof RUN_PHASES)[number];

export const RUN_STATES = [
  'pending',
  'running',
  'paused',
  'cancelling',
  'cancelled',
  'degraded',
  'completed',
  'failed',
] as const;
export type RunState = (typeof RUN_STATES)[number];

export interface ToolExecution {
  tool_call_id: string;
  tool_name: string;
  args: JsonValue;
  /** SHA-256 of the canonical JSON of `{tool_name, args}`. */
  input_hash: string;
  /** SHA-256 of the canonical JSON of the output. */
  output_hash: string;
  output: JsonValue;
  success: boolean;
  /** The id of the earlier call whose result answered this one. */
  replayed_from: string | null;
}

export interface TerminalResult {
  state: RunState;
  text: string;
  turns: number;
}

/** The snapshot that a run is resumed from. */
export interface RuntimeSnapshot {
  messages: Message[];
  step: number;
  state: RunState;
  context: JsonObject;
  llm_calls: number;
  tool_calls: number;
  started_at_s: number;
  usage: { input_tokens: number; output_tokens: number; total_tokens: number };
  total_cost_usd: number;
  session_token: string | null;
  checkpoint_token: string | null;
  /** A model reply whose tool calls have not all ended. It is not requested, or paid for, again. */
  pending_llm_response: {
    message_id: string;
    text: string;
    tool_calls: { id: string; name: string; args: JsonValue }[];
  } | null;
  tool_executions: ToolExecution[];
  subagent_executions: JsonValue[];
  requested_model: string | null;
  normalized_model: string | null;
  provider_adapter: string | null;
  final_text: string;
  /** `final_text` parsed as JSON, if it is an object or array. */
  final_structured: JsonValue;
  final_response: TerminalResult | null;
  /** Calls that were answered from the record of an equal call. */
  replayed_effect_count: number;
  background_tools_pending: string[];
  thread_id: string;
}

/** One record. The payload of `runtime_state` is a {@link RuntimeSnapshot}. */
export interface RunCheckpoint {
  schema_version: 'v1';
  run_id: string;
  step: number;
  phase: RunPhase;
  timestamp_ms: number;
  payload: JsonObject;
}

const count: z.ZodType<number> = z.int().nonnegative();
const text: z.ZodType<string> = z.string();
const nullableText: z.ZodType<string | null> = z.nullable(text);

const toolExecution: z.ZodType<ToolExecution> = z.strictObject({
  tool_call_id: text,
  tool_name: text,
  args: json,
  input_hash: text,
  output_hash: text,
  output: json,
  success: z.boolean(),
  replayed_from: nullableText,
});

const terminal: z.ZodType<TerminalResult> = z.strictObject({
  state: z.enum(RUN_STATES),
  text,
  turns: count,
});

const snapshot: z.ZodType<RuntimeSnapshot> = z.strictObject({
  messages: z.array(messageSchema),
  step: count,
  state: z.enum(RUN_STATES),
  context: object,
  llm_calls: count,
  tool_calls: count,
  started_at_s: z.number(),
  usage: z.strictObject({ input_tokens: count, output_tokens: count, total_tokens: count }),
  total_cost_usd: z.number().nonnegative(),
  session_token: nullableText,
  checkpoint_token: nullableText,
  pending_llm_response: z.nullable(
    z.strictObject({
      message_id: text,
      text,
      tool_calls: z.array(z.strictObject({ id: text, name: text, args: json })),
    }),
  ),
  tool_executions: z.array(toolExecution),
  subagent_executions: z.array(json),
  requested_model: nullableText,
  normalized_model: nullableText,
  provider_adapter: nullableText,
  final_text: text,
  final_structured: z.union([object, z.array(json), z.null()]),
  final_response: z.nullable(terminal),
  replayed_effect_count: count,
  background_tools_pending: z.array(text),
  thread_id: text,
});

const record: z.ZodType<RunCheckpoint> = z.strictObject({
  schema_version: z.literal('v1'),
  run_id: z.string().min(1),
  step: count,
  phase: z.enum(RUN_PHASES),
  timestamp_ms: count,
  payload: object,
});

/**
 * Reads a record that comes from elsewhere.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` for a missing, malformed or unknown record, for a tool call with wrong
 * hashes, and for one call id with two sets of arguments.
 */
export function readRunCheckpoint(value: unknown): RunCheckpoint {
  const read = parsed(record, value, 'run checkpoint');
  if (read.phase === 'runtime_state') readSnapshot(read.payload);
  if (read.phase === 'run_terminal') parsed(terminal, read.payload['terminal_result'], 'terminal_result');
  return read;
}

/** The snapshot of a `runtime_state` record. @throws PerdureError `CHECKPOINT_CORRUPTION` */
export function readSnapshot(payload: unknown): RuntimeSnapshot {
  const read = parsed(snapshot, payload, 'runtime snapshot');
  const inputs = new Map<string, string>();
  for (const { tool_call_id, tool_name, args, input_hash, output, output_hash } of read.tool_executions) {
    if (input_hash !== argsDigest(tool_name, args) || output_hash !== digestJson(output))
      throw corrupt(`the hashes of tool call ${tool_call_id} do not match its input and output`);
    if ((inputs.get(tool_call_id) ?? input_hash) !== input_hash)
      throw corrupt(`tool call ${tool_call_id} is recorded with two sets of arguments`);
    inputs.set(tool_call_id, input_hash);
  }
  return read;
}

function parsed<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw corrupt(`the ${what} is malformed at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? ''}`);
}

function corrupt(message: string): PerdureError {
  return new PerdureError('CHECKPOINT_CORRUPTION', `Cannot resume: ${message}`);
}
