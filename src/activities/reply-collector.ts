/** Collects the stream of one reply. */

import { defined, type JsonObject, type JsonValue, jsonSize, toJson } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { LiveDelta } from '../contract/live-text.ts';
import type { ReasoningBlock, SourceBlock, TextBlock } from '../contract/messages.ts';
import type { Usage } from '../contract/model-call.ts';
import { type RequestFailure, requestFailure } from './model-errors.ts';

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

/** How many bytes of a reply are read. Escaped arguments are much longer in the stream than in the record. */
const READ_LIMIT = 2 * LIMIT.modelReply;

/** A count of tokens: a number in version 2 of the model interface. */
type Count =
  | number
  | { total: number | undefined; cacheRead?: number | undefined; cacheWrite?: number | undefined }
  | undefined;

/** A part of a model's stream, in version 2 or 3 of the model interface. */
export interface StreamPart {
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
export class ReplyCollector {
  error: { value: unknown } | undefined;
  readonly #blocks: Extract<RequestResult, { ok: true }>['blocks'] = [];
  readonly #open = new Map<string, TextBlock | ReasoningBlock>();
  readonly #calls: RequestedCall[] = [];
  readonly #ids = new Set<string>();
  /** The tools of calls that are still being streamed, by call id. */
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

  /** The live text that a part adds to the reply, or `null`. */
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
