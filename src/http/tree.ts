/** Trees of agents over HTTP. */
import * as z from 'zod/mini';
import type { Tree } from '../client/index.ts';
import { waitSchema } from './answers.ts';
import { pendingCallSchema } from './call-answers.ts';
import { type Operation, operation } from './operation.ts';
import { exactly } from './shapes.ts';

const place = { sessionId: z.string(), path: z.array(z.string()) };

const treeSchema: z.ZodMiniType<Tree> = exactly<Tree>()(
  z.object({
    nodes: z.array(
      z.object({
        ...place,
        agent: z.string(),
        depth: z.int(),
        callId: z.nullable(z.string()),
        status: z.string(),
        usage: z.nullable(
          z.object({
            turns: z.int(),
            toolCalls: z.int(),
            inputTokens: z.int(),
            outputTokens: z.int(),
            nanoUsd: z.int(),
            activeMs: z.int(),
          }),
        ),
      }),
    ),
    open: z.array(z.object({ ...place, call: z.nullable(pendingCallSchema), wait: z.nullable(waitSchema) })),
  }),
);

export const treeOperation: Operation = operation({
  id: 'getTree',
  method: 'GET',
  path: '/sessions/{id}/tree',
  tag: 'sessions',
  role: 'read',
  summary: 'The session with its sub-agents, and what waits for a person in them',
  description:
    'Each session comes before those below it. Decide on a call of `open` in the session that `sessionId` names.',
  answer: { status: 200, description: 'The tree', schema: treeSchema },
  codes: ['SESSION_NOT_FOUND', 'CHECKPOINT_CORRUPTION', 'ENCRYPTED', 'UNKNOWN_KEY'],
  handle: (request, { sessions }) => sessions.get(request.param('id')).tree(),
});
