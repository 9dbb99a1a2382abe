/** Turns a script's decision into the exact JSON that is sent. Pure. */

import { defined } from '../../contract/json.ts';
import type { Fault, Reply, ReplyToolCall, ScriptedRequest } from './types.ts';

/** How an incomplete reply breaks off. */
export type Break = 'cut' | 'hang' | 'garbage' | 'error-event';

/** What the endpoint will send. */
export type Plan =
  | { kind: 'status'; outcome: string; status: number; headers: Record<string, string>; body: string }
  | {
      kind: 'reply';
      outcome: string;
      /** The body of an answer without streaming. */
      completion: Record<string, unknown>;
      /** The events of a stream: the role, the pieces of the reply, the end. */
      opening: unknown[];
      pieces: unknown[];
      closing: unknown[];
      headers: Readonly<Record<string, string>>;
      delayMs: number;
      chunkDelayMs: number;
      broken?: { how: Break; afterChunks: number; message: string };
    };

const UNFINISHED: Reply = { text: 'This is a reply that will not come to its end.' };
const BREAK_AFTER: Record<Break, number> = { hang: 0, cut: 2, garbage: 0, 'error-event': 1 };
const MAX_DEFAULT_CHUNKS = 64;
const ARGUMENT_PIECE = 24;

interface WireToolCall {
  id?: string;
  name: string;
  arguments: string;
}

/** The outcome that is recorded for a decision: `reply`, `fault:<name>`, or `fault:status:<status>`. */
function outcomeOf(decision: Reply | Fault): string {
  if (!('fault' in decision)) return 'reply';
  return decision.fault === 'status' ? `fault:status:${decision.status}` : `fault:${decision.fault}`;
}

/** Plans the answer to `request`. `includeUsage`: the client asked for a usage chunk at the end of a stream. */
export function planAnswer(decision: Reply | Fault, request: ScriptedRequest, includeUsage: boolean): Plan {
  const outcome = outcomeOf(decision);
  const plan = (reply: Reply, shape: Partial<Shape> = {}): Extract<Plan, { kind: 'reply' }> => ({
    kind: 'reply',
    outcome,
    headers: reply.headers ?? {},
    delayMs: reply.delayMs ?? 0,
    chunkDelayMs: reply.chunkDelayMs ?? 0,
    ...render(reply, request, includeUsage, { calls: wireCalls(reply.toolCalls ?? [], request), ...shape }),
  });
  if (!('fault' in decision)) return plan(decision);
  switch (decision.fault) {
    case 'status':
      return planStatus(decision, outcome);
    case 'hang':
    case 'cut':
    case 'garbage':
    case 'error-event': {
      const message = ('message' in decision ? decision.message : undefined) ?? 'The server had an error';
      return {
        ...plan(decision.reply ?? UNFINISHED),
        broken: {
          how: decision.fault,
          afterChunks: decision.afterChunks ?? BREAK_AFTER[decision.fault],
          message,
        },
      };
    }
    case 'no-finish':
      return plan(decision.reply ?? UNFINISHED, { finished: false });
    case 'no-choices':
      return plan({}, { choices: false });
    case 'invalid-arguments': {
      const name = decision.name ?? request.tools[0]?.name ?? 'tool';
      const [call] = wireCalls([{ name, args: {} }], request);
      return plan({}, { calls: [{ ...call, name, arguments: decision.raw ?? '{"broken": ' }] });
    }
    case 'duplicate-ids': {
      const id = decision.id ?? 'call_twice';
      return plan({}, { calls: wireCalls(decision.toolCalls, request).map((call) => ({ ...call, id })) });
    }
    case 'missing-id':
      return plan(
        {},
        {
          calls: wireCalls(decision.toolCalls, request).map(({ name, arguments: args }) => ({
            name,
            arguments: args,
          })),
        },
      );
    case 'refusal':
      return plan({ text: decision.text ?? '', finishReason: 'content_filter' });
  }
}

/** OpenAI's error body. */
export function errorBody(message: string, type: string, code: string | null = null): string {
  return JSON.stringify({ error: { message, type, param: null, code } });
}

const ERROR_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'invalid_request_error',
  429: 'rate_limit_error',
};

function planStatus(fault: Extract<Fault, { fault: 'status' }>, outcome: string): Plan {
  const { status, body } = fault;
  const message = fault.message ?? `scripted status ${status}`;
  return {
    kind: 'status',
    outcome,
    status,
    headers: {
      'content-type': 'application/json',
      ...(fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) }),
      ...fault.headers,
    },
    body:
      body === undefined
        ? errorBody(message, ERROR_TYPES[status] ?? 'server_error')
        : typeof body === 'string'
          ? body
          : JSON.stringify(body),
  };
}

