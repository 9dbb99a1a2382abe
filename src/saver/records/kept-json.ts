/** Schemas for JSON in records. They return the value itself: zod's copy would lose a key such as `__proto__`. */
import * as z from 'zod';
import type { JsonObject, JsonValue } from '../../contract/json.ts';

export const json: z.ZodType<JsonValue> = z.custom<JsonValue>(isJson, 'expected JSON');

export const object: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
  'expected an object of JSON',
);

function isJson(value: unknown): boolean {
  return z.json().safeParse(value).success;
}
