/** Messages of records from elsewhere. An unknown kind of block is an error. */
import * as z from 'zod';
import type { Block, Message } from '../../contract/messages.ts';
import { json, object as metadata } from './kept-json.ts';

const text: z.ZodType<string> = z.string();

const block = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('text'), text, metadata: z.exactOptional(metadata) }),
  z.strictObject({ kind: z.literal('reasoning'), text, metadata: z.exactOptional(metadata) }),
  z.strictObject({
    kind: z.literal('tool_call'),
    id: text,
    name: text,
    args: json,
    metadata: z.exactOptional(metadata),
  }),
  z.strictObject({
    kind: z.literal('tool_result'),
    call_id: text,
    name: text,
    content: json,
    is_error: z.boolean(),
  }),
]) as z.ZodType<Block>;

export const messageSchema: z.ZodType<Message> = z.strictObject({
  id: text,
  role: z.enum(['user', 'assistant', 'tool']),
  created_at: text,
  blocks: z.array(block),
});
