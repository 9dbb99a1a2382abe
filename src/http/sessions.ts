/** Starting, steering and deciding sessions over HTTP. */
import * as z from 'zod/mini';
import { effectsKept } from '../checkpoints/effects-left.ts';
import { checkNewId, type ForkOptions, type StartOptions } from '../client/index.ts';
import { type EditInput, editSchema } from '../contract/edit.ts';
import { type ErrorCode, UNANSWERED } from '../contract/errors.ts';
import {
  type BudgetInput,
  budgetSchema,
  type PauseInput,
  pauseSchema,
  type ResumeInput,
  resumeSchema,
} from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { needRole, verifiedBy } from './access.ts';
import { effectSinceSchema, phaseSchema } from './answers.ts';
import { effectsSince, pastOf, unconfirmed } from './look-back.ts';
import { type Backend, type Operation, operation } from './operation.ts';
import { addressable, idempotencyKey } from './request.ts';
import {
  type DecideBody,
  decideBodySchema,
  type ForkBody,
  forkBodySchema,
  type MessageBody,
  messageBodySchema,
  type QueuedBody,
  queuedBodySchema,
  type ResolveBody,
  type RewindBody,
  resolveBodySchema,
  rewindBodySchema,
  type StartBody,
  sessionIdSchema,
  startBodySchema,
} from './session-shapes.ts';
import { type CancelBody, cancelBodySchema } from './undo.ts';

/** Codes of requests that a worker answers. */
const STEER: readonly ErrorCode[] = [
  'SESSION_NOT_FOUND',
  'SESSION_CLOSED',
  'SESSION_BUSY',
  'SESSION_FULL',
  'CONFLICT',
  ...UNANSWERED,
];
const DECIDE: readonly ErrorCode[] = [...STEER, 'UNKNOWN_CALL', 'CALL_NOT_PENDING', 'DIGEST_MISMATCH'];
const QUEUE: readonly ErrorCode[] = [...STEER, 'MESSAGE_NOT_QUEUED'];
const SIGNALLED: readonly ErrorCode[] = [
  'SESSION_NOT_FOUND',
  'SESSION_CLOSED',
  'SESSION_BUSY',
  'SESSION_FULL',
];

const taken = z.object({ phase: phaseSchema, queued: z.int() });
const edited = z.object({ ...taken.shape, checkpointId: z.string() });
const decided = z.object({ callId: z.string(), status: z.string() });
const ACCEPTED = {
  status: 202,
  description: 'It is recorded. The session acts on it when a worker runs',
  schema: sessionIdSchema,
} as const;

