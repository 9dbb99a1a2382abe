/** Forms for the arguments of a tool, made from its JSON schema. */

type Schema = Readonly<Record<string, unknown>>;

/** A field of a form. */
export interface Field {
  name: string;
  kind: 'text' | 'number' | 'integer' | 'boolean' | 'choice';
  required: boolean;
  description: string;
  choices: readonly string[];
  /** What the field shows at first. */
  initial: string;
}

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields for arguments with a schema; `null` when a form cannot show all of it: then the page shows JSON. */
export function fieldsOf(schema: unknown, args: unknown): Field[] | null {
  if (!isObject(schema) || schema['type'] !== 'object' || !isObject(schema['properties']) || !isObject(args))
    return null;
  const { properties } = schema;
  if (['allOf', 'anyOf', 'oneOf', 'not', 'if', '$ref'].some((key) => key in schema)) return null;
  // Arguments that the schema does not name would be lost.
  if (Object.keys(args).some((name) => !Object.hasOwn(properties, name))) return null;
  const required = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : [];
  const fields: Field[] = [];
  for (const [name, property] of Object.entries(properties)) {
    const field = fieldOf(name, property, args[name], required.includes(name));
    if (field === null) return null;
    fields.push(field);
  }
  return fields.length === 0 ? null : fields;
}

function fieldOf(name: string, property: unknown, value: unknown, required: boolean): Field | null {
  if (!isObject(property)) return null;
  const { type, description } = property;
  const options: unknown = property['enum'];
  const common = {
    name,
    required,
    description: typeof description === 'string' ? description : '',
    choices: [],
    initial: typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value),
  };
  const fits = (wanted: string): boolean => value === undefined || typeof value === wanted;
  if (Array.isArray(options)) {
    const texts = options.every((option): option is string => typeof option === 'string');
    return texts && fits('string') ? { ...common, kind: 'choice', choices: options } : null;
  }
  if (type === 'string' && fits('string')) return { ...common, kind: 'text' };
  if ((type === 'number' || type === 'integer') && fits('number')) return { ...common, kind: type };
  return type === 'boolean' && fits('boolean') ? { ...common, kind: 'boolean' } : null;
}

/** The arguments of a filled-in form. An optional field that is empty, and was not given before, is left out. */
export function argsOf(
  fields: readonly Field[],
  texts: ReadonlyMap<string, string>,
): Record<string, unknown> {
  const args: Record<string, unknown> = {};
  for (const { name, kind, required, initial } of fields) {
    const text = texts.get(name) ?? initial;
    if (text === '' && !required && (initial === '' || kind !== 'text')) continue;
    const value =
      kind === 'boolean' ? text === 'true' : kind === 'number' || kind === 'integer' ? Number(text) : text;
    Object.defineProperty(args, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return args;
}
