/** Files of messages and results: stored when they arrive, read for a model request. */
import type { LanguageModelV3FilePart, LanguageModelV3TextPart } from '@ai-sdk/provider';
import type { Context } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';
import type { FileBlock, Message } from '../contract/messages.ts';
import type { ValueRef, ValueStore } from '../contract/values.ts';
import { Values } from '../values/index.ts';
import type { Storing } from './storing.ts';

/** The bytes of files by their digests. `null`: not in the store any more. */
export type Files = ReadonlyMap<string, Uint8Array | null>;

export const NO_FILES: Files = new Map();

/** A cache: a session sends the same files in every prompt. */
const recent = new LRUCache<string, Uint8Array>({
  maxSize: 64_000_000,
  sizeCalculation: ({ length }) => length + 1,
});

/**
 * Reads the files that messages refer to.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` when the store cannot be used, or the worker has none
 */
export async function filesOf(
  { client, info }: Context,
  store: ValueStore | undefined,
  messages: readonly Message[],
): Promise<Files> {
  const digests = new Set(messages.flatMap(({ blocks }) => blocks.flatMap(digestsOf)));
  if (digests.size === 0) return NO_FILES;
  if (store === undefined) {
    throw new PerdureError(
      'SERVER_UNAVAILABLE',
      'the session has files, and this worker has no store of values: start it with createWorker({ values })',
    );
  }
  const values = new Values(store, client);
  const sessionId = info.workflowExecution?.workflowId ?? '';
  const files = new Map<string, Uint8Array | null>();
  for (const digest of digests) {
    const key = JSON.stringify([client.options.namespace, sessionId, digest]);
    const known = recent.get(key);
    const bytes = known ?? (await read(values, digest, sessionId));
    if (bytes !== null) recent.set(key, bytes);
    files.set(digest, bytes);
  }
  return files;
}

/** Whether a message refers to files in the store. */
export function hasStoredFiles({ blocks }: Message): boolean {
  return blocks.some((block) => digestsOf(block).length > 0);
}

async function read(values: Values, digest: string, sessionId: string): Promise<Uint8Array | null> {
  try {
    return (await values.get(digest, sessionId)).bytes;
  } catch (error) {
    if (isPerdureError(error, 'VALUE_NOT_FOUND')) return null;
    throw error;
  }
}

const NONE: readonly string[] = [];

function digestsOf(block: Message['blocks'][number]): readonly string[] {
  if (block.kind === 'file') return block.value === undefined ? NONE : [block.value.digest];
  if (block.kind !== 'tool_result' || block.model_output === undefined) return NONE;
  return partsOf(block.model_output).flatMap((part) => refOf(part)?.digest ?? []);
}

/** Converts a file to a part of a prompt. A file that is gone becomes a text that says so. */
export function filePart(
  { media_type: mediaType, filename, value, url, metadata }: FileBlock,
  files: Files,
): LanguageModelV3FilePart | LanguageModelV3TextPart {
  const isUrl = url !== undefined && URL.canParse(url);
  const data = isUrl ? new URL(url) : files.get(value?.digest ?? '');
  if (data === undefined || data === null)
    return { type: 'text', text: gone(filename, mediaType, value?.digest ?? url) };
  return {
    type: 'file',
    mediaType,
    data,
    ...(filename === undefined ? {} : { filename }),
    ...(metadata === undefined ? {} : { providerOptions: metadata as never }),
  };
}

function gone(filename: string | undefined, mediaType: string, digest = ''): string {
  return `[the file ${filename ?? 'without a name'} (${mediaType}) is no longer stored: ${digest}]`;
}

/** Kinds of parts of a tool's output that hold a file as base64. `media` is the AI SDK's former name. */
const DATA: ReadonlySet<unknown> = new Set(['file-data', 'image-data', 'media']);

/** Stores the files in a result of `toModelOutput`. A file that cannot be stored becomes a text that says so. */
export async function storedFiles(output: JsonObject, storing: Storing): Promise<JsonObject> {
  if (output['type'] !== 'content') return output;
  const parts: JsonValue[] = [];
  for (const part of partsOf(output)) {
    const { type, data, mediaType } = part;
    if (!DATA.has(type) || typeof data !== 'string' || typeof mediaType !== 'string') {
      parts.push(part);
      continue;
    }
    const stored = await storing({ bytes: Buffer.from(data, 'base64'), mediaType });
    if ('problem' in stored) {
      parts.push({ type: 'text', text: `[a file of ${mediaType} could not be stored: ${stored.problem}]` });
      continue;
    }
    const { data: _bytes, ...rest } = part;
    parts.push({ ...rest, value: { ...stored } });
  }
  return { ...output, value: parts };
}

/** Puts the stored files back into a recorded result of `toModelOutput`. */
export function withFiles(output: JsonObject, files: Files): JsonObject {
  if (output['type'] !== 'content') return output;
  const parts = partsOf(output).map((part): JsonObject => {
    if (!DATA.has(part['type'])) return part;
    const ref = refOf(part);
    const bytes = ref === undefined ? undefined : files.get(ref.digest);
    if (ref !== undefined && (bytes === undefined || bytes === null))
      return { type: 'text', text: gone(undefined, ref.media_type, ref.digest) };
    const { value: _ref, type, ...rest } = part;
    const { mediaType } = rest;
    const isImage = typeof mediaType === 'string' && mediaType.startsWith('image/');
    return {
      type: type === 'media' ? (isImage ? 'image-data' : 'file-data') : (type ?? null),
      ...rest,
      ...(bytes === undefined || bytes === null ? {} : { data: Buffer.from(bytes).toString('base64') }),
    };
  });
  return { ...output, value: parts };
}

function partsOf({ value }: JsonObject): JsonObject[] {
  const parts = Array.isArray(value) ? value : [];
  return parts.filter(
    (part): part is JsonObject => typeof part === 'object' && part !== null && !Array.isArray(part),
  );
}

function refOf({ type, value }: JsonObject): ValueRef | undefined {
  const isRef = DATA.has(type) && typeof value === 'object' && value !== null && !Array.isArray(value);
  return isRef ? (value as unknown as ValueRef) : undefined;
}
