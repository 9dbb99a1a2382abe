/** A model endpoint that answers from a script, over real HTTP in the protocol of OpenAI's chat completions. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PerdureError } from '../../contract/errors.ts';
import { errorBody, type Plan, planAnswer } from './plan.ts';
import { openRecordFile, type RecordLine, readRecordFile } from './record.ts';
import { parseRequest } from './request.ts';
import type { Script, ScriptedRequest } from './types.ts';

/** One call that the endpoint received. */
export interface RecordedRequest extends RecordLine {
  readonly request: ScriptedRequest;
  /**
   * `open` while the exchange lasts, `done` when the endpoint has done all that the script said, `gone` when the client
   * or `stop()` ended it before that.
   */
  readonly state: 'open' | 'done' | 'gone';
}

/** How to start a {@link ScriptedModel}. */
export interface ScriptedModelOptions {
  readonly script: Script;
  /** TCP port. Default: 0, any free one. */
  readonly port?: number;
  /** Address to listen on. Default: 127.0.0.1, this machine only. */
  readonly host?: string;
  /** JSONL file to which each call is appended ({@link RecordLine}), synced before the answer begins. */
  readonly recordFile?: string;
  /**
   * Refuse (400) what OpenAI refuses: a tool call without its result, `max_tokens` or a temperature for a model with
   * the name of a reasoning model (o3, gpt-5). Default: true.
   */
  readonly strict?: boolean;
}

/** A running endpoint. */
export interface ScriptedModel {
  /** Base URL for a client on this machine. Ends in `/v1`. */
  readonly url: string;
  readonly port: number;
  /** All well-formed calls of this process so far, oldest first; it grows while the endpoint runs. */
  readonly requests: readonly RecordedRequest[];
  /**
   * Resolves as soon as `condition` holds. It is checked whenever a call arrives or ends. Rejects with
   * `SERVER_UNAVAILABLE` when the endpoint stops, and with what `condition` throws.
   */
  waitFor(condition: (requests: readonly RecordedRequest[]) => boolean): Promise<void>;
  /** Ends every open exchange and frees the port. Calling it again does nothing. */
  stop(): Promise<void>;
}

const STOPPED = 'the scripted model was stopped';

type Recorded = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

/**
 * Starts a model endpoint that answers from a script: `POST /v1/chat/completions`, streamed (SSE) or not. Any OpenAI
 * client for chat completions works with it. As at OpenAI, a stream has usage only if the client asks for it
 * (`stream_options.include_usage`).
 *
 * A script that throws gives the client a 400 with the error's message. The endpoint keeps no conversation:
 * a call repeated after a crash gets what the script says to the same request.
 */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const recordFile = options.recordFile === undefined ? undefined : openRecordFile(options.recordFile);
  const repeats = new Map<string, number>();
  const countCall = ({ model, digest }: { model: string; digest: string }): number => {
    const key = `${digest}:${model}`;
    const before = repeats.get(key) ?? 0;
    repeats.set(key, before + 1);
    return before;
  };
  if (options.recordFile !== undefined) {
    for (const line of readRecordFile(options.recordFile)) countCall(line);
  }

  const requests: Recorded[] = [];
  const waiting = new Set<{ check: () => void; reject: (error: Error) => void }>();
  const changed = (): void => {
    for (const { check } of waiting) check();
  };
  const stopping = new AbortController();

  const server = createServer((incoming, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, stopping.signal]);
    handle(incoming, response, signal).catch((error: unknown) => {
      if (signal.aborted || response.headersSent) response.destroy();
      else sendJson(response, 500, errorBody(`the scripted model failed: ${String(error)}`, 'server_error'));
    });
  });
  // Idle connections stay open: closing one at the wrong moment would be a fault that no script asked for.
  server.keepAliveTimeout = 0;

  async function handle(
    incoming: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const route = `${incoming.method} ${incoming.url?.split('?')[0]}`;
    const text = await readBody(incoming);
    if (route !== 'POST /v1/chat/completions') {
      const message = `${route} is not served; this endpoint speaks chat completions only (POST /v1/chat/completions)`;
      return sendJson(response, 404, errorBody(message, 'invalid_request_error'));
    }
    const parsed = parseRequest(text, flatHeaders(incoming), options.strict ?? true);
    if (!parsed.ok) return sendJson(response, 400, errorBody(parsed.message, 'invalid_request_error'));

    const request: ScriptedRequest = { ...parsed.request, repeat: countCall(parsed.request) };
    const plan = await decide(options.script, request, parsed.includeUsage);
    const { model, digest, assistantCount } = request;
    const line = { at: new Date().toISOString(), model, digest, assistantCount, outcome: plan.outcome };
    if (stopping.signal.aborted) return;
    recordFile?.append(line);
    const recorded: Recorded = { ...line, request, state: 'open' };
    requests.push(recorded);
    changed();
    try {
      await answer(response, plan, request.stream, signal);
      recorded.state = 'done';
    } catch (error) {
      recorded.state = 'gone';
      throw error;
    } finally {
      changed();
    }
  }

  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    recordFile?.close();
    throw error;
  }
  const address = server.address() as AddressInfo;

  let stopped: Promise<void> | undefined;
  return {
    url: `http://${reachable(address)}/v1`,
    port: address.port,
    requests,
    waitFor: (condition) =>
      new Promise((resolve, reject) => {
        if (stopping.signal.aborted) throw new PerdureError('SERVER_UNAVAILABLE', STOPPED);
        const waiter = {
          reject,
          check: () => {
            try {
              if (!condition(requests)) return;
              resolve();
            } catch (error) {
              reject(error instanceof Error ? error : new Error(String(error)));
            }
            waiting.delete(waiter);
          },
        };
        waiting.add(waiter);
        waiter.check();
      }),
    stop: () => {
      stopped ??= (async () => {
        const closed = once(server, 'close');
        stopping.abort();
        server.close();
        server.closeAllConnections();
        await closed;
        recordFile?.close();
        for (const { reject } of waiting) reject(new PerdureError('SERVER_UNAVAILABLE', STOPPED));
        waiting.clear();
      })();
      return stopped;
    },
  };
}

