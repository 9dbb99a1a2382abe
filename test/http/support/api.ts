/** The API on a socket, and callers of it; every answer is held against the shape that the document promises. */
import { Client, type ClientInterceptors, Connection } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { inject } from 'vitest';
import {
  createHttpApi,
  type HttpApi,
  type HttpApiOptions,
  hostsOf,
  type ServedSaver,
  serveHttp,
} from '../../../src/http/index.ts';
import { inspectionOperations } from '../../../src/http/inspection.ts';
import type { Operation } from '../../../src/http/operation.ts';
import { poolOperations } from '../../../src/http/pools.ts';
import { sessionOperations } from '../../../src/http/sessions.ts';
import { errorSchema } from '../../../src/http/shapes.ts';
import { threadOperations } from '../../../src/http/threads.ts';
import { Sessions, type ValueStore } from '../../../src/index.ts';

const token = 'the-token-of-the-tests';

/** An answer. */
export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
  /** The error's code, or `undefined`. */
  readonly code: string | undefined;
  /** The error's message, or an empty text. */
  readonly message: string;
}

/** What is sent. */
export interface Sent {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  raw?: string | Uint8Array;
  headers?: Record<string, string>;
}

/** A running API. */
export interface ServedApi {
  readonly url: string;
  readonly token: string;
  readonly api: HttpApi;
  /** What was answered with `INTERNAL`; what is left here at the end fails the tests. */
  readonly unexpected: unknown[];
  call<T = Record<string, unknown>>(route: string, sent?: Sent): Promise<Answer<T>>;
  close(): Promise<void>;
}

/** What of the document tells which errors an operation answers. */
interface Promised {
  paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>;
}

const OPERATIONS = [...threadOperations, ...sessionOperations, ...inspectionOperations, ...poolOperations];

/** Serves the API on a free port; whoever opens it closes it. */
export async function openApi(
  saver: ServedSaver,
  {
    taskQueue = 'http',
    interceptors = {},
    codec,
    values,
    access = {},
  }: {
    taskQueue?: string;
    interceptors?: ClientInterceptors;
    codec?: PayloadCodec;
    values?: ValueStore;
    access?: Partial<HttpApiOptions>;
  } = {},
): Promise<ServedApi> {
  const { address, namespace } = inject('temporal');
  const connection = await Connection.connect({ address });
  const client = new Client({
    connection,
    namespace,
    interceptors,
    ...(codec !== undefined && { dataConverter: { payloadCodecs: [codec] } }),
  });
  const unexpected: unknown[] = [];
  const hosts = hostsOf('127.0.0.1');
  const api = createHttpApi({
    client,
    sessions: new Sessions(client, { taskQueue, values }),
    saver,
    token,
    ...access,
    ...(hosts === undefined ? {} : { hosts }),
    onError: (error) => unexpected.push(error),
  });
  const server = await serveHttp(api, { host: '127.0.0.1', port: 0 });
  return {
    url: server.url,
    token,
    api,
    unexpected,
    call: (route, sent) => call(server.url, route, sent),
    close: async () => {
      await server.close();
      await connection.close();
      if (unexpected.length > 0) throw new AggregateError(unexpected, 'unexpected errors of the API');
    },
  };
}

async function call<T>(url: string, route: string, { json, raw, headers }: Sent = {}): Promise<Answer<T>> {
  const [method = '', path = ''] = route.split(' ');
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(raw === undefined ? {} : { body: raw }),
  });
  const text = await response.text();
  const body: unknown = text === '' ? undefined : JSON.parse(text);
  const error = response.ok ? undefined : errorSchema.parse(body).error;
  if (error === undefined) checkShape(method, path, response.status, body);
  else await checkCode(url, method, path, response.status, error.code);
  return {
    status: response.status,
    headers: response.headers,
    body: body as T,
    code: error?.code,
    message: error?.message ?? '',
  };
}

function checkShape(method: string, path: string, status: number, body: unknown): void {
  const found = OPERATIONS.find((operation) => operation.method === method && matches(operation, path));
  if (found === undefined) return;
  if (found.answer.status !== status) throw new Error(`${found.id} answered ${status}`);
  found.answer.schema?.parse(body);
}

/** An error that an operation answers is among those that the document promises of it. */
async function checkCode(
  url: string,
  method: string,
  path: string,
  status: number,
  code: string,
): Promise<void> {
  const found = OPERATIONS.find((operation) => operation.method === method && matches(operation, path));
  // What the app itself refuses reaches no operation.
  if (found === undefined || code === 'ROUTE_NOT_FOUND') return;
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Promised;
  const promised = paths[found.path]?.[method.toLowerCase()]?.responses[status]?.description ?? '';
  if (!promised.split(', ').includes(code)) throw new Error(`${found.id} answered ${code}`);
}

function matches({ path: template }: Operation, path: string): boolean {
  const [pathname = ''] = path.split('?');
  const [wanted, given] = [template.split('/'), pathname.split('/')];
  return (
    wanted.length === given.length && wanted.every((part, i) => part.startsWith('{') || part === given[i])
  );
}
