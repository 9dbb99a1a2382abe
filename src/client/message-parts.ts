/** Messages with files, in the AI SDK's shape: their bytes are stored before anything reaches Temporal. */
import type { Client } from '@temporalio/client';
import { invalid } from '../contract/errors.ts';
import type { SendInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { LIMIT, tooLarge } from '../contract/limits.ts';
import type { FileBlock, MessageBlock } from '../contract/messages.ts';
import { MEDIA_TYPE, type ValueStore } from '../contract/values.ts';
import { usable, Values } from '../values/index.ts';

/** Bytes, base64, a `data:` URL, or the URL of a file that the provider fetches. */
export type FileData = Uint8Array | ArrayBuffer | URL | string;

/** A part of a message, as the AI SDK writes it. */
export type MessagePart =
  | { type: 'text'; text: string }
  | { type: 'file'; data: FileData; mediaType: string; filename?: string | undefined }
  /** The media type of PNG, JPEG, GIF and WebP is recognised. */
  | { type: 'image'; image: FileData; mediaType?: string | undefined };

/** A message with files. `parts` is the whole message; `text` is what lists show, by default the texts of the parts. */
export interface PartsInput extends Omit<SendInput, 'text' | 'blocks'> {
  parts: readonly MessagePart[];
  text?: string | undefined;
}

/** Stores a message's files. @throws PerdureError `INVALID_ARGUMENT`, `TOO_LARGE`, `SERVER_UNAVAILABLE` */
export async function storedMessage(
  message: string | SendInput | PartsInput,
  sessionId: string,
  { client, values }: { client: Client; values: ValueStore | undefined },
): Promise<SendInput> {
  if (typeof message === 'string') return { text: message };
  if (typeof message !== 'object' || message === null || !('parts' in message) || message.parts === undefined)
    return message as SendInput;
  const { parts, text, ...rest } = message;
  if (!Array.isArray(parts)) throw invalid('parts', 'write a list of parts');
  // Check all parts before storing one.
  const read = (parts as readonly MessagePart[]).map((part, i) => readPart(part, `parts.${i}`));
  const blocks: MessageBlock[] = [];
  for (const [i, part] of read.entries()) {
    if (!('bytes' in part)) {
      blocks.push(part);
      continue;
    }
    if (values === undefined) {
      throw invalid(
        `parts.${i}`,
        `a file of ${part.bytes.length} bytes needs a store of values: write new Sessions(client, { values }), or pass a URL`,
      );
    }
    const { bytes, ...file } = part;
    const store = new Values(values, client);
    const value = await usable(() => store.put({ bytes, mediaType: file.media_type }, sessionId));
    blocks.push({ ...file, value });
  }
  return { ...rest, text: text ?? textOf(blocks), blocks };
}

/** What lists show of a message. */
function textOf(blocks: readonly MessageBlock[]): string {
  const texts = blocks.flatMap((block) => (block.kind === 'text' && block.text !== '' ? [block.text] : []));
  if (texts.length > 0) return texts.join('\n');
  return blocks
    .map((block) => (block.kind === 'file' ? `[${block.filename ?? block.media_type}]` : ''))
    .join(' ');
}

function readPart(part: MessagePart, field: string): MessageBlock | (FileBlock & { bytes: Uint8Array }) {
  switch (part?.type) {
    case 'text':
      if (typeof part.text !== 'string') throw invalid(`${field}.text`, 'write a text');
      return { kind: 'text', text: part.text };
    case 'image':
      return readFile(part.image, { mediaType: part.mediaType }, field);
    case 'file':
      if (typeof part.mediaType !== 'string')
        throw invalid(`${field}.mediaType`, 'write the media type, such as application/pdf');
      return readFile(part.data, part, field);
    default: {
      const type = JSON.stringify((part as { type?: unknown } | null)?.type) ?? 'missing';
      throw invalid(`${field}.type`, `${type.slice(0, 80)} is not known: write text, file or image`);
    }
  }
}

function readFile(
  given: FileData,
  { mediaType, filename }: { mediaType?: string | undefined; filename?: string | undefined },
  field: string,
): (FileBlock & { bytes?: never }) | (FileBlock & { bytes: Uint8Array }) {
  const data = given instanceof URL ? given.href : given;
  if (typeof data === 'string' && /^https?:/i.test(data)) {
    if (!URL.canParse(data)) throw invalid(field, `${data.slice(0, 80)} is not a URL`);
    const media_type = checkedType(mediaType ?? 'image/*', field);
    return { kind: 'file', media_type, ...defined({ filename }), url: data };
  }
  const { bytes, type } = bytesOf(data, field);
  if (bytes.length > LIMIT.file) throw tooLarge(field, bytes.length, LIMIT.file);
  const media_type = checkedType(mediaType ?? type ?? imageType(bytes), field);
  return { kind: 'file', media_type, ...defined({ filename }), bytes };
}

function checkedType(mediaType: string | undefined, field: string): string {
  if (typeof mediaType === 'string' && MEDIA_TYPE.test(mediaType)) return mediaType;
  throw invalid(`${field}.mediaType`, 'write the media type, such as image/png');
}

function bytesOf(data: Exclude<FileData, URL>, field: string): { bytes: Uint8Array; type?: string } {
  if (data instanceof Uint8Array) return { bytes: data };
  if (data instanceof ArrayBuffer) return { bytes: new Uint8Array(data) };
  if (typeof data !== 'string') throw invalid(field, 'write bytes, base64, or a URL');
  const [, type, base64 = data] = /^data:([^;,]+)[^,]*;base64,(.*)$/s.exec(data) ?? [];
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64))
    throw invalid(field, 'it is neither base64 nor an http(s) URL');
  return { bytes: Buffer.from(base64, 'base64'), ...defined({ type }) };
}

const IMAGES: readonly [type: string, bytes: RegExp][] = [
  ['image/png', /^\x89PNG/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8/],
  ['image/webp', /^RIFF.{4}WEBP/s],
];

/** The type of an image by its first bytes. */
function imageType(bytes: Uint8Array): string | undefined {
  const beginning = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  return IMAGES.find(([, pattern]) => pattern.test(beginning))?.[0];
}
