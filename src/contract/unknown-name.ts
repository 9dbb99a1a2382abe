/** Refuses names that the schemas would ignore: a misspelt cap would be no cap. */
import * as z from 'zod/mini';
import { editSchema } from './edit.ts';
import {
  budgetSchema,
  cancelSchema,
  decideSchema,
  editMessageSchema,
  type InputProblem,
  inputProblem,
  type ParsedInput,
  parseInput,
  pauseSchema,
  resolveSchema,
  resumeSchema,
  sealSchema,
  sendSchema,
  withdrawSchema,
} from './inputs.ts';
import type { LazySchema } from './lazy-schema.ts';
import { SIGNAL, UPDATE } from './names.ts';

const INPUTS: Readonly<Record<string, LazySchema<unknown>>> = {
  [SIGNAL.send]: sendSchema,
  [SIGNAL.pause]: pauseSchema,
  [SIGNAL.resume]: resumeSchema,
  [SIGNAL.cancel]: cancelSchema,
  [UPDATE.send]: sendSchema,
  [UPDATE.decide]: decideSchema,
  [UPDATE.resolve]: resolveSchema,
  [UPDATE.budget]: budgetSchema,
  [UPDATE.edit]: editSchema,
  [UPDATE.seal]: sealSchema,
  [UPDATE.withdraw]: withdrawSchema,
  [UPDATE.editMessage]: editMessageSchema,
};

/** The first unknown name in the payload of a signal or an update, or `null`. */
export function unknownInput(name: string, payload: unknown): InputProblem | null {
  const schemaOf = INPUTS[name];
  return schemaOf === undefined ? null : unknownName(schemaOf, payload);
}

/** {@link parseInput} that also refuses unknown names. For new inputs only: recorded inputs are read as before. */
export function parseKnown<T>(schemaOf: LazySchema<T>, value: unknown): ParsedInput<T> {
  const parsed = parseInput(schemaOf, value);
  const unknown = parsed.ok ? unknownName(schemaOf, value) : null;
  return unknown === null ? parsed : { ok: false, ...unknown };
}

function unknownName(schemaOf: LazySchema<unknown>, value: unknown): InputProblem | null {
  return find(schemaOf(), value, []);
}

export function notKnown(known: Iterable<string>): string {
  return `is unknown. Known names: ${[...known].join(', ') || 'none'}`;
}

function find(schema: z.core.$ZodType, value: unknown, path: readonly string[]): InputProblem | null {
  if (typeof value !== 'object' || value === null) return null;
  const fields = fieldsOf(schema, value);
  if (fields === null) return null;
  for (const [name, item] of Object.entries(value)) {
    const at = [...path, name];
    const field = fields.get(name);
    // The path comes from the sender, so it may be long.
    if (field === undefined) {
      const problem = name === '__proto__' ? 'is a reserved name: choose another' : notKnown(fields.keys());
      return inputProblem(at.join('.').slice(0, 200), problem);
    }
    const found = find(field, item, at);
    if (found !== null) return found;
  }
  return null;
}

/** The same schema for every key, except a name that zod's copy would lose. */
function contents(value: object, schema: z.core.$ZodType): Map<string, z.core.$ZodType> {
  return new Map(Object.keys(value).flatMap((name) => (name === '__proto__' ? [] : [[name, schema]])));
}

/** The schemas of an object's fields or an array's items. `null` for values that are taken as they are. */
function fieldsOf(schema: z.core.$ZodType, value: object): Map<string, z.core.$ZodType> | null {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
      return fieldsOf(def.innerType, value);
    case 'pipe':
      return fieldsOf(def.in, value);
    case 'object':
      return Array.isArray(value) ? null : new Map(Object.entries(def.shape));
    case 'array':
      return Array.isArray(value) ? new Map(value.map((_, i) => [String(i), def.element])) : null;
    case 'record':
      return contents(value, def.valueType);
    case 'lazy':
      // Free JSON, the only recursive schema.
      return contents(value, schema);
    case 'union': {
      const option = def.options.find((one) => z.safeParse(one, value).success);
      return option === undefined ? null : fieldsOf(option, value);
    }
    default:
      return null;
  }
}
