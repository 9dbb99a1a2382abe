/** The built-in plan tool: the model keeps the plan, and the session checks the evidence of each step that is done. */
import type { ToolCall } from '../contract/calls.ts';
import { parseInput } from '../contract/inputs.ts';
import type { JsonValue } from '../contract/json.ts';
import type { Past } from '../contract/past.ts';
import { PLAN_TOOL, planSchema } from '../contract/plan.ts';
import type { PlanStep } from '../contract/state.ts';

/**
 * Reads a plan from the model. A step may be `done` only when each of its postconditions has evidence: a tool of which
 * a call has completed in this session. The evidence records that call.
 *
 * @param before - the last completed call of each tool before this run
 * @returns the plan, or the first problem in words for the model.
 */
export function readPlan(
  args: JsonValue,
  calls: readonly ToolCall[],
  before: Past['completed'] = {},
): { ok: true; plan: PlanStep[] } | { ok: false; problem: string } {
  const parsed = parseInput(planSchema, args);
  if (!parsed.ok) return { ok: false, problem: parsed.message };
  const plan: PlanStep[] = [];
  for (const step of parsed.value.steps) {
    if (plan.some(({ id }) => id === step.id))
      return { ok: false, problem: `step ${step.id} is listed twice` };
    const evidence: PlanStep['evidence'] = [];
    for (const { postcondition, tool } of step.evidence) {
      const call = calls.findLast(({ name, status }) => name === tool && status.kind === 'completed');
      const callId = call?.id ?? (Object.hasOwn(before, tool) ? before[tool] : undefined);
      // A call of the plan tool itself proves nothing.
      if (callId !== undefined && tool !== PLAN_TOOL) evidence.push({ postcondition, tool, call_id: callId });
    }
    const unproven = step.postconditions.findIndex(
      (_, i) => !evidence.some((item) => item.postcondition === i),
    );
    if (step.status === 'done' && step.postconditions.length === 0) {
      const problem = `step ${step.id} is not done: it has no postcondition; write what must be true, with evidence`;
      return { ok: false, problem };
    }
    if (step.status === 'done' && unproven >= 0) {
      return {
        ok: false,
        problem:
          `step ${step.id} is not done: postcondition ${unproven} (${step.postconditions[unproven]}) needs ` +
          'evidence, the name of a tool of which a call has completed',
      };
    }
    plan.push({ ...step, evidence });
  }
  return { ok: true, plan };
}
