import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { STATUS } from '../../src/http/errors.ts';
import { MemorySaver } from '../../src/index.ts';
import { openApi, type ServedApi } from './support/api.ts';

interface Parameter {
  description: string;
  name: string;
  in: string;
  required: boolean;
}
interface Documented {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: object;
  security?: object[];
  responses: Record<string, { description: string; content?: object }>;
}
interface Document {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Documented>>;
  components: { schemas: Record<string, { properties?: object }>; securitySchemes: object };
}

/** The role of each operation that does more than read. */
const ROLES: Readonly<Record<string, string>> = {
  startSession: 'talk',
  sendMessage: 'talk',
  editMessage: 'talk',
  withdrawMessage: 'talk',
  decideCall: 'decide',
  resolveCall: 'decide',
  putCheckpoint: 'operate',
  deleteThread: 'operate',
  putStep: 'operate',
  pauseSession: 'operate',
  resumeSession: 'operate',
  cancelSession: 'operate',
  editSession: 'operate',
  setBudget: 'operate',
  setPool: 'operate',
  forkSession: 'operate',
  rewindSession: 'operate',
};

let api: ServedApi;
let document: Document;
let operations: { method: string; path: string; of: Documented }[];
beforeAll(async () => {
  api = await openApi(new MemorySaver());
  document = (await api.call('GET /openapi.json')).body as unknown as Document;
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, of]) => ({ method: method.toUpperCase(), path, of })),
  );
});
afterAll(() => api.close());

test('every route of the app is in the document, and no other', () => {
  const documented = operations.map(({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`);
  expect(documented.length).toBeGreaterThanOrEqual(29);
  expect(documented.sort()).toEqual([...api.api.routes].sort());
});

test('the document is valid OpenAPI 3.1 to a validator of its schema, which refuses a spoiled one', async () => {
  const validator = new Validator();
  expect(await validator.validate({ ...structuredClone(document) })).toEqual({ valid: true });
  expect(validator.version).toBe('3.1');
  const spoiled = structuredClone(document);
  Object.assign(spoiled.paths['/sessions']?.['post'] ?? {}, { parameters: [{ name: 'id', in: 'nowhere' }] });
  expect(await new Validator().validate({ ...spoiled })).toMatchObject({ valid: false });
});

test('its schemas are valid JSON Schema of the dialect of OpenAPI 3.1, and each compiles', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  // That validator does not look into them.
  ajv.addSchema({ $id: 'openapi', components: document.components });
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect(ajv.validateSchema(schema), name).toBe(true);
    expect(ajv.compile({ $ref: `openapi#/components/schemas/${name}` })).toBeTypeOf('function');
  }
  expect(ajv.validateSchema({ ...document.components.schemas['Checkpoint'], type: 'record' })).toBe(false);
});

test('every reference resolves, and every schema is used', () => {
  const references = new Set<string>();
  JSON.stringify(document, (key, value: unknown) => {
    if (key === '$ref') references.add(String(value));
    return value;
  });
  const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  expect(names.length).toBeGreaterThanOrEqual(25);
  expect([...references].sort()).toEqual(names.sort());
});

test('every operation has its own id, its parameters and its answers', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(new Set(operations.map(({ of }) => of.operationId)).size).toBe(operations.length);
  for (const { method, path, of } of operations) {
    const role = ROLES[of.operationId] ?? (method === 'GET' ? 'read' : 'none');
    expect((of.parameters ?? []).filter(({ description }) => description === '')).toEqual([]);
    const inPath = (of.parameters ?? []).filter((parameter) => parameter.in === 'path');
    expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    expect(inPath.every(({ required }) => required)).toBe(true);
    expect(of.requestBody !== undefined, of.operationId).toBe(method === 'PUT' || method === 'POST');
    const statuses = Object.keys(of.responses);
    expect(statuses.filter((status) => status < '300')).toHaveLength(1);
    const open = path === '/healthz' || path === '/openapi.json';
    expect(of.security).toEqual(open ? [] : path === '/whoami' ? undefined : [{ token: [role] }]);
    expect(statuses.includes('401')).toBe(!open);
    for (const [status, { description, content }] of Object.entries(of.responses)) {
      expect(description).not.toBe('');
      expect(content === undefined).toBe(status === '204');
    }
  }
});

test('names every code beside the status that it has', () => {
  const told = new Set<string>();
  for (const { of } of operations) {
    for (const [status, { description }] of Object.entries(of.responses)) {
      if (status < '400') continue;
      for (const code of description.split(', ')) {
        expect(STATUS[code as keyof typeof STATUS], code).toBe(Number(status));
        told.add(code);
      }
    }
  }
  // These are answered where there is no operation, or are never told over HTTP.
  const others = ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED', 'FENCED', 'NOT_ATTEMPTED', 'UNKNOWN_AGENT'];
  expect([...told, ...others, 'INVALID_DEFINITION'].sort()).toEqual(Object.keys(STATUS).sort());
});

test('schemas say the words of the contract', () => {
  const { schemas } = document.components;
  expect(Object.keys(schemas['Checkpoint']?.properties ?? {})).toEqual([
    'id',
    'thread_id',
    'created_at',
    'state',
    'parent_id',
    'metadata',
  ]);
  expect(schemas['PutInput']).toMatchObject({
    type: 'object',
    properties: {
      state: { $ref: '#/components/schemas/JsonObject' },
      parent_id: { anyOf: [{ type: 'string', maxLength: 2_000 }, { type: 'null' }] },
    },
    required: ['state'],
  });
  expect(JSON.stringify(schemas['DecideInput'])).toContain('"approve"');
  expect(JSON.stringify(schemas)).not.toContain('__shared');
});
