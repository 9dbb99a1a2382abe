/** The checkpoint saver over HTTP. */

import * as z from 'zod/mini';
import { wholeCheckpoint } from '../checkpoints/index.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { isPerdureError, PerdureError, UNANSWERED } from '../contract/errors.ts';
import { type JsonObject, type JsonValue, jsonSize } from '../contract/json.ts';
import { WORKFLOW } from '../contract/names.ts';
import { inPages } from '../saver/pages.ts';
import { findExecution } from '../temporal/executions.ts';
import { checkId } from '../thread/checks.ts';
import { named } from './access.ts';
import {
  type ApiRequest,
  type Backend,
  type Operation,
  operation,
  type QueryParameter,
} from './operation.ts';
import { addressable, idempotencyKey } from './request.ts';
import { checkpointSchema, jsonObject, jsonValue, noted, STORED_ID, stepSchema } from './shapes.ts';

/** Checkpoints of one answer: by default, and at most. */
const PAGE = { usual: 10, most: 100 } as const;
/**
 * Bytes of JSON at which an answer ends early: a page of large items could exceed the engine's longest string. A single
 * item may be larger.
 */
const ANSWER_BYTES = 32_000_000;

interface PutBody {
  state: JsonObject;
  parent_id?: string | null | undefined;
  metadata?: JsonObject | undefined;
  id?: string | undefined;
}

export const putBodySchema: z.ZodMiniType<PutBody> = z.object({
  state: jsonObject,
  parent_id: z.optional(z.nullable(noted(STORED_ID))),
  metadata: z.optional(jsonObject),
  id: z.optional(noted(STORED_ID)),
});

export const stepBodySchema: z.ZodMiniType<{ value: JsonValue }> = z.object({ value: jsonValue });

const BEFORE: QueryParameter = {
  type: 'string',
  ...STORED_ID,
  description: 'Only checkpoints stored strictly before the one of this id. An unknown id: none.',
};
const LIMIT: QueryParameter = {
  type: 'integer',
  maximum: PAGE.most,
  description: `At most this many. Default: ${PAGE.usual}. 0 or less: none. Large checkpoints make a page shorter.`,
};
const AFTER: QueryParameter = {
  type: 'string',
  description: 'Only steps with a key after this one, in the order of UTF-16 units.',
};

const WHOLE: QueryParameter = {
  type: 'boolean',
  description:
    'Of a session over several runs: also the messages and calls of earlier runs. Default: false. Then `state.past` says ' +
    'how many there are.',
};

/** Where the next page begins. `null` at the end. */
const next = z.nullable(z.string());

/** As many items as fit into an answer, at least one. */
async function fitting<T>(all: AsyncIterable<T> | Iterable<T>): Promise<{ items: T[]; isCut: boolean }> {
  const items: T[] = [];
  let bytes = 0;
  for await (const item of all) {
    bytes += jsonSize(item);
    if (items.length > 0 && bytes > ANSWER_BYTES) return { items, isCut: true };
    items.push(item);
  }
  return { items, isCut: false };
}

/** The checkpoint as the request asks for it. */
function asked(request: ApiRequest<unknown>, { client }: Backend, found: Checkpoint): Promise<Checkpoint> {
  return request.flag('whole') ? wholeCheckpoint(client, found) : Promise.resolve(found);
}

function id(request: ApiRequest<unknown>, name: string): string {
  const value = request.param(name);
  checkId(name, value);
  return value;
}

