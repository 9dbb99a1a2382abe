/** The schema of messages in records from elsewhere. An unknown kind of block or an unknown field is an error. */
import * as z from 'zod';
import { type Message, messageSchema as schemaOf } from '../../contract/messages.ts';
import { parseKnown } from '../../contract/unknown-name.ts';

/** The contract's schema. The value stays as it is, because zod's copy would lose a key such as `__proto__`. */
export const messageSchema: z.ZodType<Message> = z.custom<Message>().superRefine((value, context) => {
  const parsed = parseKnown(schemaOf, value);
  if (parsed.ok) return;
  const path = parsed.field === 'input' ? [] : parsed.field.split('.');
  context.addIssue({ code: 'custom', message: parsed.problem, path });
});
