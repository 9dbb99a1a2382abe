/** One request to one model, streamed. */

import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { AgentRuntime, Model } from '../agent/index.ts';
import type { Usage } from '../contract/activities.ts';
import { messageOf } from '../contract/errors.ts';
import { defined, type JsonObject, type JsonValue, jsonSize, toJson } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { LiveDelta } from '../contract/live-text.ts';
import type { Message, ReasoningBlock, SourceBlock, TextBlock } from '../contract/messages.ts';
import type { Files } from './files.ts';
import { type RequestFailure, requestFailure } from './model-errors.ts';
import { setsOwnCache, toPrompt, toTools, withBreakpoints } from './prompt.ts';
import { stopWith } from './stop-with.ts';

/** A call as the model asked for it. */
export interface RequestedCall {
  name: string;
  args: JsonValue;
  metadata?: JsonObject;
  /** Its arguments are not JSON. */
  unreadable: boolean;
}

/** A file that the model made. It is not stored yet. */
export interface GivenFile {
  kind: 'given_file';
  media_type: string;
  bytes: Uint8Array;
  metadata?: JsonObject;
}

/** The result of a request. */
export type RequestResult =
  | {
      ok: true;
      blocks: (TextBlock | ReasoningBlock | SourceBlock | GivenFile)[];
      calls: RequestedCall[];
      finishReason: string;
      usage: Usage;
    }
  | { ok: false; failure: RequestFailure };

/**
 * What the model is asked for: a reply, a closing summary, or a summary that replaces the messages. That one offers the tools as
 * before, because without them providers could not use their prompt caches. `compact-strictly` forbids to call them.
 */
export type RequestMode = 'reply' | 'finish' | 'compact' | 'compact-strictly';

/** How many bytes of a reply are read. Escaped arguments are much longer than what is kept of them. */
const READ_LIMIT = 2 * LIMIT.modelReply;

const SUMMARY =
  'The budget of this session is used up. Do not call tools. Answer now with a summary: what was done, what is open.';

/**
 * Sends one request. It calls the model directly: the AI SDK's `streamText` checks the whole prompt against schemas,
 * which costs more than all the rest of a turn once a session is long.
 *
 * @param onDelta - called with each piece of the reply.
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
}): Promise<RequestResult> {
  const { agent, model, abortSignal, onDelta } = options;
  const { modelTimeoutMs } = agent;
  const stop = stopWith(abortSignal);
  const { signal } = stop;
  const timer = setTimeout(
    () => stop.abort(new Error(`the provider sent nothing for ${modelTimeoutMs} ms`)),
    modelTimeoutMs,
  );
  const collected = new Collector();
  try {
    for await (const part of parts(model, { ...callOptions(options), abortSignal: signal }, signal)) {
      timer.refresh();
      collected.add(part);
      if (collected.endless) break;
      const delta = collected.deltaOf(part);
      if (delta !== null) onDelta(delta);
    }
  } catch (error) {
    collected.error ??= { value: error };
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
  return options.mode === 'finish' ? withoutCalls(result) : onlyText(result);
}

/** A summary of the messages must have a text, whatever else the model asks for. */
function onlyText(reply: Extract<RequestResult, { ok: true }>): RequestResult {
  if (reply.blocks.some((block) => block.kind === 'text' && block.text.trim() !== ''))
    return { ...reply, calls: [] };
  const names = reply.calls
    .map(({ name }) => name)
    .join(', ')
    .slice(0, 200);
  const message = `the model was asked for a summary of the messages and ${names === '' ? 'gave none' : `called ${names}`}`;
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
  const type = mode === 'finish' || mode === 'compact-strictly' ? 'none' : 'auto';
  const prompt: LanguageModelV3Prompt = [{ role: 'system', content: system }, ...toPrompt(messages, files)];
  return {
    prompt: setsOwnCache(definition.providerOptions) ? prompt : withBreakpoints(prompt, model),
    ...(tools.length > 0 ? { tools, toolChoice: { type } } : {}),
    maxOutputTokens,
    ...(definition.temperature === undefined ? {} : { temperature: definition.temperature }),
    ...(definition.providerOptions === undefined ? {} : { providerOptions: definition.providerOptions }),
  };
}

