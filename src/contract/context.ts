/** The context of a session: what the application says about the user for whom the session runs. */
import * as z from 'zod/mini';
import { type JsonObject, type JsonValue, jsonSize } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import { LIMIT } from './limits.ts';
import { SEARCH_ATTRIBUTE } from './names.ts';

const json: z.ZodMiniType<JsonValue> = z.json();
/** A search attribute holds 2 KB. A longer tenant would stop the session. */
export const TENANT_LENGTH = 200;

/** Checks what holds for the context of any agent. The agent's own schema checks the rest. */
export const contextSchema: LazySchema<JsonObject> = lazySchema(() =>
  z.record(z.string(), json).check(
    z.refine((value) => jsonSize(value) <= LIMIT.context, `the limit is ${LIMIT.context} bytes of JSON`),
    z.check(({ value, issues }) => {
      const { tenant } = value;
      if (tenant === undefined) return;
      const isText = typeof tenant === 'string' && tenant !== '' && tenant.length <= TENANT_LENGTH;
      if (isText) return;
      const message = `expected a string of 1 to ${TENANT_LENGTH} characters`;
      issues.push({ code: 'custom', path: ['tenant'], message, input: tenant });
    }),
  ),
);

/** The tenant of a session: `tenant` of its context. It is a search attribute, and part of global keys. */
export function tenantOf(context: JsonObject | null | undefined): string | null {
  const tenant = context?.['tenant'];
  return typeof tenant === 'string' ? tenant : null;
}

/** The values of a session's search attributes. */
export function attributesOf(
  { agent, context }: { agent: string; context?: JsonObject | null | undefined },
  status: string,
): [name: string, value: string][] {
  const tenant = tenantOf(context);
  return [
    [SEARCH_ATTRIBUTE.agent, agent],
    ...(tenant === null ? [] : [[SEARCH_ATTRIBUTE.tenant, tenant] satisfies [string, string]]),
    [SEARCH_ATTRIBUTE.status, status],
  ];
}
