/** The built-in tool with which a model reads more of a stored value. */
import { Context } from '@temporalio/activity';
import * as z from 'zod';
import { type DefinedTool, defineTool } from '../agent/index.ts';
import { LIMIT } from '../contract/limits.ts';
import type { ValueStore } from '../contract/values.ts';
import { Values } from '../values/index.ts';

/** Bytes of one answer: by default, and at most. As JSON they may grow sixfold, and must still fit inline. */
const LENGTH = { usual: 4_000, most: Math.floor(LIMIT.inlineResult / 7) };

const inputSchema = z.object({
  digest: z.string().describe('the digest that the shortened result names'),
  offset: z.number().int().min(0).default(0).describe('the byte at which to begin'),
  length: z.number().int().min(1).max(LENGTH.most).default(LENGTH.usual).describe('how many bytes to read'),
});

export function readValueTool(store: ValueStore): DefinedTool {
  return defineTool({
    description:
      'Reads a part of a result that was too large to be shown whole. Such a result names its digest and its size in bytes.',
    inputSchema,
    effect: 'read',
    execute: async ({ digest, offset, length }, { sessionId }) => {
      const { bytes, mediaType } = await new Values(store, Context.current().client).get(digest, sessionId);
      const size = bytes.length;
      if (!isText(mediaType)) return `This value has ${size} bytes of ${mediaType}, which is no text.`;
      const begin = characterAt(bytes, Math.min(offset, size));
      // No character has more than four bytes, so each answer has at least one.
      const end = characterAt(bytes, Math.min(begin + Math.max(4, length), size));
      const text = new TextDecoder().decode(bytes.subarray(begin, end));
      return { text, offset: begin, next: end < size ? end : null, bytes: size };
    },
  }) as DefinedTool;
}

function isText(mediaType: string): boolean {
  return /^text\/|^application\/json\b|\+(json|xml)$/.test(mediaType);
}

/** The offset of the first byte of the character that this offset falls into. */
function characterAt(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (at > 0 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at--;
  return at;
}
