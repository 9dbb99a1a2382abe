/** Spans and metrics of activities, with the names of OpenTelemetry's conventions for generative AI. */
import { Context } from '@temporalio/activity';
import type { Model } from '../agent/index.ts';
import type { ToolInput, ToolResult, VerifyInput, VerifyResult } from '../contract/activities.ts';
import { defined, type JsonValue } from '../contract/json.ts';
import type { Message } from '../contract/messages.ts';
import type { ModelInput, ReadResult } from '../contract/model-call.ts';
import { capturesContent, inSpan, instruments, type OperationSpan, type Turn } from '../telemetry/index.ts';
import type { RequestResult } from './reply-collector.ts';
import type { RequestMode } from './request-model.ts';

type Attributes = Parameters<OperationSpan['set']>[0];

/** The AI SDK's names of providers that the conventions call something else. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  azure: 'azure.ai.openai',
  google: 'gcp.gemini',
  mistral: 'mistral_ai',
  vertex: 'gcp.vertex_ai',
  xai: 'x_ai',
};

/** Traces one request to one model. */
export function tracedRequest(
  input: ModelInput,
  asked: {
    model: Model;
    mode: RequestMode;
    maxOutputTokens: number;
    instructions: string;
    messages: readonly Message[];
  },
  run: () => Promise<RequestResult>,
): Promise<RequestResult> {
  const { model, mode, maxOutputTokens, instructions, messages } = asked;
  const [own = ''] = model.provider.split('.');
  const names = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': PROVIDERS[own] ?? own,
    'gen_ai.request.model': model.modelId,
  };
  const attributes = {
    ...names,
    'gen_ai.request.max_tokens': maxOutputTokens,
    'perdure.attempt': Context.current().info.attempt,
    ...(mode === 'reply' ? {} : { 'perdure.mode': mode }),
  };
  const operation = {
    turn: turnOf(input.turn),
    agent: input.agent,
    name: `chat ${model.modelId}`,
    client: true,
    attributes,
  };
  return inSpan(operation, async (span) => {
    const since = performance.now();
    if (span.recording && capturesContent()) {
      span.set({
        'gen_ai.system_instructions': JSON.stringify([{ type: 'text', content: instructions }]),
        'gen_ai.input.messages': JSON.stringify(
          messages.map(({ role, blocks }) => ({ role, parts: partsOf(blocks) })),
        ),
      });
    }
    const result = await run();
    const failure = result.ok ? {} : { 'error.type': result.failure.kind };
    const labels = { ...names, 'gen_ai.agent.name': input.agent, ...failure };
    instruments()?.operations.record((performance.now() - since) / 1_000, labels);
    if (!result.ok) {
      // A provider's message may quote the prompt.
      span.fail(result.failure.kind, capturesContent() ? result.failure.message : undefined);
      return result;
    }
    const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens } = result.usage;
    for (const [type, tokens] of [
      ['input', inputTokens],
      ['output', outputTokens],
    ] as const) {
      if (tokens !== null) instruments()?.tokens.record(tokens, { ...labels, 'gen_ai.token.type': type });
    }
    span.set({
      'gen_ai.response.finish_reasons': [result.finishReason],
      ...defined({
        'gen_ai.usage.input_tokens': inputTokens ?? undefined,
        'gen_ai.usage.output_tokens': outputTokens ?? undefined,
        'gen_ai.usage.cache_read.input_tokens': cachedInputTokens,
        'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens,
      }),
      ...(span.recording && capturesContent() ? { 'gen_ai.output.messages': output(result) } : {}),
    });
    return result;
  });
}

/** Traces one dispatch or attempt of a tool. */
export function tracedTool(input: ToolInput, run: () => Promise<ToolResult>): Promise<ToolResult> {
  const { effect, dispatchNo } = input;
  return tracedCall(
    input,
    'execute_tool',
    { 'perdure.effect': effect, 'perdure.dispatch': dispatchNo },
    run,
    (result) => ({
      outcome: result.kind,
      ...('output' in result ? { output: result.output } : {}),
      ...('message' in result
        ? { problem: result.message }
        : 'reason' in result
          ? { problem: result.reason }
          : {}),
    }),
  );
}

