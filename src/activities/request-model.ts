/** One request to one model, streamed. */

import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { AgentRuntime, Model } from '../agent/index.ts';
import { messageOf } from '../contract/errors.ts';
import type { LiveDelta } from '../contract/live-text.ts';
import type { Message } from '../contract/messages.ts';
import type { ModelInput } from '../contract/model-call.ts';
import type { Files } from './files.ts';
import { apiErrorOf } from './model-errors.ts';
import { setsOwnCache, toPrompt, toTools, withBreakpoints } from './prompt.ts';
import { ReplyCollector, type RequestResult, type StreamPart } from './reply-collector.ts';
import { stopWith } from './stop-with.ts';

/**
 * What the model is asked for: a reply, a closing summary, a summary that replaces the messages, or a side answer. All
 * modes send the tools, because without them providers could not use their prompt caches. Only `reply` and `compact`
 * allow calls.
 */
export type RequestMode = 'reply' | 'finish' | 'compact' | 'compact-strictly' | 'aside';

/** What the model is asked for in a call. */
export function modeOf({ summarize, compact: how, aside }: ModelInput): RequestMode {
  if (aside !== undefined) return 'aside';
  if (how !== undefined) return how.again === true ? 'compact-strictly' : 'compact';
  return summarize === true ? 'finish' : 'reply';
}

const SUMMARY =
  'The budget of this session is used up. Do not call tools. Answer now with a summary: what was done, what is open.';

/**
 * Sends one request. It calls the model directly: the AI SDK's `streamText` checks the whole prompt against schemas,
 * which costs more than all the rest of a turn once a session is long.
 *
 * @param onDelta - called with each piece of the reply.
 * @param onAnswer - called when the provider has begun to answer
 * @param onHead - called with the headers of an answer or refusal
 * @param abortSignal - ends the request. The result is then a failure of the kind `interrupted`.
 */
export async function requestModel(options: {
  agent: AgentRuntime;
  instructions: string;
  model: Model;
  maxOutputTokens: number;
  messages: readonly Message[];
  files: Files;
  mode: RequestMode;
  abortSignal: AbortSignal;
  onDelta: (delta: LiveDelta) => void;
  onAnswer?: () => void;
  onHead?: (head: AnswerHead) => void;
}): Promise<RequestResult> {
  const { agent, model, abortSignal, onDelta } = options;
  const { modelTimeoutMs } = agent;
  const stop = stopWith(abortSignal);
  const { signal } = stop;
  const timer = setTimeout(
    () => stop.abort(new Error(`the provider sent nothing for ${modelTimeoutMs} ms`)),
    modelTimeoutMs,
  );
  const collected = new ReplyCollector();
  try {
    const call = { ...callOptions(options), abortSignal: signal };
    for await (const part of parts(model, call, signal, options.onHead)) {
      timer.refresh();
      options.onAnswer?.();
      collected.add(part);
      if (collected.endless) break;
      const delta = collected.deltaOf(part);
      if (delta !== null) onDelta(delta);
    }
  } catch (error) {
    collected.error ??= { value: error };
    const headers = apiErrorOf(error)?.responseHeaders;
    if (headers !== undefined) options.onHead?.({ ok: false, headers });
  } finally {
    clearTimeout(timer);
  }
  if (signal.aborted) {
    const reason: unknown = signal.reason;
    const message = messageOf(reason);
    return { ok: false, failure: { kind: 'interrupted', message, billed: true } };
  }
  const result = collected.result();
  if (!result.ok || options.mode === 'reply') return result;
  if (options.mode === 'finish') return withoutCalls(result);
  return onlyText(result, options.mode === 'aside' ? 'an answer' : 'a summary of the messages');
}

/** Drops the tool calls. A reply without text is a failure. */
function onlyText(reply: Extract<RequestResult, { ok: true }>, wanted: string): RequestResult {
  if (reply.blocks.some((block) => block.kind === 'text' && block.text.trim() !== ''))
    return { ...reply, calls: [] };
  const names = reply.calls
    .map(({ name }) => name)
    .join(', ')
    .slice(0, 200);
  const message = `the model was asked for ${wanted} without tools and ${names === '' ? 'gave none' : `called ${names}`}`;
  return { ok: false, failure: { kind: 'invalid_response', message, billed: true } };
}

/**
 * Drops the tool calls of a summary. Some endpoints ignore `toolChoice: none`, and their calls would exceed the caps.
 */
function withoutCalls(reply: Extract<RequestResult, { ok: true }>): RequestResult {
  if (reply.calls.length === 0) return reply;
  const names = [...new Set(reply.calls.map(({ name }) => name))].join(', ').slice(0, 200);
  const text = `[The budget is used up. Instead of a summary, the model asked for ${names}, which was not run.]`;
  const said = reply.blocks.some(({ kind }) => kind === 'text');
  return { ...reply, calls: [], blocks: said ? reply.blocks : [...reply.blocks, { kind: 'text', text }] };
}

function callOptions({
  agent: { definition, manifest },
  instructions,
  messages,
  files,
  maxOutputTokens,
  model,
  mode,
}: Parameters<typeof requestModel>[0]): LanguageModelV3CallOptions {
  const system = mode === 'finish' ? `${instructions}\n\n${SUMMARY}` : instructions;
  const tools = toTools(manifest);
  const type = mode === 'reply' || mode === 'compact' ? 'auto' : 'none';
  const prompt: LanguageModelV3Prompt = [{ role: 'system', content: system }, ...toPrompt(messages, files)];
  return {
    prompt: setsOwnCache(definition.providerOptions) ? prompt : withBreakpoints(prompt, model),
    ...(tools.length > 0 ? { tools, toolChoice: { type } } : {}),
    maxOutputTokens,
    ...(manifest.output !== undefined && mode === 'reply'
      ? { responseFormat: { type: 'json', schema: manifest.output, name: 'answer' } }
      : {}),
    ...(definition.temperature === undefined ? {} : { temperature: definition.temperature }),
    ...(definition.providerOptions === undefined ? {} : { providerOptions: definition.providerOptions }),
  };
}

/** The head of an answer. */
export interface AnswerHead {
  /** Whether the provider accepted the request. */
  ok: boolean;
  headers: Readonly<Record<string, string | undefined>>;
}

/** The parts of the reply. Ends when the signal aborts, even if the model ignores the signal. */
async function* parts(
  model: Model,
  options: LanguageModelV3CallOptions,
  signal: AbortSignal,
  onHead: ((head: AnswerHead) => void) | undefined,
): AsyncGenerator<StreamPart> {
  signal.throwIfAborted();
  const stopped = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
  stopped.catch(() => {});
  // Version 2 of the interface differs only in its last part, and the collector reads both.
  const { stream, response } = await Promise.race([(model as LanguageModelV3).doStream(options), stopped]);
  onHead?.({ ok: true, headers: response?.headers ?? {} });
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), stopped]);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
