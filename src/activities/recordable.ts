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
import type { ToolOutput } from '../contract/model-call.ts';
import { READ_VALUE_TOOL, type ValueRef } from '../contract/values.ts';
import { storedFiles } from './files.ts';
import type { Storing } from './storing.ts';

const SHORTENED = / \[shortened: this result had (\d+) bytes, \d+ are kept[^\]]*\]$/;

/**
 * Converts a tool's output for the history: plain JSON under a limit in bytes.
 *
 * It never throws, because the effect has happened. A value that is not JSON is converted by `JSON.stringify` or to
 * text. A value that is too large is shortened, with a notice for the model.
 *
 * @param why - for the notice: why the whole value is not stored
 */
export function recordable(output: unknown, limit: number, why = ''): JsonValue {
  const json = asJson(output);
  const size = jsonSize(json);
  if (size <= limit) return json;
  const whole = asText(json);
  // A result of another session may be shortened already.
  const before = SHORTENED.exec(whole);
  const text = whole.slice(0, before?.index);
  const had = before?.[1] ?? size;
  const notice = (kept: number): string =>
    ` [shortened: this result had ${had} bytes, ${kept} are kept${why}]`;
  const kept = beginning(text, limit - jsonSize(notice(size)) + 2);
  // In a turn with very many calls, the share may be smaller than the notice.
  return kept === '' ? notice(0).slice(0, Math.max(0, limit - 2)) : kept + notice(jsonSize(kept));
}

/** The longest beginning of a text that fits the limit in bytes of JSON, where a character has one to six. */
function beginning(text: string, limit: number): string {
  // Do not keep half of a surrogate pair.
  return longest(text.length, limit, (length) => text.slice(0, length)).replace(/[\ud800-\udbff]$/, '');
}

/** The longest end of a text that fits, like {@link beginning}. */
function ending(text: string, limit: number): string {
  return longest(text.length, limit, (length) => text.slice(-length)).replace(/^[\udc00-\udfff]/, '');
}

function longest(length: number, limit: number, part: (length: number) => string): string {
  let [end, over] = [0, Math.min(length, limit)];
  while (over - end > 1) {
    const middle = Math.floor((end + over) / 2);
    if (jsonSize(part(middle)) <= limit) end = middle;
    else over = middle;
  }
  return end === 0 ? '' : part(end);
}

/**
 * Converts an output for the history, and stores it when it is large. The history then keeps its beginning and its end.
 * Without a store, or when the store cannot be used, the output is shortened.
 */
async function kept(
  output: unknown,
  limit: number,
  storing: Storing | undefined,
): Promise<{ output: JsonValue; value?: ValueRef }> {
  if (storing === undefined) return { output: recordable(output, limit) };
  const isBinary = output instanceof Uint8Array;
  const json = isBinary ? null : asJson(output);
  if (!isBinary && jsonSize(json) <= Math.min(limit, LIMIT.inlineResult)) return { output: json };
  const text = asText(json);
  const stored = await storing(
    isBinary
      ? { bytes: output, mediaType: 'application/octet-stream' }
      : {
          bytes: Buffer.from(text),
          mediaType: typeof json === 'string' ? 'text/plain' : 'application/json',
        },
  );
  if ('problem' in stored) {
    const why = `, the store of values failed: ${stored.problem.replaceAll(']', ')')}`;
    if (!isBinary) return { output: recordable(json, limit, why) };
    return { output: `[${output.length} bytes that are not kept${why}]` };
  }
  const { digest, bytes } = stored;
  if (isBinary) return { output: `[${bytes} bytes, stored as ${digest}]`, value: stored };
  const head = beginning(text, LIMIT.storedHead);
  const read = `${READ_VALUE_TOOL}({"digest":"${digest}","offset":${Buffer.byteLength(head)}})`;
  const notice = `[… the middle is left out: this result has ${bytes} bytes, and ${read} reads on …]`;
  return { output: `${head}\n${notice}\n${ending(text, LIMIT.storedTail)}`, value: stored };
}

function asText(json: JsonValue): string {
  return typeof json === 'string' ? json : canonicalJson(json);
}

/** How long `toModelOutput` may take, in milliseconds. The effect has happened and waits to be recorded. */
const MODEL_OUTPUT_MS = 5_000;

async function inTime<T>(given: T | PromiseLike<T>): Promise<T> {
  if (!isPromise(given)) return given;
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

/** Converts an output for the history. Adds what `toModelOutput` made of it for the model, if that differs. */
export async function recorded(
  tool: DefinedTool,
  value: unknown,
  { callId, resultLimit = LIMIT.toolResult }: { callId: string; resultLimit?: number },
  storing: Storing | undefined,
  output: unknown,
): Promise<ToolOutput> {
  const given = await modelOutputOf(tool, callId, value, output);
  if (given === null) return kept(output, resultLimit, storing);
  // Both enter the history, each with half of the limit.
  const limit = Math.floor(resultLimit / 2);
  const own = await kept(output, limit, storing);
  try {
    const small = storing === undefined ? given : await storedFiles(given, storing);
    if (jsonSize(small) <= (storing === undefined ? limit : Math.min(limit, LIMIT.inlineResult)))
      return { ...own, modelOutput: small };
    const told = await kept(canonicalJson(small), limit - 100, storing);
    return { ...own, modelOutput: { type: 'text', value: told.output } };
  } catch {
    return own;
  }
}

/** The result of `toModelOutput`; `null` when the model gets the output itself. */
async function modelOutputOf(
  tool: DefinedTool,
  toolCallId: string,
  input: unknown,
  output: unknown,
): Promise<JsonObject | null> {
  if (tool.toModelOutput === undefined) return null;
  try {
    const given = await inTime(tool.toModelOutput({ toolCallId, input, output }));
    if (given.type === (typeof output === 'string' ? 'text' : 'json') && given.value === output) return null;
    const json = toJson(JSON.parse(JSON.stringify(given)));
    const isOutput = typeof json === 'object' && json !== null && !Array.isArray(json);
    return isOutput && MODEL_OUTPUTS.has(json['type']) ? json : null;
  } catch {
    return null;
  }
}

function isPromise<T>(given: T | PromiseLike<T>): given is PromiseLike<T> {
  return typeof (given as { then?: unknown } | null)?.then === 'function';
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
