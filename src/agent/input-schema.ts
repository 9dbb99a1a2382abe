/** The JSON Schema of a tool's arguments, for providers and the manifest. */
import { asSchema } from '@ai-sdk/provider-utils';
import type { FlexibleSchema } from 'ai';
import { isPerdureError, messageOf, PerdureError } from '../contract/errors.ts';
import { type JsonObject, type JsonValue, toJson } from '../contract/json.ts';

/** The part of a tool that its schema needs. */
interface Checked {
  inputSchema: FlexibleSchema<unknown>;
  idempotency?: { args?: readonly string[] } | ((input: never, options: never) => string);
}

/** Why a value is not a schema of a context, or `null`. */
export function contextSchemaProblem(given: unknown): string | null {
  const isSchema = typeof given === 'function' || (typeof given === 'object' && given !== null);
  return given === undefined || isSchema
    ? null
    : `context is ${JSON.stringify(given)}: write a schema, such as z.object({ tenant: z.string() })`;
}

/** Why a value is not a schema of an answer, or `null`. */
export function outputSchemaProblem(given: unknown): string | null {
  if (given === undefined) return null;
  if (typeof given !== 'function' && (typeof given !== 'object' || given === null))
    return `output is ${JSON.stringify(given)}: write a schema, such as z.object({ total: z.number() })`;
  const problem = schemaProblem({ inputSchema: given as FlexibleSchema<unknown> });
  return problem?.replace('inputSchema', 'output') ?? null;
}

/** The problem of a tool's schema that can be found without running it, with what to write instead, or `null`. */
export function schemaProblem(tool: Checked): string | null {
  // A schema in a function is read later.
  if (typeof tool.inputSchema === 'function') return null;
  try {
    const written: unknown = asSchema(tool.inputSchema).jsonSchema;
    if (!isPromise(written)) readSchema(tool, written);
    // The worker reports the error when it starts.
    else written.then(undefined, () => {});
    return null;
  } catch (error) {
    return unwritable(error).message;
  }
}

/**
 * The schema of a tool's arguments.
 *
 * @throws PerdureError `INVALID_DEFINITION` when it has no JSON Schema, or is not an object schema.
 */
export async function inputSchema(tool: Checked): Promise<JsonObject> {
  try {
    return readSchema(tool, await asSchema(tool.inputSchema).jsonSchema);
  } catch (error) {
    throw unwritable(error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

function unwritable(error: unknown): PerdureError {
  if (isPerdureError(error, 'INVALID_DEFINITION')) return error;
  const why = messageOf(error);
  return new PerdureError(
    'INVALID_DEFINITION',
    `inputSchema cannot be converted to JSON Schema: ${why}. Use types that JSON has`,
    { cause: error },
  );
}

function readSchema(tool: Checked, written: unknown): JsonObject {
  const schema: JsonValue = toJson(JSON.parse(JSON.stringify(written)));
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema) || schema['type'] !== 'object') {
    throw new PerdureError(
      'INVALID_DEFINITION',
      'inputSchema is not an object schema: providers accept only z.object({ … })',
    );
  }
  const properties = schema['properties'];
  const known = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  const named: readonly string[] =
    (typeof tool.idempotency === 'object' ? tool.idempotency.args : undefined) ?? [];
  const unknown = named.find((argument) => !known.includes(argument));
  // A schema that is composed of other schemas lists its arguments elsewhere.
  if (unknown !== undefined && (schema['additionalProperties'] === false || known.length > 0)) {
    // All its calls would count as equal, and only one would run.
    throw new PerdureError(
      'INVALID_DEFINITION',
      `idempotency.args names ${unknown}, which is not an argument. The arguments: ${known.join(', ')}`,
    );
  }
  return schema;
}
