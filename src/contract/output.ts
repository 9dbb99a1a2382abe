/** What the model is told of an agent's `output` schema. */
import { canonicalJson, type JsonObject } from './json.ts';

/** Follows the instructions. Not all providers hold a model to a schema. */
export function outputRequest(schema: JsonObject): string {
  return `\n\nWhen you answer without calling a tool, write only JSON that fits this JSON Schema:\n${canonicalJson(schema)}`;
}

/** Follows an answer that does not fit. */
export function repairRequest(problem: string): string {
  return `Your answer does not fit the JSON Schema: ${problem}. Write the whole answer again, as JSON only.`;
}

/** The checked value of an answer, or why it has none. */
export type CheckedOutput<VALUE> = { ok: true; value: VALUE } | { ok: false; problem: string };
