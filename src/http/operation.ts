/** What an operation of the API is: its route, its shapes, and what it does. The app and the document are made of these. */
import type { Client } from '@temporalio/client';
import type * as z from 'zod/mini';
import type { Sessions } from '../client/index.ts';
import type { CheckpointSaver } from '../contract/checkpoint.ts';
import type { ErrorCode } from '../contract/errors.ts';

/** A checkpoint saver, of which some can end a running session when it is deleted. */
export type ServedSaver = Omit<CheckpointSaver, 'delete'> & {
  delete(threadId: string, options?: { end?: boolean }): Promise<void>;
};

/** What operations work with. */
export interface Backend {
  /** Temporal's client, of the namespace in which the sessions are. */
  client: Client;
  sessions: Sessions;
  saver: ServedSaver;
}

/** A parameter of the query string. */
export interface QueryParameter {
  type: 'string' | 'integer' | 'boolean';
  description: string;
  /** Of an integer. */
  minimum?: number;
  maximum?: number;
  /** Of a string: what the operation refuses otherwise, in words of its own. */
  pattern?: string;
  maxLength?: number;
}

/** A request that has been checked against its operation. */
export interface ApiRequest<Body> {
  /** A segment of the path, decoded. */
  param(name: string): string;
  /** A parameter of the query string, or `undefined`; its type is the operation's. */
  text(name: string): string | undefined;
  integer(name: string): number | undefined;
  flag(name: string): boolean;
  header(name: string): string | undefined;
  body: Body;
  /** Aborted when the caller has gone or the server closes. */
  signal: AbortSignal;
}

/** One operation. */
export interface Operation<Body = unknown> {
  /** Unique; what generated clients call it. */
  id: string;
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** With `{name}` for segments that are parameters. */
  path: string;
  tag: 'threads' | 'sessions' | 'service';
  summary: string;
  description?: string;
  /** Without a token. */
  open?: true;
  query?: Readonly<Record<string, QueryParameter>>;
  /** Takes an `Idempotency-Key`; says what it is used for. */
  idempotencyKey?: string;
  body?: z.ZodMiniType<Body>;
  answer: {
    status: 200 | 201 | 202 | 204;
    description: string;
    schema?: z.ZodMiniType<unknown>;
    /** Default: `application/json`. */
    mediaType?: string;
  };
  /** Codes that it may answer, besides those that every operation may. */
  codes: readonly ErrorCode[];
  /** Answers with JSON of its schema, or with a response that is ready. */
  handle(request: ApiRequest<Body>, backend: Backend): Promise<unknown>;
}

/** Checks an operation's handler against its body, and forgets the type for the table. */
export function operation<Body = undefined>(definition: Operation<Body>): Operation {
  // Sound because the app gives each handler what its own schema has accepted.
  return definition;
}