/** The parts of the reply. Ends when the signal aborts, even if the model ignores the signal. */
async function* parts(
  model: Model,
  options: LanguageModelV3CallOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamPart> {
  signal.throwIfAborted();
  const stopped = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
  stopped.catch(() => {});
  // Version 2 of the interface differs only in its last part, and the collector reads both.
  const { stream } = await Promise.race([(model as LanguageModelV3).doStream(options), stopped]);
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

/** A count of tokens: a number in version 2 of the model interface. */
type Count =
  | number
  | { total: number | undefined; cacheRead?: number | undefined; cacheWrite?: number | undefined }
  | undefined;

interface StreamPart {
  type: string;
  id?: string;
  delta?: string;
  error?: unknown;
  toolName?: string;
  toolCallId?: string;
  input?: string;
  providerMetadata?: unknown;
  /** Of a file. */
  data?: string | Uint8Array;
  mediaType?: string;
  filename?: string;
  /** Of a source. */
  url?: string;
  title?: string;
  finishReason?: string | { unified: string; raw: string | undefined };
  usage?: StreamUsage;
}

interface StreamUsage {
  inputTokens?: Count;
  outputTokens?: Count;
  /** Of version 2 of the interface. */
  totalTokens?: number | undefined;
  cachedInputTokens?: number | undefined;
  /** As the provider sent it. */
  raw?: { total_tokens?: unknown } | undefined;
}

/** Collects the parts of a stream into a reply, or says what is wrong with it. */
class Collector {
  error: { value: unknown } | undefined;
  readonly #blocks: Extract<RequestResult, { ok: true }>['blocks'] = [];
  readonly #open = new Map<string, TextBlock | ReasoningBlock>();
  readonly #calls: RequestedCall[] = [];
  readonly #ids = new Set<string>();
  /** By the ids of calls that are being written: their tools. */
  readonly #inputs = new Map<string, string>();
  #duplicate: string | undefined;
  #read = 0;
  #finishReason = '';
  #rawFinishReason: string | undefined;
  #usage: Usage = { inputTokens: null, outputTokens: null };

  /** Whether the reply is larger than any reply may be. */
  get endless(): boolean {
    return this.#read > READ_LIMIT || this.#calls.length > LIMIT.replyCalls;
  }

  add(part: StreamPart): void {
    this.#read += Buffer.byteLength(part.delta ?? '');
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start': {
        const block = { kind: part.type === 'text-start' ? 'text' : 'reasoning', text: '' } as
          | TextBlock
          | ReasoningBlock;
        this.#blocks.push(block);
        this.#open.set(part.id ?? '', block);
        keepMetadata(block, part.providerMetadata);
        return;
      }
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end': {
        const block = this.#open.get(part.id ?? '');
        if (block === undefined) return;
        block.text += part.delta ?? '';
        keepMetadata(block, part.providerMetadata);
        return;
      }
      case 'tool-input-start':
        this.#inputs.set(part.id ?? '', part.toolName ?? '');
        return;
      case 'file': {
        const { mediaType: media_type = 'application/octet-stream', data = '' } = part;
        const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : data;
        const file: GivenFile = { kind: 'given_file', media_type, bytes };
        keepMetadata(file, part.providerMetadata);
        this.#blocks.push(file);
        return;
      }
      case 'source': {
        const { id = '', url, title, mediaType: media_type, filename } = part;
        const source: SourceBlock = {
          kind: 'source',
          id,
          ...defined({ url, title, media_type, filename }),
        };
        keepMetadata(source, part.providerMetadata);
        this.#blocks.push(source);
        return;
      }
      case 'tool-call': {
        const id = part.toolCallId ?? '';
        if (this.#ids.has(id)) this.#duplicate = id;
        this.#ids.add(id);
        const call: RequestedCall = { name: part.toolName ?? '', ...readArgs(part.input ?? '') };
        keepMetadata(call, part.providerMetadata);
        this.#calls.push(call);
        return;
      }
      case 'error':
        this.error ??= { value: part.error };
        return;
      case 'finish': {
        const { finishReason: reason = '', usage } = part;
        this.#finishReason = typeof reason === 'string' ? reason.replace('unknown', 'other') : reason.unified;
        this.#rawFinishReason = typeof reason === 'string' ? undefined : reason.raw;
        this.#usage = readUsage(usage);
        return;
      }
      default:
    }
  }

  /** What a part adds to the reply, for people who watch. */
  deltaOf({ type, id = '', delta: text = '' }: StreamPart): LiveDelta | null {
    if (text === '') return null;
    if (type === 'text-delta') return this.#open.has(id) ? { type: 'text', text } : null;
    if (type === 'reasoning-delta') return this.#open.has(id) ? { type: 'reasoning', text } : null;
    const name = type === 'tool-input-delta' ? this.#inputs.get(id) : undefined;
    return name === undefined ? null : { type: 'tool_input', id, name, text };
  }

  result(): RequestResult {
    if (this.error !== undefined) return { ok: false, failure: requestFailure(this.error.value) };
    const blocks = this.#blocks.filter(
      (block) => !('text' in block) || block.text !== '' || block.metadata !== undefined,
    );
    const invalid = (message: string): RequestResult => ({
      ok: false,
      failure: { kind: 'invalid_response', message, billed: true },
    });
    if (this.#read > READ_LIMIT)
      return invalid(`the reply has over ${READ_LIMIT} bytes, the limit is ${LIMIT.modelReply}`);
    if (this.#calls.length > LIMIT.replyCalls)
      return invalid(`the reply has over ${LIMIT.replyCalls} tool calls, the limit`);
    if (this.#finishReason === 'content-filter' && this.#calls.length === 0) {
      return {
        ok: false,
        failure: {
          kind: 'rejected',
          message: `the model refused (${this.#rawFinishReason ?? 'content filter'})`,
          billed: true,
        },
      };
    }
    if (this.#finishReason === 'error') return invalid('the reply ended with an error');
    if (
      this.#finishReason === '' ||
      (this.#finishReason === 'other' && this.#rawFinishReason === undefined)
    ) {
      return invalid('the reply ended without a finish reason');
    }
    // Some clients give both calls the arguments of the first, so the real ones are unknown.
    if (this.#duplicate !== undefined) return invalid(`two tool calls have the id ${this.#duplicate}`);
    const isSaid = blocks.some(({ kind }) => kind === 'text' || kind === 'given_file');
    if (this.#calls.length === 0 && !isSaid) {
      return invalid('the reply has neither text nor tool calls');
    }
    const size = jsonSize(blocks.filter(({ kind }) => kind !== 'given_file')) + jsonSize(this.#calls);
    if (size > LIMIT.modelReply)
      return invalid(`the reply has ${size} bytes, the limit is ${LIMIT.modelReply}`);
    return { ok: true, blocks, calls: this.#calls, finishReason: this.#finishReason, usage: this.#usage };
  }
}

/**
 * Some gateways count reasoning tokens in the total only. A prompt of zero tokens was not counted: clients turn a
 * missing count into zero.
 */
function readUsage({
  inputTokens,
  outputTokens,
  totalTokens,
  cachedInputTokens,
  raw,
}: StreamUsage = {}): Usage {
  const input = total(inputTokens) || null;
  const output = total(outputTokens);
  const all = total(totalTokens) ?? total(Number(raw?.total_tokens)) ?? 0;
  const cached = total(typeof inputTokens === 'object' ? inputTokens.cacheRead : cachedInputTokens);
  const written = total(typeof inputTokens === 'object' ? inputTokens.cacheWrite : undefined);
  return {
    inputTokens: input,
    outputTokens: output === null || input === null ? output : Math.max(output, all - input),
    ...(cached ? { cachedInputTokens: cached } : {}),
    ...(written ? { cacheWriteTokens: written } : {}),
  };
}

/** A provider's count of tokens, or `null` for a count that cannot be true. */
function total(count: Count): number | null {
  const said = typeof count === 'object' ? count.total : count;
  return said !== undefined && Number.isSafeInteger(said) && said >= 0 ? said : null;
}

/** A call's arguments, which models write as JSON text. An empty text stands for no arguments. */
function readArgs(text: string): Pick<RequestedCall, 'args' | 'unreadable'> {
  if (text.trim() === '') return { args: {}, unreadable: false };
  try {
    return { args: toJson(JSON.parse(text)), unreadable: false };
  } catch {
    return { args: text, unreadable: true };
  }
}

function keepMetadata(target: { metadata?: JsonObject }, metadata: unknown): void {
  if (metadata === undefined || metadata === null) return;
  const json = asJson(metadata);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return;
  // Some providers send empty metadata with every part. Keep it out of the history.
  const filled = Object.entries(json).filter(
    ([, value]) => typeof value !== 'object' || value === null || Object.keys(value).length > 0,
  );
  if (filled.length > 0) target.metadata = { ...target.metadata, ...Object.fromEntries(filled) };
}

function asJson(value: unknown): JsonValue {
  return value === undefined ? null : toJson(JSON.parse(JSON.stringify(value)));
}
