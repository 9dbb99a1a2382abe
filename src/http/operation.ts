/**
 * An operation of the API: its route, its schemas and its handler. The app and the OpenAPI document are made from
 * operations.
 */
import type { Client } from '@temporalio/client';
import type * as z from 'zod/mini';
import type { Sessions } from '../client/index.ts';
import type { CheckpointSaver } from '../contract/checkpoint.ts';
import type { ErrorCode } from '../contract/errors.ts';
import type { Principal, Role } from './principal.ts';

/** A checkpoint saver that may be able to end a running session when it deletes it. */
export type ServedSaver = Omit<CheckpointSaver, 'delete'> & {
  delete(threadId: string, options?: { end?: boolean }): Promise<void>;
};

export interface Backend {
  /** Temporal's client, in the namespace of the sessions. */
  client: Client;
  sessions: Sessions;
  saver: ServedSaver;
}

export interface QueryParameter {
  type: 'string' | 'integer' | 'boolean';
  description: string;
  /** Of an integer. */
  minimum?: number;
  maximum?: number;
  /** Of a string: what the operation itself checks, with its own error. */
  pattern?: string;
  maxLength?: number;
}

/** A request that was checked against its operation. */
export interface ApiRequest<Body> {
  /** A segment of the path, decoded. */
  param(name: string): string;
  /** A parameter of the query string, or `undefined`. */
  text(name: string): string | undefined;
  integer(name: string): number | undefined;
  flag(name: string): boolean;
  header(name: string): string | undefined;
  body: Body;
  principal: Principal;
  /** Aborted when the caller has gone or the server closes. */
  signal: AbortSignal;
  /** Reports an error that comes after the answer has begun, as the error of an answer is reported. */
  report(error: unknown): void;
}

/** One operation. */
export interface Operation<Body = unknown> {
  /** Unique: generated clients use it as a name. */
  id: string;
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** With `{name}` for segments that are parameters. */
  path: string;
  tag: 'threads' | 'sessions' | 'service';
  summary: string;
  description?: string;
  /** The role that the caller's token needs. `any`: no role. `null`: no token is needed. */
  role: Role | 'any' | null;
  /** The operation covers more than one session, and limits itself to the caller's tenant. */
  tenants?: true;
  /** Whether the body itself has a `by`, besides `message.by` and `edits.by`. All get the caller's name. */
  signs?: 'by' | 'message';
  query?: Readonly<Record<string, QueryParameter>>;
  /** The operation takes an `Idempotency-Key`. This text describes it. */
  idempotencyKey?: string;
  body?: z.ZodMiniType<Body>;
  answer: {
    status: 200 | 201 | 202 | 204;
    description: string;
    schema?: z.ZodMiniType<unknown>;
    /** Default: `application/json`. */
    mediaType?: string;
  };
  /** Codes besides those of every operation. */
  codes: readonly ErrorCode[];
  /** Returns JSON of its schema, or a response. */
  handle(request: ApiRequest<Body>, backend: Backend): Promise<unknown>;
}

/** Checks a handler against its body's type, and drops the type for the table. */
export function operation<Body = undefined>(definition: Operation<Body>): Operation {
  // Sound, because each handler gets what its own schema has accepted.
  return definition;
}
