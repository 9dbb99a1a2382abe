/** What the model is told about an agent's `output` schema. */
import { canonicalJson, type JsonObject } from './json.ts';

/** The text after the instructions. It is needed because not all providers enforce a schema. */
export function outputRequest(schema: JsonObject): string {
  return `\n\nWhen you answer without calling a tool, write only JSON that fits this JSON Schema:\n${canonicalJson(schema)}`;
}

/** The message after an answer that does not fit. */
export function repairRequest(problem: string): string {
  return `Your answer does not fit the JSON Schema: ${problem}. Write the whole answer again, as JSON only.`;
}

/** The checked value of an answer, or why the answer has none. */
export type CheckedOutput<VALUE> = { ok: true; value: VALUE } | { ok: false; problem: string };
