/** Encryption keys of the lab, by their ids. */
import { createHash } from 'node:crypto';
import { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { Sessions } from 'perdure';
import { aesGcmCodec } from 'perdure/encryption';
import type { Harness } from 'perdure/testing';

/** The keys before and after a rotation. */
export const KEYS = ['old', 'new'] as const;

/** A codec that has these keys and encrypts with the last one. */
export function codecWith(...ids: string[]): PayloadCodec {
  const keys = ids.map((id) => [id, createHash('sha256').update(id).digest()] as const);
  return aesGcmCodec({ keys: Object.fromEntries(keys), current: ids.at(-1) ?? '' });
}

/** A harness whose client encrypts with a key, and has another one. */
export function withKeys(harness: Harness, key: string): Harness {
  const { connection, options } = harness.client;
  const dataConverter = { payloadCodecs: [codecWith(...KEYS.filter((id) => id !== key), key)] };
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  const sessions = new Sessions(client, { taskQueue: harness.taskQueue });
  return { ...harness, client, sessions, startSession: (agent, start) => sessions.start(agent, start) };
}
