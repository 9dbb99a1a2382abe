/** Parses an HTTP body into a {@link ScriptedRequest}. Refuses what a real endpoint refuses. */
import { z } from 'zod';
import { digestJson, type JsonValue } from '../../contract/json.ts';
import { isReasoningModel } from '../../worker/openai-body.ts';
import type { ChatMessage, ChatTool, ChatToolResult, ScriptedRequest } from './types.ts';

const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
    .nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).min(1).nullish(),
  tool_call_id: z.string().nullish(),
});

const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
    description: z.string().nullish(),
    parameters: z.unknown(),
  }),
});

const bodySchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  tools: z.array(tool).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});

type WireMessage = z.infer<typeof message>;

/** A parsed request, or the message of its 400. `includeUsage`: the stream ends with a usage chunk. */
export type ParsedRequest =
  | { ok: true; request: Omit<ScriptedRequest, 'repeat'>; includeUsage: boolean }
  | { ok: false; message: string };

/**
 * Parses the body of a chat completion. With `strict` it also checks what OpenAI checks: every tool call is answered
 * right after it, every tool message answers a call, and reasoning models get no option that they refuse. A test must
 * not pass with a request that a real provider refuses.
 */
export function parseRequest(
  text: string,
  headers: Readonly<Record<string, string>>,
  strict: boolean,
): ParsedRequest {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ok: false, message: 'the body is not JSON' };
  }
  const parsed = bodySchema.safeParse(json);
  if (!parsed.success) return { ok: false, message: z.prettifyError(parsed.error) };
  const body = parsed.data;
  const problem = strict ? (optionProblem(body) ?? transcriptProblem(body.messages)) : undefined;
  if (problem !== undefined) return { ok: false, message: problem };

  const messages = body.messages.map(toMessage);
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  return {
    ok: true,
    includeUsage: body.stream_options?.include_usage === true,
    request: {
      model: body.model,
      stream: body.stream === true,
      messages,
      tools: (body.tools ?? []).map(
        ({ function: { name, description, parameters } }): ChatTool => ({
          name,
          ...(description ? { description } : {}),
          parameters,
        }),
      ),
      headers,
      body,
      // It came out of JSON.parse.
      digest: digestJson(body.messages as JsonValue),
      lastUserText: messages[lastUser]?.text ?? '',
      toolResults: toolResults(messages),
      assistantCount: messages.filter(isAssistant).length,
      stepInTurn: messages.slice(lastUser + 1).filter(isAssistant).length,
    },
  };
}

function isAssistant(message: ChatMessage): boolean {
  return message.role === 'assistant';
}

function toMessage(wire: WireMessage): ChatMessage {
  const { content } = wire;
  return {
    role: wire.role,
    text: typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''),
    ...(wire.reasoning_content ? { reasoning: wire.reasoning_content } : {}),
    toolCalls: (wire.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => ({
      id,
      name,
      args: jsonOrText(args),
    })),
    ...(wire.tool_call_id ? { toolCallId: wire.tool_call_id } : {}),
  };
}

function toolResults(messages: readonly ChatMessage[]): ChatToolResult[] {
  const names = new Map<string, string>();
  const results: ChatToolResult[] = [];
  for (const { toolCalls, toolCallId, text } of messages) {
    for (const { id, name } of toolCalls) names.set(id, name);
    if (toolCallId === undefined) continue;
    results.push({
      callId: toolCallId,
      toolName: names.get(toolCallId) ?? '',
      text,
      value: jsonOrText(text),
    });
  }
  return results;
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** OpenAI's message for an option that the model refuses. */
function optionProblem(body: z.infer<typeof bodySchema>): string | undefined {
  if (!isReasoningModel(body.model)) return undefined;
  const { max_tokens: cap, temperature, reasoning_effort: effort } = body;
  if ((cap ?? undefined) !== undefined) {
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  }
  return (temperature ?? 1) === 1 || effort === 'none'
    ? undefined
    : `Unsupported value: 'temperature' does not support ${JSON.stringify(temperature)} with this model. Only the default (1) value is supported.`;
}

/** OpenAI's message for the first mistake in the order of the messages. */
function transcriptProblem(messages: readonly WireMessage[]): string | undefined {
  let open = new Set<string>();
  let announced = new Set<string>();
  const unanswered = (): string | undefined =>
    open.size === 0
      ? undefined
      : `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`;
  for (const [index, { role, tool_calls, tool_call_id }] of messages.entries()) {
    if (role === 'tool') {
      if (!tool_call_id || !announced.has(tool_call_id)) {
        return `Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' (messages[${index}], tool_call_id ${tool_call_id ?? 'missing'}).`;
      }
      open.delete(tool_call_id);
      continue;
    }
    const problem = unanswered();
    if (problem !== undefined) return problem;
    announced = new Set(role === 'assistant' ? tool_calls?.map(({ id }) => id) : []);
    open = new Set(announced);
  }
  return unanswered();
}
