/** Messages that come from elsewhere: an unknown kind of block is an error, never skipped. */
import * as z from 'zod';
import type { JsonObject } from '../../contract/json.ts';
import type { Block, Message } from '../../contract/messages.ts';

const text: z.ZodType<string> = z.string();
const metadata = z.record(z.string(), z.json()) as z.ZodType<JsonObject>;

const block = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('text'), text, metadata: z.exactOptional(metadata) }),
  z.strictObject({ kind: z.literal('reasoning'), text, metadata: z.exactOptional(metadata) }),
  z.strictObject({
    kind: z.literal('tool_call'),
    id: text,
    name: text,
    args: z.json(),
    metadata: z.exactOptional(metadata),
  }),
  z.strictObject({
    kind: z.literal('tool_result'),
    call_id: text,
    name: text,
    content: z.json(),
    is_error: z.boolean(),
  }),
]) as z.ZodType<Block>;

/** Checks a {@link Message}. */
export const messageSchema: z.ZodType<Message> = z.strictObject({
  id: text,
  role: z.enum(['user', 'assistant', 'tool']),
  created_at: text,
  blocks: z.array(block),
});
