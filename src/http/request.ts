/** Reads requests. Errors name the field, and nothing is read beyond its limit. */
import { invalid, PerdureError } from '../contract/errors.ts';
import { MAX_DEPTH } from '../contract/json.ts';
import { notKnown, parseKnown } from '../contract/unknown-name.ts';
import { reportUnexpected } from './errors.ts';
import type { ApiRequest, Operation, QueryParameter } from './operation.ts';
import type { Principal } from './principal.ts';

/** Nesting of a body: that of a value, and the body around it. */
const DEPTH = MAX_DEPTH + 1;

/** The decoded parameters of a path. */
export function readParams(template: string, pathname: string): Map<string, string> {
  const given = pathname.split('/');
  const params = new Map<string, string>();
  for (const [i, segment] of template.split('/').entries()) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) continue;
    try {
      params.set(name, decodeURIComponent(given[i] ?? ''));
    } catch {
      throw invalid(name, `${given[i] ?? ''} is not percent-encoded UTF-8`);
    }
  }
  return params;
}

/** The parameters of a query string: known ones, once each, of their types. */
export function readQuery(
  known: Readonly<Record<string, QueryParameter>>,
  search: URLSearchParams,
): Map<string, string | number | boolean> {
  const values = new Map<string, string | number | boolean>();
  for (const [name, text] of search) {
    const parameter = known[name];
    if (parameter === undefined || !Object.hasOwn(known, name)) {
      throw invalid(name.slice(0, 80), notKnown(Object.keys(known)));
    }
    if (values.has(name)) throw invalid(name, 'is given twice');
    values.set(name, readValue(name, text, parameter));
  }
  return values;
}

function readValue(
  name: string,
  text: string,
  { type, minimum, maximum }: QueryParameter,
): string | number | boolean {
  if (type === 'string') return text;
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw invalid(name, 'write true or false');
    return text === 'true';
  }
  const value = Number(text);
  if (!/^-?\d{1,15}$/.test(text))
    throw invalid(name, `${JSON.stringify(text.slice(0, 40))} is not a whole number`);
  if (minimum !== undefined && value < minimum) throw invalid(name, `the minimum is ${minimum}`);
  if (maximum !== undefined && value > maximum) throw invalid(name, `the maximum is ${maximum}`);
  return value;
}

/** The checked body of a request. A longer body than `limit` bytes is not read to its end. */
export async function readBody(
  request: Request,
  { body: schema }: Operation,
  limit: number,
): Promise<unknown> {
  if (schema === undefined) return undefined;
  const type = request.headers.get('content-type');
  // Where every field is optional, the body may be missing.
  const value = type === null && !hasBody(request) ? {} : await readJson(request, type, limit);
  const parsed = parseKnown(() => schema, value);
  if (!parsed.ok) throw invalid(parsed.field === 'input' ? 'body' : parsed.field, parsed.problem);
  return parsed.value;
}

function hasBody({ headers }: Request): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0;
}

async function readJson(request: Request, type: string | null, limit: number): Promise<unknown> {
  if (type === null || !/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    throw new PerdureError(
      'UNSUPPORTED_MEDIA_TYPE',
      `Content-Type is ${type ?? 'missing'}: send JSON in UTF-8, with Content-Type: application/json`,
    );
  }
  return parseJson(decode(await readBytes(request, limit)));
}

/**
 * Replaces Hono's `bodyLimit`. That copies a chunked request, which fails because Hono's Node server has its own
 * `Request` class.
 */
async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const tooLarge = (size: string): PerdureError =>
    new PerdureError(
      'TOO_LARGE',
      `The body is ${size} bytes, the limit is ${limit}. Send a large file by its URL, or serve with a larger --body-limit`,
      {
        details: { field: 'body', limit },
      },
    );
  const said = Number(request.headers.get('content-length') ?? 0);
  if (said > limit) throw tooLarge(String(said));
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(`more than ${limit}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new PerdureError('NOT_JSON', 'The body is not UTF-8', { cause: error });
  }
}

function parseJson(text: string): unknown {
  if (text === '') throw notJson(text, 0, 'it is empty. Send an object, at least {}');
  const { tooDeepAt, changed } = scan(text);
  if (tooDeepAt !== null) {
    throw notJson(text, tooDeepAt, `arrays and objects nest deeper than ${DEPTH} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const problem = (error as Error).message;
    throw notJson(text, positionOf(text, problem), problem);
  }
  if (changed !== null) throw changedNumber(changed);
  return value;
}

