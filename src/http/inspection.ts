/** Looking at sessions over HTTP. */
import * as z from 'zod/mini';
import type { SessionSummary } from '../client/index.ts';
import type { ErrorCode } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { MEDIA_TYPE } from '../contract/values.ts';
import type { PageInput } from '../contract/views.ts';
import { ofOtherTenant } from './access.ts';
import {
  budgetViewSchema,
  callsPageSchema,
  inboxSchema,
  modelViewSchema,
  planStepSchema,
  queuedMessageSchema,
  sessionViewSchema,
  transcriptPageSchema,
} from './answers.ts';
import { callDetailSchema, pendingCallSchema } from './call-answers.ts';
import { type ApiRequest, type Operation, operation, type QueryParameter } from './operation.ts';
import { SEARCHABLE } from './shapes.ts';
import { streamOperation } from './stream.ts';
import { undoPlanSchema } from './undo.ts';

const CODES: readonly ErrorCode[] = [
  'SESSION_NOT_FOUND',
  'CHECKPOINT_CORRUPTION',
  'ENCRYPTED',
  'UNKNOWN_KEY',
];

const PAGE: Readonly<Record<string, QueryParameter>> = {
  before: { type: 'integer', minimum: 0, description: 'Only entries before this index. Default: the end.' },
  limit: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000,
    description: 'At most this many. Default: 50. Large entries make a page shorter.',
  },
};

const summarySchema: z.ZodMiniType<SessionSummary> = z.object({
  id: z.string(),
  agent: z.nullable(z.string()),
  status: z.string(),
  tenant: z.nullable(z.string()),
  taskQueue: z.string(),
  startedAt: z.string(),
  closedAt: z.nullable(z.string()),
});

/** Filters of sessions. */
const FILTERS = {
  agent: { type: 'string', pattern: SEARCHABLE, description: 'Only of this agent' },
  tenant: { type: 'string', pattern: SEARCHABLE, description: 'Only of this tenant' },
} as const;