/** Where this machine reaches a listener. One that listens on all addresses is reached on the loopback. */
function reachable({ address, family, port }: AddressInfo): string {
  if (family !== 'IPv6') return `${address === '0.0.0.0' ? '127.0.0.1' : address}:${port}`;
  return `[${address === '::' ? '::1' : address}]:${port}`;
}

async function decide(script: Script, request: ScriptedRequest, includeUsage: boolean): Promise<Plan> {
  try {
    return planAnswer(await script(request), request, includeUsage);
  } catch (error) {
    // Not a 500: a client would retry that, and nobody would see the script's error.
    const message = `the script threw: ${messageOf(error)}`;
    const plan = planAnswer({ fault: 'status', status: 400, message }, request, includeUsage);
    return { ...plan, outcome: 'fault:script' };
  }
}

/** Sends a planned answer. Throws when the client disconnects early, or when the plan is to hang. */
async function answer(
  response: ServerResponse,
  plan: Plan,
  stream: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (plan.kind === 'status') {
    response.writeHead(plan.status, plan.headers).end(plan.body);
    return;
  }
  if (plan.delayMs > 0) await sleep(plan.delayMs, undefined, { signal });
  const { broken } = plan;
  if (broken !== undefined && broken.afterChunks <= 0) {
    if (broken.how === 'hang') return untilGone(signal);
    if (broken.how === 'cut') return void response.destroy();
  }
  if (!stream) return answerAtOnce(response, plan, signal);

  response.writeHead(200, {
    ...plan.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  });
  const event = (value: unknown): Promise<void> =>
    write(response, `data: ${JSON.stringify(value)}\n\n`, signal);
  for (const chunk of plan.opening) await event(chunk);
  for (const piece of plan.pieces.slice(0, broken?.afterChunks)) {
    if (plan.chunkDelayMs > 0) await sleep(plan.chunkDelayMs, undefined, { signal });
    await event(piece);
  }
  if (broken?.how === 'hang') return untilGone(signal);
  if (broken?.how === 'cut') return void response.destroy();
  if (broken?.how === 'garbage')
    await write(response, 'data: {"id": "chatcmpl-garbage", "choices": [{\n\n', signal);
  else if (broken !== undefined)
    await write(response, `data: ${errorBody(broken.message, 'server_error')}\n\n`, signal);
  else for (const chunk of plan.closing) await event(chunk);
  response.end('data: [DONE]\n\n');
}

async function answerAtOnce(
  response: ServerResponse,
  { completion, headers, broken }: Extract<Plan, { kind: 'reply' }>,
  signal: AbortSignal,
): Promise<void> {
  const body = JSON.stringify(completion);
  if (broken === undefined) return sendJson(response, 200, body, headers);
  if (broken.how === 'error-event') return sendJson(response, 500, errorBody(broken.message, 'server_error'));
  const half = body.slice(0, body.length / 2);
  if (broken.how === 'garbage') return sendJson(response, 200, half);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  await write(response, half, signal);
  return broken.how === 'hang' ? untilGone(signal) : void response.destroy();
}

function sendJson(response: ServerResponse, status: number, body: string, headers: object = {}): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json' }).end(body);
}

/** Resolves when the kernel has the bytes, so that a cut comes after them and does not replace them. */
function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    response.write(text, (error) => {
      signal.removeEventListener('abort', onAbort);
      if (error) reject(error);
      else resolve();
    });
  });
}

async function untilGone(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
  signal.throwIfAborted();
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

function flatHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}