/** Traces one attempt of a read. */
export function tracedRead<T extends ReadResult | { kind: 'again'; message: string } | null>(
  call: { agent: string; callId: string; name: string; args: JsonValue },
  run: () => Promise<T>,
): Promise<T> {
  const input = { ...call, tool: call.name };
  return tracedCall(input, 'execute_tool', { 'perdure.effect': 'read' }, run, (result) => ({
    outcome: result?.kind ?? 'stopped',
    ...(result !== null && 'output' in result ? { output: result.output } : {}),
    ...(result !== null && 'message' in result ? { problem: result.message } : {}),
  }));
}

/** Traces one run of the `verify` activity. */
export function tracedVerify(input: VerifyInput, run: () => Promise<VerifyResult>): Promise<VerifyResult> {
  return tracedCall(input, 'verify', {}, run, (result) => ({
    outcome: result.outcome,
    ...(result.outcome === 'unknown' ? { problem: result.reason } : {}),
  }));
}

function tracedCall<T>(
  call: { agent: string; tool: string; callId: string; args: JsonValue },
  operation: string,
  more: Attributes,
  run: () => Promise<T>,
  read: (result: T) => { outcome: string; output?: JsonValue; problem?: string },
): Promise<T> {
  const { agent, tool, callId, args } = call;
  const { info } = Context.current();
  const names = { 'gen_ai.operation.name': operation, 'gen_ai.tool.name': tool };
  const attributes = {
    ...names,
    'gen_ai.tool.call.id': callId,
    'gen_ai.tool.type': 'function',
    'perdure.attempt': info.attempt,
    ...more,
  };
  const turn = turnOf(Number(/^call_(\d+)_/.exec(callId)?.[1] ?? 0));
  return inSpan({ turn, agent, name: `${operation} ${tool}`, attributes }, async (span) => {
    const since = performance.now();
    const content = span.recording && capturesContent();
    if (content) span.set({ 'gen_ai.tool.call.arguments': JSON.stringify(args) });
    const result = await run();
    const { outcome, output: given, problem } = read(result);
    span.set({ 'perdure.outcome': outcome });
    if (content && given !== undefined) span.set({ 'gen_ai.tool.call.result': JSON.stringify(given) });
    // The text of a tool's failure counts as content.
    if (problem !== undefined) span.fail(outcome, content ? problem : undefined);
    const failure = problem === undefined ? {} : { 'error.type': outcome };
    const labels = { ...names, 'gen_ai.agent.name': agent, ...failure };
    instruments()?.operations.record((performance.now() - since) / 1_000, labels);
    return result;
  });
}

function turnOf(turn: number): Turn {
  const { workflowExecution, namespace } = Context.current().info;
  return { namespace, sessionId: workflowExecution?.workflowId ?? '', turn };
}

function output({ blocks, calls, finishReason }: Extract<RequestResult, { ok: true }>): string {
  const parts = [
    ...partsOf(blocks),
    ...calls.map(({ name, args }) => ({ type: 'tool_call', name, arguments: args })),
  ];
  return JSON.stringify([{ role: 'assistant', parts, finish_reason: finishReason }]);
}

/** Blocks in the conventions' shape. Files are named, not sent. */
function partsOf(blocks: readonly { kind: string }[]): object[] {
  return (blocks as Message['blocks']).map((block) => {
    switch (block.kind) {
      case 'text':
      case 'reasoning':
        return { type: block.kind, content: block.text };
      case 'tool_call':
        return { type: 'tool_call', id: block.id, name: block.name, arguments: block.args };
      case 'tool_result':
        return { type: 'tool_call_response', id: block.call_id, response: block.content };
      default:
        return { type: block.kind };
    }
  });
}
