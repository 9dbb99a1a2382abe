import type { Payload, PayloadCodec } from '@temporalio/common';

/** The encoding of sealed payloads. */
export const SEALED: Buffer = Buffer.from('binary/sealed');

/** A user's codec. It seals payloads that contain a secret, and opens them as long as it has its key. */
export class Codec implements PayloadCodec {
  hasKey = true;
  readonly #secret: string;

  constructor(secret = 'secret') {
    this.#secret = secret;
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => {
      const data = Buffer.from(payload.data ?? []);
      if (!data.includes(this.#secret)) return payload;
      return { metadata: { encoding: SEALED }, data: Buffer.from(data.toString('base64')) };
    });
  }

  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => {
      if (!SEALED.equals(payload.metadata?.['encoding'] ?? Buffer.alloc(0))) return payload;
      if (!this.hasKey) throw new Error('the key of this payload is gone');
      return {
        metadata: { encoding: Buffer.from('json/plain') },
        data: Buffer.from(Buffer.from(payload.data ?? []).toString(), 'base64'),
      };
    });
  }
}
