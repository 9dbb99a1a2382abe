/** Checks an answer against its agent's `output` schema. */
import { type AgentRuntime, type deadline, validate } from '../agent/index.ts';
import { messageOf } from '../contract/errors.ts';
import { type JsonValue, jsonSize, toJson } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { CheckedOutput } from '../contract/output.ts';

/** How many characters of a problem the model gets at most. */
const PROBLEM_LENGTH = 2_000;
/** A model may put its JSON into a block of Markdown. */
const FENCED = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/;

/** @param text - the text of an answer without calls */
export async function checkOutput(
  { definition: { output } }: AgentRuntime,
  text: string,
  waits: ReturnType<typeof deadline>,
): Promise<CheckedOutput<JsonValue> | undefined> {
  if (output === undefined) return undefined;
  try {
    const checked = await validate(output, JSON.parse(FENCED.exec(text)?.[1] ?? text) as JsonValue, waits);
    if (!checked.ok) return misfit(checked.problem);
    const value = toJson(checked.value, 'output');
    const size = jsonSize(value);
    return size <= LIMIT.toolResult
      ? { ok: true, value }
      : misfit(`it has ${size} bytes, the limit is ${LIMIT.toolResult}`);
  } catch (error) {
    return misfit(messageOf(error));
  }
}

function misfit(problem: string): { ok: false; problem: string } {
  return { ok: false, problem: problem.slice(0, PROBLEM_LENGTH) };
}
