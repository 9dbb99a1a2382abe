/** Pools of money over HTTP. */
import * as z from 'zod/mini';
import { type PoolAmounts, type PoolSetInput, type PoolView, poolSetSchema } from '../contract/pool.ts';
import { type Operation, operation } from './operation.ts';
import { exactly, time } from './shapes.ts';

const amounts = { usd: z.number(), tokens: z.int(), turns: z.int(), activeMs: z.int() };
export const poolAmounts: z.ZodMiniType<PoolAmounts> = z.object(amounts);

export const poolViewSchema: z.ZodMiniType<PoolView> = exactly<PoolView>()(
  z.object({
    id: z.string(),
    limits: z.object({
      usd: z.exactOptional(amounts.usd),
      tokens: z.exactOptional(amounts.tokens),
      turns: z.exactOptional(amounts.turns),
      activeMs: z.exactOptional(amounts.activeMs),
    }),
    period: z.nullable(z.enum(['day', 'month'])),
    zone: z.string(),
    ends: z.nullable(time),
    spent: poolAmounts,
    total: poolAmounts,
    held: poolAmounts,
    sessions: z.array(z.object({ sessionId: z.string(), spent: poolAmounts, held: poolAmounts, at: time })),
    known: z.int(),
    waiting: z.array(z.object({ sessionId: z.string(), since: time, need: poolAmounts })),
    set: z.nullable(z.object({ by: z.string(), at: time })),
  }),
);

/** The parameter is not named `id`, because `id` is a session's. Callers with a tenant are refused. */
export const poolOperations: readonly Operation[] = [
  operation({
    id: 'getPool',
    method: 'GET',
    path: '/pools/{pool}',
    tag: 'sessions',
    role: 'read',
    summary: 'The caps that sessions share, what is spent and held, and by whom',
    answer: { status: 200, description: 'The pool', schema: poolViewSchema },
    codes: ['POOL_NOT_FOUND', 'NO_WORKER'],
    handle: (request, { sessions }) => sessions.pool(request.param('pool')).get(),
  }),
  operation<PoolSetInput>({
    id: 'setPool',
    method: 'PUT',
    path: '/pools/{pool}',
    tag: 'sessions',
    role: 'operate',
    signs: 'by',
    summary: 'Set the caps that sessions share',
    description: 'Makes the pool if there is none. Sessions that wait continue if they now have enough.',
    body: poolSetSchema(),
    answer: { status: 200, description: 'The pool', schema: poolViewSchema },
    codes: ['NO_WORKER'],
    handle: (request, { sessions }) => sessions.pool(request.param('pool')).set(request.body),
  }),
];
