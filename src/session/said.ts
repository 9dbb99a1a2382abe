/** What messages say. One that is sent again with its id is taken once, so another text under the id would be lost. */

import { digestJson, type JsonValue } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { Block } from '../contract/messages.ts';
import type { SessionState } from '../contract/state.ts';
import { blocksOf } from './state.ts';

/** The start of the digest of what a message says. */
export function saidDigest(blocks: readonly Block[]): string {
  return shortDigest(digestJson(said(blocks)));
}

/** Whether the session has a message of this id that says something else, as far as it knows. */
export function contradicts(state: SessionState, id: string, blocks: readonly Block[]): boolean {
  const known = blocksOf(state, id);
  if (known !== undefined) return JSON.stringify(said(known)) !== JSON.stringify(said(blocks));
  const { messageIds = [], messageDigests } = state.past ?? {};
  // Empty for a message of before digests were kept.
  const digest = messageDigests?.[messageIds.lastIndexOf(id)] ?? '';
  return digest !== '' && digest !== saidDigest(blocks);
}

/** A file that is encrypted anew has another digest each time it is sent. */
function said(blocks: readonly Block[]): JsonValue {
  return blocks.map((block) =>
    block.kind === 'file'
      ? [block.media_type, block.filename ?? null, block.url ?? null, block.value?.bytes ?? null]
      : block.kind === 'text' && block.text,
  );
}
