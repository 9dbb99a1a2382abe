import type { DefinedTool } from '../agent/index.ts';
import {
  canonicalJson,
  isDeeperThan,
  type JsonObject,
  type JsonValue,
  jsonSize,
  MAX_DEPTH,
  toJson,
} from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';

const SHORTENED = / \[shortened: this result had (\d+) bytes, \d+ are kept\]$/;

/**
 * Converts a tool's output for the history: plain JSON under a limit in bytes.
 *
 * It never throws, because the effect has happened. A value that is not JSON is converted by `JSON.stringify` or to text.
 * A value that is too large is shortened, with a notice for the model.
 */
export function recordable(output: unknown, limit: number): JsonValue {
  const json = asJson(output);
  const size = jsonSize(json);
  if (size <= limit) return json;
  const whole = typeof json === 'string' ? json : canonicalJson(json);
  // A result of another session may be shortened already.
  const before = SHORTENED.exec(whole);
  const text = whole.slice(0, before?.index);
  const had = before?.[1] ?? size;
  const notice = (kept: number): string => ` [shortened: this result had ${had} bytes, ${kept} are kept]`;
  // The limit counts bytes of JSON text: one to six for a character.
  const room = limit - notice(size).length;
  let [end, over] = [0, text.length];
  while (over - end > 1) {
    const middle = Math.floor((end + over) / 2);
    if (jsonSize(text.slice(0, middle)) <= room) end = middle;
    else over = middle;
  }
  // Do not keep half of a surrogate pair.
  if (/[\ud800-\udbff]$/.test(text.slice(0, end))) end -= 1;
  const kept = text.slice(0, end);
  // In a turn with very many calls, the share may be smaller than the notice.
  return end === 0 ? notice(0).slice(0, Math.max(0, limit - 2)) : kept + notice(jsonSize(kept));
}

/** How long `toModelOutput` may take, in milliseconds. The effect has happened and waits to be recorded. */
const MODEL_OUTPUT_MS = 5_000;

async function inTime<T>(given: T | PromiseLike<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('toModelOutput gave no answer in time')), MODEL_OUTPUT_MS);
  });
  try {
    return await Promise.race([given, late]);
  } finally {
    clearTimeout(timer);
  }
}

const MODEL_OUTPUTS: ReadonlySet<unknown> = new Set(['text', 'json', 'content', 'error-text', 'error-json']);

/** An output for the history, with the result of the tool's `toModelOutput` for the model. */
export async function recorded(
  tool: DefinedTool,
  value: unknown,
  { callId, resultLimit = LIMIT.toolResult }: { callId: string; resultLimit?: number },
  output: unknown,
): Promise<{ output: JsonValue; modelOutput?: JsonObject }> {
  // Both enter the history, each with half of the limit.
  const limit = tool.toModelOutput === undefined ? resultLimit : Math.floor(resultLimit / 2);
  const kept = recordable(output, limit);
  if (tool.toModelOutput === undefined) return { output: kept };
  try {
    const given = toJson(
      JSON.parse(
        JSON.stringify(await inTime(tool.toModelOutput({ toolCallId: callId, input: value, output }))),
      ),
    );
    const isOutput = typeof given === 'object' && given !== null && !Array.isArray(given);
    if (!isOutput || !MODEL_OUTPUTS.has(given['type'])) return { output: kept };
    if (jsonSize(given) <= limit) return { output: kept, modelOutput: given };
    return {
      output: kept,
      modelOutput: { type: 'text', value: recordable(canonicalJson(given), limit - 100) },
    };
  } catch {
    return { output: kept };
  }
}

function asJson(output: unknown): JsonValue {
  if (output === undefined) return null;
  try {
    return toJson(output);
  } catch {
    try {
      const text = JSON.stringify(output) ?? 'null';
      const json: unknown = JSON.parse(text);
      return isDeeperThan(json, MAX_DEPTH) ? text : toJson(json);
    } catch {
      return typeof output === 'bigint' ? output.toString() : `[a ${typeof output} that JSON cannot hold]`;
    }
  }
}
