/** Requests to the HTTP API of this server. */

const KEY = 'perdure.token';

/** An error that the API answered, or a missing answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Keeps the token of the link that `perdure dev` and `perdure serve` print, and takes it out of the address. */
export function takeToken(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given === null) return;
  setToken(given);
  history.replaceState(null, '', location.pathname + location.search);
}

/** Keeps the token until the tab is closed. */
export function setToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

async function send(method: string, path: string, init: RequestInit): Promise<Response> {
  const token = sessionStorage.getItem(KEY);
  const headers = new Headers(init.headers);
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, method, headers });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiError(0, 'SERVER_UNAVAILABLE', 'The server does not answer. Is perdure serve running?');
  }
  if (response.ok) return response;
  throw errorOf(response.status, (await response.json().catch(() => null)) as ErrorAnswer);
}

type ErrorAnswer = {
  error?: { code?: string; message?: string; details?: Record<string, unknown> };
} | null;

function errorOf(status: number, answer: ErrorAnswer): ApiError {
  const { code = 'INTERNAL', message = `The server answered ${status}`, details } = answer?.error ?? {};
  return new ApiError(status, code, message, details);
}

/** Sends a request, and returns the JSON of its answer. @throws ApiError */
export async function request<T>(
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<T> {
  const json =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await send(method, path, { ...json, signal: signal ?? null });
  return (await response.json()) as T;
}

/** The path of a session in the API. */
export function sessionPath(id: string, rest = ''): string {
  return `/sessions/${encodeURIComponent(id)}${rest}`;
}

/** An event of a stream. */
export interface StreamEvent {
  event: string;
  /** To go on after this event. Empty for events that have none. */
  cursor: string;
  data: Record<string, unknown>;
}

/** Reads server-sent events. `EventSource` cannot send a token. @throws ApiError also for the event `error` */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  const response = await send('GET', path, { signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string): string | undefined =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const event = field('event');
      if (event === undefined) continue;
      const data: unknown = JSON.parse(field('data') ?? '{}');
      if (event === 'error') throw errorOf(0, data as ErrorAnswer);
      yield { event, cursor: field('id') ?? '', data: data as StreamEvent['data'] };
    }
  }
}
