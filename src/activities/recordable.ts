import {
  canonicalJson,
  isDeeperThan,
  type JsonValue,
  jsonSize,
  MAX_DEPTH,
  toJson,
} from '../contract/json.ts';

/**
 * A tool's output as it may enter the history: plain JSON under a limit in bytes.
 *
 * It never throws, because the effect has happened: what is not JSON is written as JSON writes it or as text,
 * and what is too large is shortened, with a notice that the model can read.
 */
export function recordable(output: unknown, limit: number): JsonValue {
  const json = asJson(output);
  const size = jsonSize(json);
  if (size <= limit) return json;
  const text = typeof json === 'string' ? json : canonicalJson(json);
  const notice = ` [shortened: this result had ${size} bytes, ${limit} are kept]`;
  // A character is at most six bytes in JSON text, so cut by bytes measured, not by characters counted.
  let end = Math.max(0, Math.min(text.length, limit - notice.length));
  while (end > 0 && jsonSize(text.slice(0, end) + notice) > limit) end = Math.floor(end * 0.8);
  // A share of a turn with very many calls may be smaller than the notice.
  return end === 0 ? notice.slice(0, Math.max(0, limit - 2)) : text.slice(0, end) + notice;
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