export const sessionOperations: readonly Operation[] = [
  operation<StartBody>({
    id: 'startSession',
    method: 'POST',
    path: '/sessions',
    tag: 'sessions',
    role: 'talk',
    signs: 'message',
    tenants: true,
    summary: 'Start a session of an agent',
    description:
      'It is durable when this answers, also without a worker. Give it an id: if no answer comes, send the same again, ' +
      'and SESSION_EXISTS says that it was started.',
    idempotencyKey: "The session's id. The same as the id in the body.",
    body: startBodySchema,
    answer: { status: 201, description: 'The id of the session', schema: sessionIdSchema },
    codes: ['SESSION_EXISTS', 'CONFLICT'],
    handle: async (request, { sessions }) => {
      const { agent, ...options } = request.body;
      const id = addressable(idempotencyKey(request, options.id));
      return { id: (await sessions.start(agent, defined({ ...options, id }) as StartOptions)).id };
    },
  }),
  operation<MessageBody>({
    id: 'sendMessage',
    method: 'POST',
    path: '/sessions/{id}/messages',
    tag: 'sessions',
    role: 'talk',
    signs: 'by',
    summary: 'Send a message',
    description:
      'During a turn it is queued. With mode interrupt it ends the turn. With mode aside it is answered while calls are open, and changes nothing. With pin no summary replaces it.',
    idempotencyKey: 'The id of the message. The session takes an id once. The same as the id in the body.',
    body: messageBodySchema,
    answer: { status: 200, description: 'The message is recorded', schema: taken },
    codes: STEER,
    handle: (request, { sessions }) => {
      const id = idempotencyKey(request, request.body.id);
      return sessions
        .get(request.param('id'))
        .send({ ...request.body, id, ...verifiedBy(request.principal) });
    },
  }),
  operation<QueuedBody>({
    id: 'editMessage',
    method: 'PUT',
    path: '/sessions/{id}/queue/{message_id}',
    tag: 'sessions',
    role: 'talk',
    signs: 'by',
    summary: 'Change a queued message',
    description: 'It keeps its id, its place and its pin.',
    body: queuedBodySchema,
    answer: { status: 200, description: 'The change is recorded', schema: taken },
    codes: QUEUE,
    handle: (request, { sessions }) =>
      sessions.get(request.param('id')).editMessage(request.param('message_id'), request.body),
  }),
  operation<ResumeInput>({
    id: 'withdrawMessage',
    method: 'POST',
    path: '/sessions/{id}/queue/{message_id}/withdrawal',
    tag: 'sessions',
    role: 'talk',
    signs: 'by',
    summary: 'Take back a queued message',
    description: 'The model never sees it, and its id is not taken again. Withdrawn twice is withdrawn.',
    body: resumeSchema(),
    answer: { status: 200, description: 'It is withdrawn', schema: taken },
    codes: QUEUE,
    handle: (request, { sessions }) =>
      sessions.get(request.param('id')).withdraw(request.param('message_id'), request.body),
  }),
  operation<DecideBody>({
    id: 'decideCall',
    method: 'POST',
    path: '/sessions/{id}/calls/{call_id}/decision',
    tag: 'sessions',
    role: 'decide',
    signs: 'by',
    summary: 'Decide on a call that waits for approval',
    description:
      'The first decision wins; a rejection by one person rejects. If details of the call have `needs`, several people ' +
      'approve one after the other, and the status stays `approval` until the last one has. It holds only for the arguments with this argsDigest, which GET ' +
      "/sessions/{id}/approvals shows. An edit is answered once its arguments have passed the tool's schema.",
    body: decideBodySchema,
    answer: { status: 200, description: 'The decision is recorded', schema: decided },
    codes: [...DECIDE, 'INVALID_TOOL_INPUT'],
    handle: (request, { sessions }) => {
      const { by, argsDigest, ...decision } = request.body;
      const session = sessions.get(request.param('id'));
      const who = { ...defined({ by }), ...verifiedBy(request.principal) };
      return session.decide({ callId: request.param('call_id'), argsDigest }, decision, who);
    },
  }),
  operation<ResolveBody>({
    id: 'resolveCall',
    method: 'POST',
    path: '/sessions/{id}/calls/{call_id}/resolution',
    tag: 'sessions',
    role: 'decide',
    signs: 'by',
    summary: 'Say what became of a call whose outcome is unknown',
    description:
      'It holds only for the dispatch and the arguments that it names: GET /sessions/{id}/approvals shows both. ' +
      'DISPATCH_MISMATCH: the call was dispatched again in the meantime.',
    body: resolveBodySchema,
    answer: { status: 200, description: 'It is recorded', schema: decided },
    codes: [...DECIDE, 'DISPATCH_MISMATCH'],
    handle: (request, { sessions }) => {
      const { by, argsDigest, dispatchNo, ...resolution } = request.body;
      const seen = { callId: request.param('call_id'), argsDigest, dispatchNo };
      const who = { ...defined({ by }), ...verifiedBy(request.principal) };
      return sessions.get(request.param('id')).resolve(seen, resolution, who);
    },
  }),
  operation<PauseInput>({
    id: 'pauseSession',
    method: 'POST',
    path: '/sessions/{id}/pause',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Start no new call; now also cancels calls in flight',
    body: pauseSchema(),
    answer: ACCEPTED,
    codes: SIGNALLED,
    handle: (request, backend) =>
      accepted(backend, request.param('id'), (session) => session.pause(request.body)),
  }),
  operation<ResumeInput>({
    id: 'resumeSession',
    method: 'POST',
    path: '/sessions/{id}/resume',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Continue after a pause or a wait',
    body: resumeSchema(),
    answer: ACCEPTED,
    codes: SIGNALLED,
    handle: (request, backend) =>
      accepted(backend, request.param('id'), (session) => session.resume(defined(request.body))),
  }),
  operation<CancelBody>({
    id: 'cancelSession',
    method: 'POST',
    path: '/sessions/{id}/cancel',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'End the session once a mutation in flight has settled',
    description:
      'With undo, it undoes its effects first: with true, a person approves each. With the digest of GET ' +
      '/sessions/{id}/undo, the caller approves the list, and needs the role decide. With false, an undo is given up. ' +
      'The effects of a session that has ended are undone in a new run.',
    body: cancelBodySchema,
    answer: ACCEPTED,
    codes: [...SIGNALLED, 'CONFLICT', ...UNANSWERED],
    handle: (request, backend) => {
      const { body, principal } = request;
      if (typeof body.undo === 'object') needRole('cancelSession with a digest', 'decide', principal);
      const { undo = false, ...who } = { ...defined(body), ...verifiedBy(principal) };
      return accepted(backend, request.param('id'), async (session) => {
        if (undo === false) await session.cancel({ ...who, ...defined({ undo: body.undo }) });
        else await backend.sessions.undo(session.id, { ...who, undo });
      });
    },
  }),
  operation<EditInput>({
    id: 'editSession',
    method: 'POST',
    path: '/sessions/{id}/edit',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Edit the transcript or the plan of a session between turns',
    body: editSchema(),
    answer: { status: 200, description: 'The edit is recorded, with who and why', schema: edited },
    codes: STEER,
    handle: (request, { sessions }) => sessions.get(request.param('id')).edit(request.body),
  }),
  operation<BudgetInput>({
    id: 'setBudget',
    method: 'PUT',
    path: '/sessions/{id}/budget',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Set caps, or let the session end with a summary',
    body: budgetSchema(),
    answer: { status: 200, description: 'The caps are recorded', schema: taken },
    codes: STEER,
    handle: (request, { sessions }) => sessions.get(request.param('id')).setBudget(request.body),
  }),
  operation<ForkBody>({
    id: 'forkSession',
    method: 'POST',
    path: '/sessions/{id}/fork',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Start another session from a checkpoint of this one',
    description:
      'Its effects get new idempotency keys. A mutation that was open at the checkpoint waits for a person. For ' +
      'the checkpoints: GET /threads/{id}/checkpoints.',
    idempotencyKey: "The new session's id. The same as the id in the body.",
    body: forkBodySchema,
    answer: { status: 201, description: 'The id of the new session', schema: sessionIdSchema },
    codes: [
      'SESSION_NOT_FOUND',
      'SESSION_EXISTS',
      'CONFLICT',
      'CHECKPOINT_NOT_FOUND',
      'CHECKPOINT_CORRUPTION',
      ...UNANSWERED,
    ],
    handle: async (request, backend) => {
      const { checkpointId, ...body } = request.body;
      const from = { sessionId: request.param('id'), checkpointId };
      const id = addressable(idempotencyKey(request, body.id));
      if (id !== undefined) checkNewId(id);
      if (body.edits !== undefined) await pastOf(backend, from, body.edits);
      const options = defined({ ...body, id }) as ForkOptions;
      return { id: (await backend.sessions.fork(from, options)).id };
    },
  }),
  operation<RewindBody>({
    id: 'rewindSession',
    method: 'POST',
    path: '/sessions/{id}/rewind',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Take the session back to a checkpoint of its own',
    description:
      'Later effects are not undone: an equal call is answered from the record. Without confirm nothing happens, and ' +
      'details.effects of the error lists them. With undo, a person approves the compensation of each. ' +
      'CONFLICT: somebody else rewound the session in the meantime; list its checkpoints again.',
    body: rewindBodySchema,
    answer: {
      status: 200,
      description: 'The session continues from there, with the later effects that stay',
      schema: z.object({ id: z.string(), effects: z.array(effectSinceSchema) }),
    },
    codes: [...STEER, 'CHECKPOINT_NOT_FOUND', 'CHECKPOINT_CORRUPTION'],
    handle: async (request, backend) => {
      const { checkpointId, confirm, undo, ...body } = request.body;
      const from = { sessionId: request.param('id'), checkpointId };
      const past = await pastOf(backend, from, body.edits);
      const effects = await effectsSince(backend, past);
      if (confirm !== true) throw unconfirmed(effects);
      const options = { ...defined(body), ...(undo === true ? { undo } : {}) } as ForkOptions;
      const { id } = await backend.sessions.rewind(from, options);
      return { id, effects: await effectsKept(backend.client, past, effects) };
    },
  }),
];

type Steered = ReturnType<Backend['sessions']['get']>;

async function accepted(
  { sessions }: Backend,
  id: string,
  signal: (session: Steered) => Promise<void>,
): Promise<{ id: string }> {
  await signal(sessions.get(id));
  return { id };
}
