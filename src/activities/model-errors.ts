/** What a failed request to a model means: whether it may have been billed, and whether asking again can help. */
import { APICallError } from 'ai';

/** One failed request. */
export interface RequestFailure {
  kind: 'down' | 'rejected' | 'invalid_response' | 'interrupted';
  message: string;
  /** Whether the provider may have billed it: then it is charged, and asked again only under a new reserve. */
  billed: boolean;
  /** How long the provider asks us to wait, in milliseconds. */
  retryAfterMs?: number;
}

/** Errors of Node's and undici's sockets that come before a request was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Classifies what the AI SDK threw or streamed as an error. */
export function requestFailure(error: unknown): RequestFailure {
  const message = textOf(error);
  if (APICallError.isInstance(error)) return apiFailure(error, message);
  const name = error instanceof Error ? error.name : '';
  if (
    name === 'AI_LoadAPIKeyError' ||
    name === 'AI_UnsupportedFunctionalityError' ||
    name === 'AI_InvalidPromptError'
  ) {
    return { kind: 'rejected', message, billed: false };
  }
  if (name.startsWith('AI_')) return { kind: 'invalid_response', message, billed: true };
  if (codeOf(error) !== undefined && NOT_SENT.has(codeOf(error) ?? ''))
    return { kind: 'down', message, billed: false };
  return { kind: 'interrupted', message, billed: true };
}

function apiFailure(error: APICallError, message: string): RequestFailure {
  const { statusCode } = error;
  if (statusCode === undefined) {
    return NOT_SENT.has(codeOf(error.cause) ?? '')
      ? { kind: 'down', message, billed: false }
      : { kind: 'interrupted', message, billed: true };
  }
  if (statusCode < 400) {
    const parsed = error.cause instanceof Error && error.cause.name.startsWith('AI_');
    return { kind: parsed ? 'invalid_response' : 'interrupted', message, billed: true };
  }
  if (!error.isRetryable) return { kind: 'rejected', message, billed: false };
  const retryAfterMs = retryAfter(error.responseHeaders);
  return { kind: 'down', message, billed: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function retryAfter(headers: Record<string, string> | undefined): number | undefined {
  const ms = Number(headers?.['retry-after-ms']);
  if (Number.isFinite(ms) && ms > 0) return ms;
  const value = headers?.['retry-after'];
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1_000);
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

/** The code of the innermost cause that has one. */
function codeOf(error: unknown): string | undefined {
  for (
    let at: unknown = error;
    typeof at === 'object' && at !== null;
    at = (at as { cause?: unknown }).cause
  ) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') return code;
    const nested = (at as { errors?: unknown[] }).errors?.[0];
    if (nested !== undefined && codeOf(nested) !== undefined) return codeOf(nested);
  }
  return undefined;
}

function textOf(error: unknown): string {
  if (APICallError.isInstance(error) && error.statusCode !== undefined) {
    return `HTTP ${error.statusCode}: ${error.message}`.slice(0, 2_000);
  }
  if (error instanceof Error) return `${error.name}: ${error.message}`.slice(0, 2_000);
  const { message } = (error ?? {}) as { message?: unknown };
  return (typeof message === 'string' ? message : JSON.stringify(error ?? null)).slice(0, 2_000);
}
