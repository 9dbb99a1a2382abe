import * as z from 'zod/mini';
import type { JsonObject } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** The built-in tool with which the model keeps its plan. */
export const PLAN_TOOL = 'update_plan';

export const PLAN_DESCRIPTION =
  'Replace the plan. A step is done only when it has postconditions and each has evidence: a tool that was called and completed.';

/** JSON Schema of its arguments. */
export const PLAN_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    steps: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          title: { type: 'string' },
          postconditions: { type: 'array', items: { type: 'string' } },
          evidence: {
            type: 'array',
            items: {
              type: 'object',
              properties: { postcondition: { type: 'integer' }, tool: { type: 'string' } },
              required: ['postcondition', 'tool'],
              additionalProperties: false,
            },
          },
          status: { type: 'string', enum: ['pending', 'in_progress', 'done'] },
        },
        required: ['id', 'title', 'status'],
        additionalProperties: false,
      },
    },
  },
  required: ['steps'],
  additionalProperties: false,
};

/** A caller may send back a plan as it read it: the session's own `call_id` is allowed and ignored. */
const evidence = lazySchema(() =>
  z.pipe(
    z.object({ postcondition: z.int(), tool: z.string(), call_id: z.optional(z.unknown()) }),
    z.transform(({ postcondition, tool }) => ({ postcondition, tool })),
  ),
);

/** The steps of a plan. Absent fields are empty, or `pending`. */
export const planStepsSchema: LazySchema<PlanInput['steps']> = lazySchema(() =>
  z.array(
    z.object({
      id: z.string().check(z.minLength(1)),
      title: z.string().check(z.minLength(1)),
      postconditions: z._default(z.array(z.string()), []),
      evidence: z._default(z.array(evidence()), []),
      status: z._default(z.enum(['pending', 'in_progress', 'done']), 'pending'),
    }),
  ),
);

export const planSchema: LazySchema<PlanInput> = lazySchema(() => z.object({ steps: planStepsSchema() }));

/** A plan as the model sends it. */
export interface PlanInput {
  steps: {
    id: string;
    title: string;
    postconditions: string[];
    evidence: { postcondition: number; tool: string }[];
    status: 'pending' | 'in_progress' | 'done';
  }[];
}