function notJson(text: string, position: number, problem: string): PerdureError {
  const before = text.slice(0, position).split('\n');
  const place = { position, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
  const where = `position ${position} (line ${place.line}, column ${place.column})`;
  return new PerdureError('NOT_JSON', `The body is not JSON at ${where}: ${problem}`, { details: place });
}

/** Where JSON is invalid. The engine names the position of most problems, but not of a token. */
function positionOf(text: string, problem: string): number {
  const told = /at position (\d+)/.exec(problem)?.[1];
  if (told !== undefined) return Number(told);
  if (!problem.startsWith('Unexpected token')) return text.length;
  // Exactly the prefixes that include the token have this problem.
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (hasBadToken(text.slice(0, middle + 1))) high = middle;
    else low = middle + 1;
  }
  return low;
}

function hasBadToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return (error as Error).message.startsWith('Unexpected token');
  }
}

/** A number that `JSON.parse` would change, and the keys that lead to it. */
interface ChangedNumber {
  readonly literal: string;
  readonly path: readonly (string | number)[];
}

/** What `JSON.parse` does not report. */
interface Scan {
  /** Where the text opens one array or object too many. */
  readonly tooDeepAt: number | null;
  readonly changed: ChangedNumber | null;
}

/** Scans a text that may not be JSON. */
function scan(text: string): Scan {
  const path: (string | number)[] = [];
  const literals = /-?\d[\d.eE+-]*/y;
  let changed: ChangedNumber | null = null;
  let quoted = '';
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (character === '"') {
      const start = i;
      while (++i < text.length && text[i] !== '"') if (text[i] === '\\') i++;
      quoted = text.slice(start, i + 1);
    } else if (character === '[' || character === '{') {
      if (path.push(character === '[' ? 0 : '') > DEPTH) return { tooDeepAt: i, changed };
    } else if (character === ']' || character === '}') path.pop();
    else if (character === ':' && path.length > 0) path[path.length - 1] = quoted;
    else if (character === ',') {
      const last = path.at(-1);
      if (typeof last === 'number') path[path.length - 1] = last + 1;
    } else if (character === '-' || (character >= '0' && character <= '9')) {
      literals.lastIndex = i;
      const literal = literals.exec(text)?.[0] ?? character;
      i += literal.length - 1;
      if (changed === null && isChanged(literal)) changed = { literal, path: [...path] };
    }
  }
  return { tooDeepAt: null, changed };
}

/** Whether `JSON.parse` changes a number: a large integer, one out of range, or -0. */
function isChanged(literal: string): boolean {
  const value = Number(literal);
  if (/^-?\d+$/.test(literal) && !Number.isSafeInteger(value)) return true;
  return Math.abs(value) === Infinity || Object.is(value, -0);
}

function changedNumber({ literal, path }: ChangedNumber): PerdureError {
  const keys = path.map((key) => (typeof key === 'number' ? key : (JSON.parse(key) as string)));
  const problem = Object.is(Number(literal), -0)
    ? 'would be stored as 0. Send 0'
    : `is out of range: integers go up to ${Number.MAX_SAFE_INTEGER}. Send larger ones as strings`;
  return invalid(keys.join('.').slice(0, 200) || 'body', `${literal.slice(0, 40)} ${problem}`);
}

export function apiRequest(
  request: Request,
  params: ReadonlyMap<string, string>,
  query: ReadonlyMap<string, unknown>,
  body: unknown,
  principal: Principal,
  { closing, onError }: { closing: AbortSignal; onError: ((error: unknown) => void) | undefined },
): ApiRequest<unknown> {
  return {
    param: (name) => params.get(name) ?? '',
    text: (name) => query.get(name) as string | undefined,
    integer: (name) => query.get(name) as number | undefined,
    flag: (name) => query.get(name) === true,
    header: (name) => request.headers.get(name) ?? undefined,
    body,
    principal,
    get signal() {
      return AbortSignal.any([request.signal, closing]);
    },
    report: (error) => reportUnexpected(error, onError, request.signal),
  };
}

/**
 * The id of an idempotent request: the `Idempotency-Key`, or the body's own `id`.
 *
 * @throws PerdureError `INVALID_ARGUMENT`
 */
export function idempotencyKey(request: ApiRequest<unknown>, id: string | undefined): string | undefined {
  const header = request.header('idempotency-key');
  if (header === undefined) return id;
  if (/[^\x20-\x7e]/.test(header)) {
    throw invalid('Idempotency-Key', 'a header can only carry ASCII. Put other keys into the body, as id');
  }
  if (id !== undefined && id !== header) throw invalid('Idempotency-Key', `is not the id of the body, ${id}`);
  return header;
}

/** Refuses ids that HTTP clients take for a folder in a path. @throws PerdureError `INVALID_ARGUMENT` */
export function addressable(id: string | undefined): string | undefined {
  if (id !== '.' && id !== '..') return id;
  throw invalid('id', `${id} means a folder in a path, so no route could name it. Choose another id`);
}
