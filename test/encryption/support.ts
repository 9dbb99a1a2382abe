import { randomBytes } from 'node:crypto';
import { Client } from '@temporalio/client';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { aesGcmCodec } from '../../src/encryption/index.ts';
import { Sessions } from '../../src/index.ts';

const KEYS: Readonly<Record<'old' | 'new', Uint8Array>> = { old: randomBytes(32), new: randomBytes(32) };

/** A codec that has these keys, and encrypts with the last of them. */
export function codecWithKeys(...ids: (keyof typeof KEYS)[]): PayloadCodec {
  const keys = Object.fromEntries(ids.map((id) => [id, KEYS[id]]));
  return aesGcmCodec({ keys, current: ids.at(-1) ?? '' });
}

/** The same in a data converter. */
export function withKeys(...ids: (keyof typeof KEYS)[]): DataConverter {
  return { payloadCodecs: [codecWithKeys(...ids)] };
}

/** Sessions of another client on the same connection. */
export function sessionsOf(
  { connection, options: { namespace } }: Client,
  taskQueue: string,
  dataConverter: DataConverter,
): Sessions {
  return new Sessions(new Client({ connection, namespace, dataConverter }), { taskQueue });
}
