/** What a failed model request means: whether it may have been billed, and whether a retry can help. */
import { APICallError } from '@ai-sdk/provider';
import { defined } from '../contract/json.ts';

/** One failed request. */
export interface RequestFailure {
  kind: 'down' | 'rejected' | 'invalid_response' | 'interrupted' | 'context_window';
  message: string;
  /** Whether the provider may have billed the request. Then it is charged, and a retry needs a new reserve. */
  billed: boolean;
  /** How long the provider asks us to wait, in milliseconds. */
  retryAfterMs?: number;
  /** The provider refused the request because of a rate limit. */
  limited?: true;
}

/** Socket errors of Node and undici that occur before the request is sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Too many requests. */
const TOO_MANY = 429;

/** Time-outs of a gateway: the provider behind it may still be working, as after a dropped connection. */
const TIMED_OUT = new Set([408, 504, 522, 524]);

/**
 * What providers say of a prompt that is larger than the model's context window. Their status codes differ, and only
 * OpenAI has a code for it.
 */
const TOO_LONG = new RegExp(
  [
    'context_length_exceeded',
    'request_too_large',
    'context (length|window|limit|size)',
    '(prompt|input) is too long',
    'maximum (context|prompt) length',
    'exceeds the maximum number of tokens',
    'reduce the length of the (messages|prompt|input)',
    'too many (input |prompt )?tokens',
    'too large for model with',
  ].join('|'),
  'i',
);

/** The error with the provider's answer. The AI SDK's gateway wraps it in another error. */
export function apiErrorOf(error: unknown): APICallError | undefined {
  if (APICallError.isInstance(error)) return error;
  return error instanceof Error && APICallError.isInstance(error.cause) ? error.cause : undefined;
}

/** Whether a provider refused a prompt as too large. A limit of tokens per minute does not count: waiting helps. */
function isTooLong(error: unknown, message: string): boolean {
  const refused = apiErrorOf(error);
  if (refused?.statusCode === TOO_MANY) return false;
  // The body may quote the prompt, which may contain these words. So only error codes are searched for in it.
  const code = /"(context_length_exceeded|request_too_large)"/.exec(refused?.responseBody ?? '')?.[1];
  return TOO_LONG.test(`${message} ${refused?.message ?? ''} ${codeOf(error) ?? ''} ${code ?? ''}`);
}

/** Classifies what the AI SDK threw or streamed as an error. */
export function requestFailure(error: unknown): RequestFailure {
  const message = textOf(error);
  if (isTooLong(error, message)) return { kind: 'context_window', message, billed: false };
  if (APICallError.isInstance(error)) return apiFailure(error, message);
  const name = error instanceof Error ? error.name : '';
  if (
    name === 'AI_LoadAPIKeyError' ||
    name === 'AI_UnsupportedFunctionalityError' ||
    name === 'AI_InvalidPromptError' ||
    name === 'GatewayAuthenticationError'
  ) {
    return { kind: 'rejected', message, billed: false };
  }
  // The AI SDK's gateway wraps errors, and reports a lost request as a failed one.
  if (error instanceof Error && APICallError.isInstance(error.cause)) return apiFailure(error.cause, message);
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
  if (TIMED_OUT.has(statusCode)) return { kind: 'interrupted', message, billed: true };
  // Any other refusal (500, 502, 503) counts as a failed request, which providers do not bill.
  if (!error.isRetryable) return { kind: 'rejected', message, billed: false };
  const retryAfterMs = retryAfter(error.responseHeaders);
  return {
    kind: 'down',
    message,
    billed: false,
    ...defined({ retryAfterMs }),
    ...(statusCode === TOO_MANY ? { limited: true as const } : {}),
  };
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

/** How many causes are searched: causes can form a cycle. */
const DEPTH = 8;

/** The first code among an error and its causes. */
function codeOf(error: unknown, depth: number = DEPTH): string | undefined {
  if (typeof error !== 'object' || error === null || depth === 0) return undefined;
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  return codeOf(first, depth - 1) ?? codeOf(cause, depth - 1);
}

function textOf(error: unknown): string {
  if (APICallError.isInstance(error) && error.statusCode !== undefined) {
    return `HTTP ${error.statusCode}: ${error.message}`.slice(0, 2_000);
  }
  if (error instanceof Error) return `${error.name}: ${error.message}`.slice(0, 2_000);
  const { message } = (error ?? {}) as { message?: unknown };
  return (typeof message === 'string' && message !== '' ? message : asText(error)).slice(0, 2_000);
}

function asText(error: unknown): string {
  try {
    return JSON.stringify(error ?? null) ?? typeof error;
  } catch {
    return `a ${typeof error} that JSON cannot hold`;
  }
}
