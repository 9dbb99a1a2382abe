/** Basic schemas, and the schemas of stored checkpoints and errors. */
import * as z from 'zod/mini';
import { CHECKPOINT_ID_LIMIT, type Checkpoint, type StoredStep } from '../contract/checkpoint.ts';
import { ERROR_CODES } from '../contract/errors.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';
import type { ErrorBody } from './errors.ts';

/** What the OpenAPI document says about schemas that cannot describe themselves. */
export const notes: z.core.$ZodRegistry<Record<string, unknown>> = z.registry();

/** Any JSON value, unchanged: a copy could lose a key such as `__proto__`. */
export const jsonValue: z.ZodMiniType<JsonValue> = z.custom<JsonValue>(
  (value) => value !== undefined,
  'expected a value',
);

/** Any JSON object, unchanged. */
export const jsonObject: z.ZodMiniType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected object',
);
/** An id or key: not blank, without NUL or half of a surrogate pair, and not `.` or `..`. */
export const STORED = '^(?!\\.{1,2}$)(?=[\\s\\S]*\\S)[^\\u0000\\ud800-\\udfff]+$';
export const STORED_ID: { pattern: string; maxLength: number } = {
  pattern: STORED,
  maxLength: CHECKPOINT_ID_LIMIT,
};
/** Text that Temporal can search for. */
export const SEARCHABLE = "^(?!'|[\\s\\S]*'$)[^\"\\\\\\u0000-\\u001f\\u007f-\\u009f]*$";

/** A string with keywords for the document only. The code that uses it checks them, with its own errors. */
export function noted(keywords: { pattern: string; maxLength?: number }): z.ZodMiniString {
  const schema = z.string();
  notes.add(schema, keywords);
  return schema;
}
notes.add(jsonObject, { type: 'object', additionalProperties: true });

/** A schema of exactly one type: a missing or extra case or field does not compile. */
export function exactly<T>(): <S extends z.ZodMiniType<T>>(
  schema: S & ([T, Required<z.output<S>>] extends [z.output<S>, Required<T>] ? unknown : never),
) => z.ZodMiniType<T> {
  return (schema) => schema;
}

export const time: z.ZodMiniString = z.string();
notes.add(time, { format: 'date-time' });

export const checkpointSchema: z.ZodMiniType<Checkpoint> = exactly<Checkpoint>()(
  z.object({
    id: z.string(),
    thread_id: z.string(),
    created_at: time,
    state: jsonObject,
    parent_id: z.nullable(z.string()),
    metadata: jsonObject,
  }),
);

export const stepSchema: z.ZodMiniType<StoredStep> = exactly<StoredStep>()(
  z.object({
    thread_id: z.string(),
    key: z.string(),
    value: jsonValue,
    updated_at: time,
  }),
);

export const errorSchema: z.ZodMiniType<ErrorBody> = z.object({
  error: z.object({
    code: z.enum(ERROR_CODES),
    message: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
});