export const threadOperations: readonly Operation[] = [
  operation<PutBody>({
    id: 'putCheckpoint',
    method: 'PUT',
    path: '/threads/{thread_id}/checkpoints',
    tag: 'threads',
    role: 'operate',
    summary: 'Store a checkpoint',
    description:
      'When it answers, the checkpoint is as durable as the saver is. Without an id, each request stores a new ' +
      'record. With an id, a repeated request stores nothing and gets the same answer: repeat it after a 5xx or no ' +
      'answer. If the thread is a session, this edits the session between turns: without an id, with metadata ' +
      '{by, reason}, and once for each parent_id.',
    idempotencyKey: 'The id of the record, not for a session. The same as the id in the body.',
    body: putBodySchema,
    answer: { status: 200, description: 'The stored record', schema: checkpointSchema },
    codes: [
      'CONFLICT',
      'SESSION_NOT_FOUND',
      'SESSION_BUSY',
      'SESSION_CLOSED',
      'SESSION_FULL',
      ...UNANSWERED,
      'CHECKPOINT_CORRUPTION',
    ],
    handle: async (request, { client, saver }) => {
      const { state, parent_id, id: given } = request.body;
      const { principal } = request;
      const threadId = id(request, 'thread_id');
      const edits =
        principal.name !== null && (await findExecution(client, threadId))?.type === WORKFLOW.session;
      // On a session, the metadata says who edits it. On a thread, it is the caller's own data.
      const metadata = edits
        ? named(request.body.metadata ?? {}, 'metadata.by', principal)
        : request.body.metadata;
      if (typeof parent_id === 'string') checkId('parent_id', parent_id);
      const options = { parentId: parent_id, metadata, id: addressable(idempotencyKey(request, given)) };
      return saver.put(threadId, state, options).catch((error: unknown) => {
        throw ofParent(error);
      });
    },
  }),
  operation({
    id: 'listCheckpoints',
    method: 'GET',
    path: '/threads/{thread_id}/checkpoints',
    tag: 'threads',
    role: 'read',
    summary: 'List checkpoints, newest first',
    query: { before: BEFORE, limit: LIMIT },
    answer: {
      status: 200,
      description:
        'The checkpoints, empty for an unknown thread. With `next`, there may be more: pass it as `before`. An answer ' +
        'ends early at 32 MB.',
      schema: z.object({ items: z.array(checkpointSchema), next }),
    },
    codes: [...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, { saver }) => {
      const before = request.text('before');
      if (before !== undefined) checkId('before', before);
      const limit = request.integer('limit') ?? PAGE.usual;
      const options = { before, limit, first: PAGE.usual };
      const { items, isCut } = await fitting(inPages(saver, id(request, 'thread_id'), options));
      return { items, next: isCut || items.length === limit ? (items.at(-1)?.id ?? null) : null };
    },
  }),
  operation({
    id: 'getLatestCheckpoint',
    method: 'GET',
    path: '/threads/{thread_id}/latest',
    tag: 'threads',
    role: 'read',
    summary: 'The latest checkpoint',
    query: { whole: WHOLE },
    answer: { status: 200, description: 'The checkpoint that was stored last', schema: checkpointSchema },
    codes: ['CHECKPOINT_NOT_FOUND', ...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, backend) => {
      const threadId = id(request, 'thread_id');
      const found = await backend.saver.get(threadId);
      return asked(request, backend, found ?? notFound(`Thread ${threadId} has no checkpoint`));
    },
  }),
  operation({
    id: 'getCheckpoint',
    method: 'GET',
    path: '/threads/{thread_id}/checkpoints/{checkpoint_id}',
    tag: 'threads',
    role: 'read',
    summary: 'One checkpoint',
    query: { whole: WHOLE },
    answer: { status: 200, description: 'The checkpoint', schema: checkpointSchema },
    codes: ['CHECKPOINT_NOT_FOUND', ...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, backend) => {
      const threadId = id(request, 'thread_id');
      const checkpointId = id(request, 'checkpoint_id');
      const found = await backend.saver.get(threadId, { checkpointId });
      const message = `Thread ${threadId} has no checkpoint ${checkpointId}. The latest: GET /threads/{thread_id}/latest`;
      return asked(request, backend, found ?? notFound(message));
    },
  }),
  operation({
    id: 'deleteThread',
    method: 'DELETE',
    path: '/threads/{thread_id}',
    tag: 'threads',
    role: 'operate',
    summary: "Remove a thread's checkpoints and steps",
    description:
      'For an unknown thread it does nothing. A session is removed with its whole history and its sub-agents.',
    query: {
      end: {
        type: 'boolean',
        description:
          'End a running session without waiting for calls in flight. Default: false, which refuses.',
      },
    },
    answer: { status: 204, description: 'It is removed' },
    codes: ['CONFLICT', 'SESSION_BUSY', ...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, { saver }) => {
      const end = request.flag('end');
      await saver.delete(id(request, 'thread_id'), end ? { end } : {});
    },
  }),
  operation<{ value: JsonValue }>({
    id: 'putStep',
    method: 'PUT',
    path: '/threads/{thread_id}/steps/{key}',
    tag: 'threads',
    role: 'operate',
    summary: 'Store a step; the same key overwrites',
    body: stepBodySchema,
    answer: { status: 200, description: 'The stored step', schema: stepSchema },
    codes: ['CONFLICT', ...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: (request, { saver }) =>
      saver.putStep(id(request, 'thread_id'), id(request, 'key'), request.body.value),
  }),
  operation({
    id: 'getStep',
    method: 'GET',
    path: '/threads/{thread_id}/steps/{key}',
    tag: 'threads',
    role: 'read',
    summary: 'One step',
    answer: { status: 200, description: 'The step', schema: stepSchema },
    codes: ['STEP_NOT_FOUND', ...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, { saver }) => {
      const threadId = id(request, 'thread_id');
      const key = id(request, 'key');
      const found = await saver.getStep(threadId, key);
      if (found !== null) return found;
      throw new PerdureError('STEP_NOT_FOUND', `Thread ${threadId} has no step ${key}`);
    },
  }),
  operation({
    id: 'listSteps',
    method: 'GET',
    path: '/threads/{thread_id}/steps',
    tag: 'threads',
    role: 'read',
    summary: 'All steps, by key',
    query: { after: AFTER },
    answer: {
      status: 200,
      description:
        'The steps; an unknown thread has none. An answer ends early at 32 MB. With `next`, there are more: pass it as `after`.',
      schema: z.object({ items: z.array(stepSchema), next }),
    },
    codes: [...UNANSWERED, 'CHECKPOINT_CORRUPTION'],
    handle: async (request, { saver }) => {
      const after = request.text('after');
      const steps = await saver.listSteps(id(request, 'thread_id'));
      const { items, isCut } = await fitting(
        after === undefined ? steps : steps.filter(({ key }) => key > after),
      );
      return { items, next: isCut ? (items.at(-1)?.key ?? null) : null };
    },
  }),
];

/** Renames the saver's field to its name on the wire. */
function ofParent(error: unknown): unknown {
  if (!isPerdureError(error) || error.details['field'] !== 'parentId') return error;
  const details = { ...error.details, field: 'parent_id' };
  return new PerdureError(error.code, error.message, { details, cause: error });
}

function notFound(message: string): never {
  throw new PerdureError('CHECKPOINT_NOT_FOUND', message);
}
