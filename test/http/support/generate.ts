/** Requests from an OpenAPI document: some that it allows, and some that it refuses. */
import fc from 'fast-check';

/** A JSON Schema, as far as the document uses it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
}

/** JSON without what a description excludes: integers beyond 2^53, -0 and the key `__proto__`. */
const json = fc
  .jsonValue({ maxDepth: 3 })
  .filter((value) => !/__proto__|-0\b|[{[,:\s]-?\d{16,}|^-?\d{16,}/.test(JSON.stringify(value)));

/** Values that a schema allows. */
export function allowed(schema: Schema, resolve: (ref: string) => Schema): fc.Arbitrary<unknown> {
  const of = (inner: Schema): fc.Arbitrary<unknown> => allowed(inner, resolve);
  if (schema.$ref !== undefined) return of(resolve(schema.$ref));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const options = schema.oneOf ?? schema.anyOf;
  if (options !== undefined) return fc.oneof(...options.map(of));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type) => of({ ...schema, type })));
  const { minimum: min, maximum: max } = schema;
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: min ?? -1_000, max: max ?? 1_000_000 });
    case 'number':
      return fc.double({ min: min ?? -1e6, max: max ?? 1e6, noNaN: true }).map((value) => value + 0);
    case 'string':
      return text(schema);
    case 'array':
      return fc.array(of(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object': {
      const { properties, additionalProperties } = schema;
      const values = typeof additionalProperties === 'object' ? of(additionalProperties) : json;
      if (properties === undefined)
        return fc.dictionary(
          fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
          values,
          {
            maxKeys: 3,
            noNullPrototype: true,
          },
        );
      const fields = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, of(field)]));
      return fc.record(fields, { requiredKeys: schema.required ?? [], noNullPrototype: true });
    }
    default:
      return json;
  }
}

function text({ minLength, maxLength, pattern, format }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') {
    const between = { min: new Date(0), max: new Date(4e12), noInvalidDate: true };
    return fc.date(between).map((date) => date.toISOString());
  }
  const long = Math.min(maxLength ?? 40, 3_000);
  const lengths = { minLength: minLength ?? 0, maxLength: long };
  const all = fc.oneof(
    fc.string(lengths),
    fc.string({ ...lengths, maxLength: Math.min(long, 20), unit: 'binary' }),
    ...(maxLength === undefined ? [] : [fc.constant('x'.repeat(maxLength))]),
    fc
      .constantFrom('x', "it's", '..', 'effect:x', 'msg_1', 'a b', '"', 'perdure-thread/x')
      .filter((each) => each.length <= long),
  );
  if (pattern !== undefined && !/\(\?[!=]/.test(pattern)) return fc.stringMatching(new RegExp(pattern));
  return pattern === undefined ? all : all.filter((value) => new RegExp(pattern, 'u').test(value));
}

/** One change to a value: a property removed or added, or a value replaced by one of another type or size. */
export function changed(value: unknown): fc.Arbitrary<unknown> {
  const odd = fc.constantFrom<unknown>(null, true, -1, 0.5, '', 'x'.repeat(20_000), [], {}, [null], { x: 1 });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return odd;
  const entries = Object.entries(value);
  return fc.oneof(
    odd,
    odd.map((more) => ({ ...value, unheardOf: more })),
    ...entries.flatMap(([name, inner]) => [
      fc.constant(Object.fromEntries(entries.filter(([key]) => key !== name))),
      changed(inner).map((other) => ({ ...value, [name]: other })),
    ]),
  );
}