export const inspectionOperations: readonly Operation[] = [
  operation({
    id: 'getInbox',
    method: 'GET',
    path: '/inbox',
    tag: 'sessions',
    role: 'read',
    tenants: true,
    summary: 'Everything that waits for a person, what expires first comes first',
    description:
      'Approvals, calls with an unknown outcome, missing tools, budgets and other waits of all sessions, with what each ' +
      'answer would do. It can lag by a second. `waiting` counts the sessions that wait, and `read` those that it shows.',
    query: {
      ...FILTERS,
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: 1_000,
        description: 'At most this many sessions. Default: 200.',
      },
    },
    answer: { status: 200, description: 'What waits', schema: inboxSchema },
    codes: [],
    handle: (request, { sessions }) => {
      const [agent, tenant] = [request.text('agent'), tenantFilter(request)];
      return sessions.inbox(defined({ agent, tenant, limit: request.integer('limit') }));
    },
  }),
  operation({
    id: 'listSessions',
    method: 'GET',
    path: '/sessions',
    tag: 'sessions',
    role: 'read',
    tenants: true,
    summary: 'List sessions, newest first',
    description: 'A list can lag by a second.',
    query: {
      ...FILTERS,
      status: {
        type: 'string',
        pattern: SEARCHABLE,
        description: 'Only in this status, such as active. `waits`: in any that waits for a person',
      },
      prefix: { type: 'string', pattern: SEARCHABLE, description: 'Only ids that begin with this' },
      limit: { type: 'integer', minimum: 0, maximum: 10_000, description: 'At most this many. Default: 50.' },
    },
    answer: {
      status: 200,
      description: 'Sessions',
      schema: z.object({ items: z.array(summarySchema) }),
    },
    codes: [],
    handle: async (request, { sessions }) => {
      const [agent, status, prefix] = (['agent', 'status', 'prefix'] as const).map((name) =>
        request.text(name),
      );
      const items: SessionSummary[] = [];
      const options = defined({
        agent,
        status,
        prefix,
        tenant: tenantFilter(request),
        limit: request.integer('limit') ?? 50,
      });
      for await (const session of sessions.list(options)) items.push(session);
      return { items };
    },
  }),
  operation({
    id: 'getSession',
    method: 'GET',
    path: '/sessions/{id}',
    tag: 'sessions',
    role: 'read',
    summary: 'A session at a glance',
    description: 'Without a worker, or for a closed session, the answer comes from the history.',
    answer: { status: 200, description: 'What it does and waits for', schema: sessionViewSchema },
    codes: CODES,
    handle: (request, { sessions }) => sessions.get(request.param('id')).state(),
  }),
  operation({
    id: 'getTranscript',
    method: 'GET',
    path: '/sessions/{id}/transcript',
    tag: 'sessions',
    role: 'read',
    summary: 'Messages, the newest page by default',
    query: PAGE,
    answer: { status: 200, description: 'A page, oldest first', schema: transcriptPageSchema },
    codes: CODES,
    handle: (request, { sessions }) => sessions.get(request.param('id')).transcript(page(request)),
  }),
  operation({
    id: 'getView',
    method: 'GET',
    path: '/sessions/{id}/view',
    tag: 'sessions',
    role: 'read',
    summary: 'The messages that the model sees',
    description:
      'The last summary, and the messages that it does not stand for. Without a summary, all messages.',
    answer: { status: 200, description: 'The messages, oldest first', schema: modelViewSchema },
    codes: CODES,
    handle: async (request, { sessions }) => ({
      items: [...(await sessions.get(request.param('id')).view())],
    }),
  }),
  operation({
    id: 'getCalls',
    method: 'GET',
    path: '/sessions/{id}/calls',
    tag: 'sessions',
    role: 'read',
    summary: 'The tool-call log, the newest page by default',
    query: PAGE,
    answer: { status: 200, description: 'A page, oldest first', schema: callsPageSchema },
    codes: CODES,
    handle: (request, { sessions }) => sessions.get(request.param('id')).calls(page(request)),
  }),
  operation({
    id: 'getCall',
    method: 'GET',
    path: '/sessions/{id}/calls/{call_id}',
    tag: 'sessions',
    role: 'read',
    summary: "A call, its tool's schema, and what was said before it",
    answer: { status: 200, description: 'A call of the present run', schema: callDetailSchema },
    codes: [...CODES, 'UNKNOWN_CALL'],
    handle: (request, { sessions }) => sessions.get(request.param('id')).call(request.param('call_id')),
  }),
  operation({
    id: 'getValue',
    method: 'GET',
    path: '/sessions/{id}/values/{digest}',
    tag: 'sessions',
    role: 'read',
    summary: 'A large result or a file of the session',
    description: 'The digest is that of a `value` in the transcript or in the tool-call log.',
    answer: {
      status: 200,
      description: 'The bytes, with their media type',
      mediaType: 'application/octet-stream',
    },
    codes: [
      'INVALID_ARGUMENT',
      'VALUE_NOT_FOUND',
      'CHECKPOINT_CORRUPTION',
      'UNKNOWN_KEY',
      'SERVER_UNAVAILABLE',
    ],
    handle: async (request, { sessions }) => {
      const { bytes, mediaType } = await sessions.get(request.param('id')).value(request.param('digest'));
      return new Response(Buffer.from(bytes), {
        // A browser must not run what a tool has returned.
        headers: {
          // A header cannot carry all that a tool or an older version has stored as a media type.
          'content-type': MEDIA_TYPE.test(mediaType) ? mediaType : 'application/octet-stream',
          'content-disposition': 'attachment',
          'content-security-policy': 'sandbox',
        },
      });
    },
  }),
  operation({
    id: 'getQueue',
    method: 'GET',
    path: '/sessions/{id}/queue',
    tag: 'sessions',
    role: 'read',
    summary: 'The messages that wait for the end of the turn',
    answer: {
      status: 200,
      description: 'The messages, in the order in which the model will get them',
      schema: z.object({ items: z.array(queuedMessageSchema) }),
    },
    codes: CODES,
    handle: async (request, { sessions }) => ({ items: await sessions.get(request.param('id')).queue() }),
  }),
  operation({
    id: 'getApprovals',
    method: 'GET',
    path: '/sessions/{id}/approvals',
    tag: 'sessions',
    role: 'read',
    summary: 'The calls that wait for a person',
    answer: {
      status: 200,
      description: 'The calls. A decision must carry the argsDigest of its call',
      schema: z.object({ items: z.array(pendingCallSchema) }),
    },
    codes: CODES,
    handle: async (request, { sessions }) => ({
      items: await sessions.get(request.param('id')).approvals(),
    }),
  }),
  operation({
    id: 'getUndoPlan',
    method: 'GET',
    path: '/sessions/{id}/undo',
    tag: 'sessions',
    role: 'read',
    summary: 'What an undo of the session would do',
    description:
      'Its effects, the last one first. Cancel with the digest of the list to approve it as a whole.',
    answer: { status: 200, description: 'The list', schema: undoPlanSchema },
    codes: CODES,
    handle: (request, { sessions }) => sessions.get(request.param('id')).undoPlan(),
  }),
  operation({
    id: 'getBudget',
    method: 'GET',
    path: '/sessions/{id}/budget',
    tag: 'sessions',
    role: 'read',
    summary: 'Caps, spent and reserved',
    answer: { status: 200, description: 'The budget', schema: budgetViewSchema },
    codes: CODES,
    handle: (request, { sessions }) => sessions.get(request.param('id')).budget(),
  }),
  operation({
    id: 'getPlan',
    method: 'GET',
    path: '/sessions/{id}/plan',
    tag: 'sessions',
    role: 'read',
    summary: 'The plan that the model keeps',
    answer: {
      status: 200,
      description: 'Its steps',
      schema: z.object({ steps: z.array(planStepSchema) }),
    },
    codes: CODES,
    handle: async (request, { sessions }) => ({
      steps: await sessions.get(request.param('id')).plan(),
    }),
  }),
  streamOperation,
];

function page(request: ApiRequest<unknown>): PageInput {
  const [before, limit] = [request.integer('before'), request.integer('limit')];
  return defined({ before, limit });
}

/** The tenant of a list: the caller's own, or the one that was asked for. */
function tenantFilter(request: ApiRequest<unknown>): string | undefined {
  const { tenant } = request.principal;
  const asked = request.text('tenant');
  if (tenant === null) return asked;
  if (asked === undefined || asked === tenant) return tenant;
  throw ofOtherTenant('tenant', tenant);
}
