/** The OpenAPI 3.1 document, generated from the operations and their schemas. */
import packageJson from 'perdure/package.json' with { type: 'json' };
import * as z from 'zod/mini';
import type { ErrorCode } from '../contract/errors.ts';
import { defined, type JsonObject, type JsonValue } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { NAMED } from './answers.ts';
import { STATUS } from './errors.ts';
import type { Operation } from './operation.ts';
import { SESSION_BODIES } from './session-shapes.ts';
import { notes, STORED, STORED_ID } from './shapes.ts';
import { putBodySchema, stepBodySchema } from './threads.ts';

/** Codes of every operation, of those with a token, of those on a session or thread, and of those with a body. */
const ALWAYS: readonly ErrorCode[] = ['INVALID_ARGUMENT', 'HOST_NOT_ALLOWED', 'INTERNAL'];
const WITH_TOKEN: readonly ErrorCode[] = ['UNAUTHORIZED', 'FORBIDDEN', 'SERVER_UNAVAILABLE'];
const WITH_SESSION: readonly ErrorCode[] = ['SESSION_NOT_FOUND'];
const WITH_BODY: readonly ErrorCode[] = ['NOT_JSON', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

const PARAMETERS: Readonly<Record<string, string>> = {
  thread_id: 'The thread: any text of at most 2,000 characters, percent-encoded.',
  checkpoint_id: 'The id of the checkpoint.',
  key: "The step's key: any text of at most 2,000 characters, percent-encoded.",
  id: "The session's id.",
  call_id: 'The id of the call, as in the tool-call log.',
  message_id: 'The id of the message, as in the queue.',
  pool: 'The id of the pool.',
  digest: 'The digest of the value.',
};

const PATH_TEXT: Readonly<Record<string, { pattern: string; maxLength?: number }>> = {
  thread_id: STORED_ID,
  checkpoint_id: STORED_ID,
  key: STORED_ID,
  id: { pattern: STORED, maxLength: LIMIT.sessionId },
  call_id: { pattern: STORED },
  digest: { pattern: '^[0-9a-f]{64}$' },
};

const JSON_NOTE =
  'Any JSON value of at most 200 levels, without integers beyond 2^53 - 1, -0 and the key __proto__.';

/** The JSON Schemas of all bodies. */
class Schemas {
  readonly #names = new Map<z.ZodMiniType<unknown>, string>();
  readonly components: Record<string, JsonObject>;

  constructor(operations: readonly Operation[]) {
    const registry = z.registry<{ id: string }>();
    const add = (name: string, schema: z.ZodMiniType<unknown>): void => {
      if (this.#names.has(schema)) return;
      this.#names.set(schema, name);
      registry.add(schema, { id: name });
    };
    const named = [['PutInput', putBodySchema], ['StepInput', stepBodySchema], ...SESSION_BODIES, ...NAMED];
    for (const [name, schema] of named as typeof NAMED) add(name, schema);
    for (const { id, answer } of operations) {
      if (answer.schema !== undefined) add(`${id[0]?.toUpperCase()}${id.slice(1)}Result`, answer.schema);
    }
    const generated = z.toJSONSchema(registry, {
      uri: (name) => `#/components/schemas/${name}`,
      io: 'input',
      unrepresentable: 'any',
      metadata: notes,
    });
    // Zod shares its recursive JSON schemas, one for each place. All mean the same.
    const text = JSON.stringify(generated.schemas).replace(
      /"#\/components\/schemas\/__shared#[^"]*"/g,
      '"#/components/schemas/JsonValue"',
    );
    const { __shared: _, ...schemas } = JSON.parse(text, withoutSafeBounds) as Record<string, JsonObject>;
    for (const schema of Object.values(schemas)) {
      delete schema['$schema'];
      delete schema['$id'];
    }
    this.components = { ...schemas, JsonValue: { description: JSON_NOTE } };
    for (const { body } of operations) if (body !== undefined) this.#close(this.ref(body), new Set());
  }

  /** Closes the objects of request bodies: the server refuses other properties. */
  #close(schema: JsonValue | undefined, seen: Set<JsonValue>): void {
    if (typeof schema !== 'object' || schema === null || seen.has(schema)) return;
    seen.add(schema);
    if (Array.isArray(schema)) {
      for (const item of schema) this.#close(item, seen);
      return;
    }
    const { $ref, properties } = schema;
    if (typeof $ref === 'string') this.#close(this.components[$ref.split('/').at(-1) ?? ''], seen);
    if (properties !== undefined) schema['additionalProperties'] ??= false;
    for (const inner of Object.values(schema)) this.#close(inner, seen);
  }

  ref(schema: z.ZodMiniType<unknown>): JsonObject {
    return { $ref: `#/components/schemas/${this.#names.get(schema) ?? ''}` };
  }
}

/** Leaves out the bounds that every integer has. */
function withoutSafeBounds(key: string, value: unknown): unknown {
  const bound = key === 'minimum' || key === 'maximum';
  return bound && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value;
}

export function describeApi(operations: readonly Operation[]): JsonObject {
  const schemas = new Schemas(operations);
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const { path, method } = operation;
    const methods = paths[path] ?? {};
    paths[path] = methods;
    methods[method.toLowerCase()] = describeOperation(operation, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Perdure',
      version: packageJson.version,
      description: 'Durable agent sessions on Temporal, and a durable store of checkpoints for any harness.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'threads', description: 'Checkpoints and steps of threads' },
      { name: 'sessions', description: 'Agent sessions' },
      { name: 'service', description: 'The service itself' },
    ],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token of this server, or a JWT of its identity provider. Operations name the role it needs.',
        },
      },
    },
  };
}

function describeOperation(operation: Operation, schemas: Schemas): JsonObject {
  const { id, tag, summary, description, role, path, query = {}, idempotencyKey, body, answer } = operation;
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) =>
      parameter('path', name, PARAMETERS[name], { type: 'string', ...PATH_TEXT[name] }),
    ),
    ...Object.entries(query).map(([name, { description: about, ...schema }]) =>
      parameter('query', name, about, { ...schema }),
    ),
    ...(idempotencyKey === undefined ? [] : [parameter('header', 'Idempotency-Key', idempotencyKey)]),
  ];
  const content = answer.schema === undefined ? {} : schemas.ref(answer.schema);
  const mediaType = answer.mediaType ?? 'application/json';
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...defined({ description }),
    // The names in this list are roles.
    ...(role === 'any' ? {} : { security: role === null ? [] : [{ token: [role] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { 'application/json': { schema: schemas.ref(body) } },
          },
        }),
    responses: {
      [answer.status]: {
        description: answer.description,
        ...(answer.status === 204 ? {} : { content: { [mediaType]: { schema: content } } }),
      },
      ...errorResponses(operation),
    },
  };
}

function parameter(
  place: 'path' | 'query' | 'header',
  name: string,
  description = '',
  schema: JsonObject = { type: 'string' },
): JsonObject {
  return { name, in: place, required: place === 'path', description, schema };
}

/** One answer for each status, naming its codes. */
function errorResponses({ codes, body, role, path }: Operation): JsonObject {
  const all = [
    ...ALWAYS,
    ...(role === null ? [] : WITH_TOKEN),
    ...(/\{(id|thread_id)\}/.test(path) ? WITH_SESSION : []),
    ...(body === undefined ? [] : WITH_BODY),
    ...codes,
  ];
  const byStatus = new Map<number, Set<ErrorCode>>();
  for (const code of all) byStatus.set(STATUS[code], (byStatus.get(STATUS[code]) ?? new Set()).add(code));
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [String(status), { description: [...names].join(', '), content }]),
  );
}
