/** Parses the context of a session with the schemas of an agent and its tools. */
import type { FlexibleSchema } from 'ai';
import { tenantOf } from '../contract/context.ts';
import { type InputProblem, inputProblem } from '../contract/inputs.ts';
import type { JsonObject } from '../contract/json.ts';
import { type Checked, type Deadline, deadline, inWords, validate } from './validate.ts';

/** How long all schemas of a context may take together, in milliseconds: less than the activity that checks it has. */
const CONTEXT_MS = 5_000;

/** An agent or a tool, which may have a schema of the context. */
interface WithContext {
  readonly context?: FlexibleSchema<unknown>;
}

/**
 * Parses a context for the functions of a tool, or of the agent itself. This happens at each use, because a worker's
 * schema can be newer than the session.
 *
 * @param given - the recorded context, if the session started with one
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
): Promise<InputProblem | null> {
  const waits = { until: performance.now() + CONTEXT_MS };
  const checked = new Set<unknown>();
  for (const part of [agent, ...Object.values(agent.tools)]) {
    if (part.context === undefined || checked.has(part.context)) continue;
    checked.add(part.context);
    const read = await readContext(part, given, undefined, waits);
    if (!read.ok) {
      const [{ field, problem } = { field: 'context', problem: read.problem }, ...more] = read.issues;
      return inputProblem(field, [problem, ...more.map((issue) => inWords([issue]))].join('; '));
    }
    const { tenant } = (read.value ?? {}) as { tenant?: unknown };
    // Keys and the search attribute contain the tenant as it was given.
    if (tenant !== undefined && tenant !== tenantOf(given))
      return inputProblem('context.tenant', 'its schema must not have a default or a transformation');
  }
  return null;
}
