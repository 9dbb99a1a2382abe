/**
 * The transcript: messages made of blocks. Field names follow the durable-state contract, because harnesses in other
 * languages read checkpoints.
 */
import * as z from 'zod/mini';
import { defined, type JsonObject, type JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import type { AgentReport } from './tree.ts';
import { type ValueRef, valueRefSchema } from './values.ts';

/** Text of a person or the model. `metadata` belongs to the provider: some providers need it back. */
export interface TextBlock {
  kind: 'text';
  text: string;
  metadata?: JsonObject;
}

/** The model's reasoning. Signatures are in `metadata`. */
export interface ReasoningBlock {
  kind: 'reasoning';
  text: string;
  metadata?: JsonObject;
}

/** A call that the model requested. `id` is ours (`call_<turn>_<n>`), unique in the session. */
export interface ToolCallBlock {
  kind: 'tool_call';
  id: string;
  name: string;
  args: JsonValue;
  metadata?: JsonObject;
}

/** The result of a call as the model sees it. `content` is the tool's output, or a text when `is_error`. */
export interface ToolResultBlock {
  kind: 'tool_result';
  call_id: string;
  name: string;
  content: JsonValue;
  /** What the model gets in place of `content`, in the AI SDK's shape. */
  model_output?: JsonObject;
  /** The whole output, of which `content` holds the beginning and the end. */
  value?: ValueRef;
  is_error: boolean;
}

/** An image or another file: stored, or at a URL that the provider fetches. */
export interface FileBlock {
  kind: 'file';
  /** Such as `image/png` or `application/pdf`. */
  media_type: string;
  filename?: string;
  value?: ValueRef;
  url?: string;
  metadata?: JsonObject;
}

/** A source that the model's reply is based on: a web page, or a document. */
export interface SourceBlock {
  kind: 'source';
  id: string;
  url?: string;
  title?: string;
  media_type?: string;
  filename?: string;
  metadata?: JsonObject;
}

export type Block = TextBlock | ReasoningBlock | FileBlock | SourceBlock | ToolCallBlock | ToolResultBlock;

/** What a message of a person may consist of. */
export type MessageBlock = TextBlock | FileBlock;

/** `id` is unique in the session. `created_at` is an ISO 8601 time in UTC from the history. */
export interface Message {
  id: string;
  role: 'user' | 'assistant' | 'tool';
  created_at: string;
  blocks: Block[];
  /** Who sent it, if that was verified. */
  by?: string;
  /** No summary replaces it: a summary repeats it word for word. */
  pinned?: true;
  /** Set on a summary of the messages before it. The session wrote it: nobody said it. */
  summary?: Summary;
  /** Set on an answer that fits the agent's `output` schema: its value. */
  output?: JsonValue;
  /** The session wrote it: it asks the model again for an answer that fits the `output` schema. */
  repair?: true;
  /** A side question, or its answer. Later prompts leave it out. */
  aside?: true;
  /** The session wrote it: it reports to the model about a sub-agent in the background. */
  report?: AgentReport;
}

/** What a summary replaces: the messages with index `from` and up, below `before`, and the previous summary. */
export interface Summary {
  from: number;
  before: number;
  /** Bytes of the prompt's messages without the summary. An edit that removes the summary restores this number. */
  bytes: number;
}

export interface CallResult {
  content: JsonValue;
  isError: boolean;
  /** What the model gets in place of `content`: the tool's `toModelOutput`. */
  modelOutput?: JsonObject;
  /** The whole output, of which `content` holds the beginning and the end. */
  value?: ValueRef;
}

/** The texts of a message, one for each block of text. */
export function textsOf({ blocks }: Pick<Message, 'blocks'>): string[] {
  return blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
}

/** The blocks of the message with the results of calls. */
export function resultBlocks(
  calls: readonly { id: string; name: string; result: CallResult | null }[],
): ToolResultBlock[] {
  return calls.map(({ id, name, result }) => ({
    kind: 'tool_result',
    call_id: id,
    name,
    content: result?.content ?? null,
    ...defined({ model_output: result?.modelOutput, value: result?.value }),
    is_error: result?.isError ?? true,
  }));
}

/** A position in a transcript: the number of messages, and the chained digest over them. */
export interface Position {
  count: number;
  digest: string;
}

const count = z.int().check(z.nonnegative());
const metadata = z.optional(z.record(z.string(), z.json()));
const name = z.optional(z.string().check(z.maxLength(1_000)));
const text = z.object({ kind: z.literal('text'), text: z.string(), metadata });
const file = z.object({
  kind: z.literal('file'),
  media_type: z.string().check(z.minLength(1), z.maxLength(200)),
  filename: name,
  value: z.optional(valueRefSchema()),
  url: z.optional(z.string().check(z.minLength(1), z.maxLength(8_000))),
  metadata,
});
const block = z.discriminatedUnion('kind', [
  text,
  file,
  z.object({
    kind: z.literal('source'),
    id: z.string(),
    url: z.optional(z.string()),
    title: z.optional(z.string()),
    media_type: z.optional(z.string()),
    filename: name,
    metadata,
  }),
  z.object({ kind: z.literal('reasoning'), text: z.string(), metadata }),
  z.object({ kind: z.literal('tool_call'), id: z.string(), name: z.string(), args: z.json(), metadata }),
  z.object({
    kind: z.literal('tool_result'),
    call_id: z.string(),
    name: z.string(),
    content: z.json(),
    model_output: metadata,
    value: z.optional(valueRefSchema()),
    is_error: z.boolean(),
  }),
]);

export const messageSchema: LazySchema<Message> = lazySchema(
  () =>
    z.object({
      id: z.string().check(z.minLength(1)),
      role: z.enum(['user', 'assistant', 'tool']),
      created_at: z.iso.datetime(),
      blocks: z.array(block),
      by: z.optional(z.string().check(z.maxLength(200))),
      pinned: z.optional(z.literal(true)),
      summary: z.optional(z.object({ from: count, before: count, bytes: count })),
      output: z.optional(z.json()),
      repair: z.optional(z.literal(true)),
      aside: z.optional(z.literal(true)),
      report: z.optional(
        z.object({
          agent: z.string(),
          session_id: z.string(),
          call_id: z.string(),
          status: z.enum(['completed', 'cancelled', 'failed', 'left']),
        }),
      ),
    }) as z.ZodMiniType<Message>,
);

export const messageBlocksSchema: LazySchema<MessageBlock[]> = lazySchema(
  () =>
    z
      .array(z.discriminatedUnion('kind', [text, file]))
      .check(z.minLength(1), z.maxLength(200)) as z.ZodMiniType<MessageBlock[]>,
);