function wireCalls(calls: readonly ReplyToolCall[], request: ScriptedRequest): WireToolCall[] {
  return calls.map(({ name, args, id }, index) => ({
    id: id ?? `call_${request.digest.slice(0, 16)}_${index}`,
    name,
    arguments: JSON.stringify(args),
  }));
}

interface Shape {
  calls: WireToolCall[];
  finished: boolean;
  choices: boolean;
}

function render(
  reply: Reply,
  request: ScriptedRequest,
  includeUsage: boolean,
  { calls, finished = true, choices = true }: Partial<Shape> & Pick<Shape, 'calls'>,
): Pick<Extract<Plan, { kind: 'reply' }>, 'completion' | 'opening' | 'pieces' | 'closing'> {
  const { text, reasoning } = reply;
  const envelope = {
    id: `chatcmpl-${request.digest.slice(0, 24)}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
  };
  const finishReason = finished ? (reply.finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop')) : null;
  const usage = usageOf(reply, calls, request);
  const completion = {
    ...envelope,
    object: 'chat.completion',
    choices: choices
      ? [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: text ?? (calls.length > 0 ? null : ''),
              refusal: null,
              ...defined({ reasoning_content: reasoning }),
              ...(calls.length > 0 ? { tool_calls: calls.map(completeCall) } : {}),
            },
            logprobs: null,
            finish_reason: finishReason,
          },
        ]
      : [],
    ...defined({ usage }),
  };

  const event = (delta: object, finish_reason: string | null = null): object => ({
    ...envelope,
    object: 'chat.completion.chunk',
    choices: choices ? [{ index: 0, delta, logprobs: null, finish_reason }] : [],
  });
  return {
    completion,
    opening: [event({ role: 'assistant', content: '' })],
    pieces: [
      ...split(reasoning ?? '').map((piece) => event({ reasoning_content: piece })),
      ...split(text ?? '', reply.chunks).map((piece) => event({ content: piece })),
      ...calls.flatMap(callDeltas).map((delta) => event({ tool_calls: [delta] })),
    ],
    closing: [
      ...(finished && choices ? [event({}, finishReason)] : []),
      ...(usage !== undefined && includeUsage
        ? [{ ...envelope, object: 'chat.completion.chunk', choices: [], usage }]
        : []),
    ],
  };
}

function completeCall({ id, name, arguments: args }: WireToolCall): object {
  return { ...defined({ id }), type: 'function', function: { name, arguments: args } };
}

/** A call in a stream: name and id first, then its arguments in pieces. */
function callDeltas({ id, name, arguments: args }: WireToolCall, index: number): object[] {
  const start = {
    index,
    ...defined({ id }),
    type: 'function',
    function: { name, arguments: '' },
  };
  const count = Math.ceil(args.length / ARGUMENT_PIECE);
  return [start, ...split(args, count).map((piece) => ({ index, function: { arguments: piece } }))];
}

/** Splits a text into `count` pieces of similar length, never inside a character. By default it splits at words. */
function split(text: string, count?: number): string[] {
  if (text === '') return [];
  if (count === undefined) {
    const words = text.match(/\s*\S+\s*$|\s*\S+|\s+/gu) ?? [text];
    if (words.length <= MAX_DEFAULT_CHUNKS) return words;
  }
  const characters = Array.from(text);
  const pieces = Math.max(1, Math.min(Math.trunc(count ?? MAX_DEFAULT_CHUNKS), characters.length));
  return Array.from({ length: pieces }, (_, piece) =>
    characters
      .slice(
        Math.floor((piece * characters.length) / pieces),
        Math.floor(((piece + 1) * characters.length) / pieces),
      )
      .join(''),
  );
}

/** Estimates a text's tokens: a quarter of its UTF-8 bytes, rounded up. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

function usageOf(reply: Reply, calls: WireToolCall[], request: ScriptedRequest): object | undefined {
  if (reply.usage === 'omit') return undefined;
  const given = reply.usage ?? {};
  const { messages, tools } = request.body;
  const prompt =
    given.inputTokens ?? estimateTokens(JSON.stringify(messages) + (tools ? JSON.stringify(tools) : ''));
  const reasoning = given.reasoningTokens ?? estimateTokens(reply.reasoning ?? '');
  const completion =
    given.outputTokens ??
    reasoning +
      estimateTokens((reply.text ?? '') + calls.map(({ name, arguments: args }) => name + args).join(''));
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: given.cachedInputTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
