import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter, type Payload, type PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { aesGcmCodec } from '../../src/encryption/index.ts';
import { rejection } from '../support/rejection.ts';

const OLD = randomBytes(32).toString('base64');
const NEW = randomBytes(32).toString('base64');
const payload = defaultPayloadConverter.toPayload({ text: 'the marker' });

async function sealed(codec: PayloadCodec): Promise<Payload> {
  const [found = {}] = await codec.encode([payload]);
  return found;
}

test('a payload is encrypted, names its key, has another nonce each time, and decrypts to what it was', async () => {
  const codec = aesGcmCodec({ keys: { k1: OLD }, current: 'k1' });
  const one = await sealed(codec);
  expect(Buffer.from(one.metadata?.['encoding'] ?? []).toString()).toBe('binary/encrypted');
  expect(Buffer.from(one.metadata?.['encryption-key-id'] ?? []).toString()).toBe('k1');
  expect(Buffer.from(one.data ?? []).includes('the marker')).toBe(false);
  expect((await sealed(codec)).data).not.toEqual(one.data);
  const [decoded] = await codec.decode([one]);
  expect(defaultPayloadConverter.fromPayload(decoded as Payload)).toEqual({ text: 'the marker' });
});

test('payloads have the format of the encryption samples of Temporal', async () => {
  const { data } = await sealed(aesGcmCodec({ keys: { k1: OLD }, current: 'k1' }));
  const bytes = Uint8Array.from(data ?? []);
  const key = await crypto.subtle.importKey('raw', Buffer.from(OLD, 'base64'), 'AES-GCM', true, ['decrypt']);
  const plain = await crypto.subtle.decrypt(
    { name: 'AES-GCM', iv: bytes.subarray(0, 12) },
    key,
    bytes.subarray(12),
  );
  const found = proto.temporal.api.common.v1.Payload.decode(new Uint8Array(plain));
  expect(defaultPayloadConverter.fromPayload(found)).toEqual({ text: 'the marker' });
});

test('after a rotation both keys decrypt and the new one encrypts', async () => {
  const before = await sealed(aesGcmCodec({ keys: { old: OLD }, current: 'old' }));
  const rotated = aesGcmCodec({ keys: { old: OLD, new: NEW }, current: 'new' });
  expect(await rotated.decode([before, await sealed(rotated), payload])).toHaveLength(3);
  const only = aesGcmCodec({ keys: { new: NEW }, current: 'new' });
  expect(await only.decode([await sealed(rotated)])).toHaveLength(1);
  expect(await rejection(only.decode([before]))).toMatchObject({
    code: 'UNKNOWN_KEY',
    remedy: 'ask_person',
    message:
      'This process does not have the encryption key old. Nothing is lost: correct the keys of the codec, and restart the process',
    details: { keyId: 'old' },
  });
});

test('a changed payload, a cut one and one of another key with the same id are refused with the key id', async () => {
  const codec = aesGcmCodec({ keys: { k1: OLD }, current: 'k1' });
  const good = await sealed(codec);
  const changed = Buffer.from(good.data ?? []);
  changed[20] = (changed[20] ?? 0) ^ 1;
  const cut = changed.subarray(0, 9);
  const foreign = (await sealed(aesGcmCodec({ keys: { k1: NEW }, current: 'k1' }))).data ?? null;
  for (const data of [changed, cut, new Uint8Array(), foreign]) {
    expect(await rejection(codec.decode([{ ...good, data }]))).toMatchObject({
      code: 'UNKNOWN_KEY',
      details: { keyId: 'k1' },
    });
  }
});

test.each<[string, Record<string, string | Uint8Array | undefined>, string, string]>([
  [
    'a short key',
    { k1: randomBytes(16).toString('base64') },
    'k1',
    'keys.k1: has 16 bytes, and AES-256 needs 32. Make a key: openssl rand -base64 32',
  ],
  ['a missing key', { k1: undefined }, 'k1', 'keys.k1: is missing. Set the variable that holds it'],
  ['an empty key', { k1: '' }, 'k1', 'keys.k1: is missing. Set the variable that holds it'],
  [
    'a text that is not base64',
    { k1: 'a pass phrase that is long enough!!!!!!!!!' },
    'k1',
    'keys.k1: is not base64',
  ],
  ['a current key that is not there', { k1: OLD }, 'k2', 'current: "k2" is not one of the keys: k1'],
  ['no keys', {}, 'k1', 'current: "k1" is not one of the keys: there are none'],
])('%s is refused without showing a key', (_, keys, current, message) => {
  let thrown: unknown;
  try {
    aesGcmCodec({ keys, current });
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
  for (const key of Object.values(keys)) if (key) expect(String(thrown)).not.toContain(String(key));
});
