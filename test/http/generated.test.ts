/** Requests that are made from the document: the server takes those that it allows, and no other. */
import '../core/seed.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DirectoryValues, MemorySaver } from '../../src/index.ts';
import { openApi, type ServedApi } from './support/api.ts';
import { allowed, changed, type Schema } from './support/generate.ts';

interface Documented {
  parameters?: { name: string; in: string; required: boolean; schema: Schema }[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
}
interface Document {
  paths: Record<string, Record<string, Documented>>;
  components: { schemas: Record<string, Schema> };
}

let folder: string;
let api: ServedApi;
let document: Document;
let ajv: Ajv2020;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'values-'));
  api = await openApi(new MemorySaver(), { values: new DirectoryValues(folder) });
  document = api.api.document as unknown as Document;
  ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openapi', components: document.components });
});
afterAll(async () => {
  await api.close();
  rmSync(folder, { recursive: true });
});

const resolve = (ref: string): Schema => document.components.schemas[ref.split('/').at(-1) ?? ''] ?? {};

/** By schema: a validator takes long to compile. */
const validators = new Map<Schema, (body: unknown) => boolean>();

/** Whether the document allows a body. */
function isAllowed(schema: Schema, body: unknown): boolean {
  const absolute = schema.$ref === undefined ? schema : { $ref: `openapi${schema.$ref}` };
  const validate = validators.get(schema) ?? ajv.compile<unknown>(absolute);
  validators.set(schema, validate);
  return validate(body);
}

/** A request, with the parameters of the path and the query in its URL. */
function requests({ parameters = [] }: Documented, method: string, path: string): fc.Arbitrary<string> {
  const values = (place: string): fc.Arbitrary<Record<string, unknown>> => {
    const of = parameters.filter((each) => each.in === place);
    const schemas = Object.fromEntries(of.map(({ name, schema }) => [name, allowed(schema, resolve)]));
    const requiredKeys = of.filter(({ required }) => required).map(({ name }) => name);
    return fc.record(schemas, { requiredKeys, noNullPrototype: true });
  };
  return fc.tuple(values('path'), values('query')).map(([inPath, inQuery]) => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(inPath[name])));
    const query = new URLSearchParams(inQuery as Record<string, string>);
    return `${method.toUpperCase()} ${filled}?${query.toString()}`;
  });
}

/** Gives a session that really starts an id that nobody else asks for. */
function own(body: unknown): void {
  const start = body as { id?: string } | undefined;
  if (start?.id !== undefined) start.id = `${prefix}${start.id}`.slice(0, 200).replace(/'$/, '');
}
const prefix = `generated-${process.pid}-${Date.now()}-`;

/** Statuses by which the server says that a request itself is wrong. */
const WRONG = [400, 413, 415, 422];
/** An update of an unknown session is answered after most of a second. */
const runsOf = (path: string): number => (path.startsWith('/threads') ? 100 : 20);

const OPERATIONS = [
  ['put', '/threads/{thread_id}/checkpoints'],
  ['get', '/threads/{thread_id}/checkpoints'],
  ['get', '/threads/{thread_id}/checkpoints/{checkpoint_id}'],
  ['delete', '/threads/{thread_id}'],
  ['put', '/threads/{thread_id}/steps/{key}'],
  ['get', '/threads/{thread_id}/steps'],
  ['post', '/sessions'],
  ['get', '/sessions'],
  ['get', '/sessions/{id}'],
  ['get', '/sessions/{id}/transcript'],
  ['get', '/sessions/{id}/calls'],
  ['get', '/sessions/{id}/values/{digest}'],
  ['post', '/sessions/{id}/messages'],
  ['post', '/sessions/{id}/calls/{call_id}/decision'],
  ['post', '/sessions/{id}/calls/{call_id}/resolution'],
  ['post', '/sessions/{id}/pause'],
  ['post', '/sessions/{id}/resume'],
  ['post', '/sessions/{id}/cancel'],
  ['post', '/sessions/{id}/edit'],
  ['put', '/sessions/{id}/budget'],
  ['post', '/sessions/{id}/fork'],
  ['post', '/sessions/{id}/rewind'],
] as const;

test.each(OPERATIONS)('what the document allows is not refused: %s %s', async (method, path) => {
  const of = document.paths[path]?.[method] ?? {};
  const schema = of.requestBody?.content['application/json'].schema;
  const bodies = schema === undefined ? fc.constant(undefined) : allowed(schema, resolve);
  await fc.assert(
    fc.asyncProperty(requests(of, method, path), bodies, async (route, json) => {
      if (path === '/sessions') own(json);
      if (schema !== undefined) expect(isAllowed(schema, json)).toBe(true);
      const { status, code, message } = await api.call(route, json === undefined ? {} : { json });
      // Whether there is such a checkpoint is a matter of state.
      if (code === 'INVALID_ARGUMENT' && / is not a checkpoint of thread /.test(message)) return;
      expect(WRONG, `${status} ${code}: ${message}`).not.toContain(status);
      expect(status, message).not.toBe(500);
    }),
    { numRuns: runsOf(path) },
  );
});

test.each(OPERATIONS.filter(([method]) => method === 'put' || method === 'post'))(
  'what the document does not allow is refused: %s %s',
  async (method, path) => {
    const of = document.paths[path]?.[method] ?? {};
    const schema = of.requestBody?.content['application/json'].schema ?? {};
    const bodies = allowed(schema, resolve)
      .chain(changed)
      .filter((body) => !isAllowed(schema, body));
    await fc.assert(
      fc.asyncProperty(requests(of, method, path), bodies, async (route, json) => {
        const { status, code } = await api.call(route, { json });
        expect({ status, code }).toEqual({ status: 400, code: 'INVALID_ARGUMENT' });
      }),
      { numRuns: runsOf(path) },
    );
  },
);
