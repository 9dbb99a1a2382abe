/** Encryption keys of the lab, by their ids. */
import { createHash } from 'node:crypto';
import type { PayloadCodec } from '@temporalio/common';
import { aesGcmCodec } from 'perdure/encryption';

/** The keys before and after a rotation. */
export const KEYS = ['old', 'new'] as const;

/** A codec that has these keys, and encrypts with the last. */
export function codecWith(...ids: string[]): PayloadCodec {
  const keys = ids.map((id) => [id, createHash('sha256').update(id).digest()] as const);
  return aesGcmCodec({ keys: Object.fromEntries(keys), current: ids.at(-1) ?? '' });
}
