/** The context of a session, as the schemas of an agent and of its tools read it. */
import type { FlexibleSchema } from 'ai';
import { tenantOf } from '../contract/context.ts';
import type { JsonObject } from '../contract/json.ts';
import { type Checked, type Deadline, deadline, validate } from './validate.ts';

/** Where a context is checked: an agent, or one of its tools. */
interface WithContext {
  readonly context?: FlexibleSchema<unknown>;
}

/**
 * Reads a context for a tool, or for the agent itself. The result is what their functions are handed. It is read at each
 * use, because the schema of a worker may be newer than the session.
 *
 * @param given - the context on record; a session that was started without one has an empty one.
 */
export async function readContext(
  agent: WithContext,
  given: JsonObject | undefined,
  tool?: WithContext,
  waits?: Deadline,
): Promise<Checked> {
  const schema = tool?.context ?? agent.context;
  return schema === undefined
    ? { ok: true, value: given ?? {} }
    : validate(schema, given ?? {}, waits ?? deadline(), 'context');
}

/** Why a context does not fit an agent or one of its tools, with the field, or `null`. */
export async function contextProblem(
  agent: WithContext & { readonly tools: Readonly<Record<string, WithContext>> },
  given: JsonObject | undefined,
): Promise<string | null> {
  const checked = new Set<unknown>();
  for (const part of [agent, ...Object.values(agent.tools)]) {
    if (part.context === undefined || checked.has(part.context)) continue;
    checked.add(part.context);
    const read = await readContext(part, given);
    if (!read.ok) return read.problem;
    const { tenant } = (read.value ?? {}) as { tenant?: unknown };
    // Keys and the search attribute have the tenant as it was given.
    if (tenant !== undefined && tenant !== tenantOf(given))
      return 'context.tenant: its schema must not have a default or a transformation';
  }
  return null;
}
