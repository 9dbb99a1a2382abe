/** The instructions of an agent for one model call. */
import type { JsonObject } from '../contract/json.ts';
import type { DefinedAgent } from './agent-options.ts';
import { readContext } from './context.ts';
import { describe, withDeadline } from './validate.ts';

/** How long an `instructions` function may take, in milliseconds. */
const INSTRUCTIONS_MS = 5_000;

/** The instructions, or why there are none. */
export type Instructions = { ok: true; text: string } | { ok: false; problem: string };

/**
 * Returns an agent's instructions for a session with this context.
 *
 * @param limits - how many bytes a function may return; the budget reserves them
 */
export async function instructionsFor(
  agent: DefinedAgent,
  given: JsonObject | undefined,
  limits: { bytes: number; signal: AbortSignal },
): Promise<Instructions> {
  const { instructions } = agent;
  if (typeof instructions === 'string') return { ok: true, text: instructions };
  try {
    const until = performance.now() + INSTRUCTIONS_MS;
    const waits = { until, signal: limits.signal };
    const context = await readContext(agent, given, undefined, waits);
    if (!context.ok) return context;
    const text: unknown = await withDeadline(instructions({ context: context.value }), waits);
    const problem = textProblem(text, limits.bytes);
    return problem === null ? { ok: true, text: text as string } : { ok: false, problem };
  } catch (error) {
    return { ok: false, problem: describe(error) };
  }
}

function textProblem(text: unknown, limit: number): string | null {
  if (typeof text !== 'string' || text.trim() === '') return 'the function must return a text';
  const size = Buffer.byteLength(text);
  return size > limit
    ? `it returned ${size} bytes, the limit is ${limit}: shorten it, or set maxInstructionsBytes`
    : null;
}
