import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { METADATA_ENCODING_KEY, type Payload, type PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { invalid } from '../contract/errors.ts';
import { ENCRYPTS } from '../contract/failure.ts';
import { UnknownKeyError } from './unknown-key.ts';

const { Payload: PayloadMessage } = proto.temporal.api.common.v1;

/** The names that Temporal's own samples use, in all languages. */
const ENCRYPTED = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_HELP = `AES-256 needs ${KEY_BYTES}. Make a key: openssl rand -base64 ${KEY_BYTES}`;

/** The keys of {@link aesGcmCodec}. */
export interface AesGcmOptions {
  /** Keys by their ids: 32 bytes, or their base64. An id is stored in plain text with each payload. */
  keys: Readonly<Record<string, string | Uint8Array | undefined>>;
  /** The id of the key that encrypts. The other keys only decrypt. */
  current: string;
}

/**
 * A payload codec that encrypts with AES-256-GCM. The format is that of Temporal's encryption samples: workers in other
 * languages read it with the same keys. Workers with this codec also encrypt their failure messages. Payloads that are
 * not encrypted pass through, so that older sessions go on.
 *
 * To rotate keys, add the new key everywhere, then make it `current` everywhere. Keep an old key for as long as there
 * are sessions or archives that it encrypted. A key may encrypt 2^32 payloads: rotate it before that.
 *
 * @throws PerdureError `INVALID_ARGUMENT` for a missing key, or one of another length; when it decodes, `UNKNOWN_KEY`
 * with `details.keyId`
 * @example
 * ```ts
 * import { aesGcmCodec } from 'perdure/encryption';
 *
 * export const dataConverter = {
 *   payloadCodecs: [aesGcmCodec({ keys: { k1: process.env['PERDURE_KEY_K1'] }, current: 'k1' })],
 * };
 * ```
 */
export function aesGcmCodec({ keys, current }: AesGcmOptions): PayloadCodec {
  const known = new Map(Object.entries(keys).map(([id, key]) => [id, keyBytes(id, key)]));
  const currentKey = known.get(current);
  if (currentKey === undefined) {
    throw invalid(
      'current',
      `${JSON.stringify(current)} is not one of the keys: ${[...known.keys()].join(', ') || 'there are none'}`,
    );
  }
  const metadata = { [METADATA_ENCODING_KEY]: Buffer.from(ENCRYPTED), [KEY_ID]: Buffer.from(current) };
  const codec: PayloadCodec & { [ENCRYPTS]: true } = {
    [ENCRYPTS]: true,
    encode: async (payloads) =>
      payloads.map((payload) => ({
        metadata,
        data: encrypted(currentKey, PayloadMessage.encode(payload).finish()),
      })),
    decode: async (payloads) =>
      payloads.map((payload) => {
        if (textOf(payload, METADATA_ENCODING_KEY) !== ENCRYPTED) return payload;
        const id = textOf(payload, KEY_ID);
        const key = known.get(id);
        if (key === undefined)
          throw new UnknownKeyError(id, `This process does not have the encryption key ${id}`);
        return PayloadMessage.decode(decrypted(id, key, payload.data ?? new Uint8Array()));
      }),
  };
  return codec;
}

/** @throws PerdureError `INVALID_ARGUMENT` naming the key, never its value */
function keyBytes(id: string, key: string | Uint8Array | undefined): Uint8Array {
  const field = `keys.${id}`;
  if (id === '') throw invalid('keys', 'a key has an empty id');
  if (key === undefined || key.length === 0) {
    throw invalid(field, 'is missing. Set the variable that holds it');
  }
  const bytes = typeof key === 'string' ? Buffer.from(key.trim(), 'base64') : key;
  if (typeof key === 'string' && !/^[\w+/-]+={0,2}$/.test(key.trim())) {
    throw invalid(field, `is not base64. ${KEY_HELP}`);
  }
  if (bytes.length !== KEY_BYTES) throw invalid(field, `has ${bytes.length} bytes, and ${KEY_HELP}`);
  return bytes;
}

/** A random nonce, the ciphertext, and the tag. */
function encrypted(key: Uint8Array, plain: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypted(id: string, key: Uint8Array, data: Uint8Array): Uint8Array {
  try {
    const end = data.length - TAG_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(data.subarray(end));
    return Buffer.concat([decipher.update(data.subarray(NONCE_BYTES, end)), decipher.final()]);
  } catch (cause) {
    const problem = `A payload cannot be decrypted with the key ${id}: here it is another key, or the payload was changed`;
    throw new UnknownKeyError(id, problem, cause);
  }
}

function textOf({ metadata }: Payload, name: string): string {
  return Buffer.from(metadata?.[name] ?? []).toString();
}
