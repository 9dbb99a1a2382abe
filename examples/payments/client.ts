/** The client of the payments service, as a tool uses it: every error says whether the effect can have happened. */
import type { z } from 'zod';
import {
  type Email,
  type EmailInput,
  email,
  type Order,
  order,
  type Refund,
  type RefundInput,
  refund,
} from './protocol.ts';

/** What the service knows of a key: the shape that a tool's `verify` returns. */
export type Found<Output> = { outcome: 'landed'; output: Output } | { outcome: 'absent' };

/**
 * Why a call gave no result.
 *
 * - `NOT_SENT`: no byte left this machine: no connection could be made, or the signal had fired before.
 * - `REFUSED`: the service refused (4xx): the effect may have happened, unless `reason` is one of {@link TURNED_AWAY}.
 * - `FAILED`: the service said that it failed (5xx): the effect may have happened.
 * - `NO_REPLY`: the connection broke, or what came was not the protocol: the effect may have happened.
 */
export type PaymentsErrorCode = 'NOT_SENT' | 'REFUSED' | 'FAILED' | 'NO_REPLY';

/**
 * The service's words for requests that had no effect. `key_reused` is not one of them: that key already has an effect.
 * Nor is a 4xx without such a word: a proxy may have sent it.
 */
const TURNED_AWAY: ReadonlySet<string | undefined> = new Set(['invalid', 'no_such_charge', 'too_much']);

export class PaymentsError extends Error {
  override readonly name = 'PaymentsError';
  readonly code: PaymentsErrorCode;
  /** The HTTP status, if there was one. */
  readonly status: number | undefined;
  /** The service's own word for it, if it gave one. */
  readonly reason: string | undefined;
  constructor(
    code: PaymentsErrorCode,
    message: string,
    options: { status?: number; reason?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = options.status;
    this.reason = options.reason;
  }

  /** Whether the effect has certainly not happened: then a tool may throw a `NotAttemptedError`. */
  get notDone(): boolean {
    return this.code === 'NOT_SENT' || (this.code === 'REFUSED' && TURNED_AWAY.has(this.reason));
  }
}

/**
 * Each call rejects with a {@link PaymentsError}, or with the signal's reason when it fires under way; then the
 * effect may have happened. `find` and `findEmail` ask by the key of an earlier call.
 */
export interface PaymentsClient {
  order(id: string, signal?: AbortSignal): Promise<Order>;
  refund(input: RefundInput, idempotencyKey: string, signal?: AbortSignal): Promise<Refund>;
  find(idempotencyKey: string, signal?: AbortSignal): Promise<Found<Refund>>;
  sendEmail(input: EmailInput, idempotencyKey: string, signal?: AbortSignal): Promise<Email>;
  findEmail(idempotencyKey: string, signal?: AbortSignal): Promise<Found<Email>>;
}

/** A client of the service at `url`. */
export function createPaymentsClient(url: string): PaymentsClient {
  async function post<Output>(
    path: string,
    input: unknown,
    key: string,
    schema: z.ZodType<Output>,
    signal?: AbortSignal,
  ): Promise<Output> {
    const init: Init = {
      method: 'POST',
      // A request that was redirected has been received once already.
      redirect: 'manual',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(input),
    };
    return parse(schema, await request(`${url}${path}`, init, signal));
  }

  async function find<Output>(
    path: string,
    key: string,
    schema: z.ZodType<Output>,
    signal?: AbortSignal,
  ): Promise<Found<Output>> {
    try {
      const found = await request(`${url}${path}?key=${encodeURIComponent(key)}`, {}, signal);
      return { outcome: 'landed', output: parse(schema, found) };
    } catch (error) {
      // Only the service's own word counts: a 404 of something in between must not be taken for "absent".
      if (error instanceof PaymentsError && error.reason === 'unknown_key') return { outcome: 'absent' };
      throw error;
    }
  }

  return {
    order: async (id, signal) =>
      parse(order, await request(`${url}/orders/${encodeURIComponent(id)}`, {}, signal)),
    refund: (input, key, signal) => post('/refunds', input, key, refund, signal),
    find: (key, signal) => find('/refunds', key, refund, signal),
    sendEmail: (input, key, signal) => post('/emails', input, key, email, signal),
    findEmail: (key, signal) => find('/emails', key, email, signal),
  };
}

interface Init {
  method?: string;
  redirect?: 'manual';
  headers?: Record<string, string>;
  body?: string;
}

async function request(url: string, init: Init, signal?: AbortSignal): Promise<unknown> {
  if (signal?.aborted)
    throw new PaymentsError('NOT_SENT', 'cancelled before it was sent', { cause: signal.reason });
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      ...init,
      // A connection each: on one kept from before, "the service is down" looks like "the reply was lost".
      headers: { ...init.headers, connection: 'close' },
      ...(signal === undefined ? {} : { signal }),
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (neverConnected(error))
      throw new PaymentsError('NOT_SENT', 'the service cannot be reached', { cause: error });
    throw new PaymentsError('NO_REPLY', 'the connection broke before the reply was complete', {
      cause: error,
    });
  }
  const { status } = response;
  const body = json(text);
  if (response.ok) return body;
  const { code, message } =
    (body as { error?: { code?: string; message?: string } } | undefined)?.error ?? {};
  const said = status < 400 ? 'NO_REPLY' : status < 500 ? 'REFUSED' : 'FAILED';
  throw new PaymentsError(said, message ?? response.statusText, {
    status,
    ...(code === undefined ? {} : { reason: code }),
  });
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function parse<Output>(schema: z.ZodType<Output>, value: unknown): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PaymentsError('NO_REPLY', 'the reply is not what the service sends', { cause: parsed.error });
}

const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/** Whether no connection was made: `fetch` hides the reason in its cause, one for each address it tried. */
function neverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const reasons: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return reasons.every((reason) =>
    NEVER_CONNECTED.has((reason as { code?: string } | undefined)?.code ?? ''),
  );
}
