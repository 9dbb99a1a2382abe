/** Values of sessions: encoded as payloads, and checked against their digests. */
import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { invalid, isPerdureError, messageOf, PerdureError } from '../contract/errors.ts';
import { isDigest, type StoredValue, type ValueRef, type ValueStore } from '../contract/values.ts';
import { decodeBytes, encodeBytes } from '../temporal/payloads.ts';

const PLAIN = Buffer.from('binary/plain');

/** A value, to be stored or as it was read. */
export interface Value {
  bytes: Uint8Array;
  /** Such as `text/plain` or `image/png`. */
  mediaType: string;
}

/** The values of sessions in one namespace. */
export class Values {
  readonly #store: ValueStore;
  readonly #options: Pick<Client['options'], 'loadedDataConverter' | 'namespace'>;

  constructor(store: ValueStore, client: Pick<Client, 'options'>) {
    this.#store = store;
    this.#options = client.options;
  }

  /**
   * Stores a value for a session. The digest is of the encoded bytes. So nobody can check by its digest whether the
   * store has an encrypted value. If a codec encrypts a value to other bytes each time, each result is stored.
   */
  async put({ bytes, mediaType }: Value, sessionId: string): Promise<ValueRef> {
    const payload = { metadata: { encoding: PLAIN, mediaType: Buffer.from(mediaType) }, data: bytes };
    const codecs = this.#options.loadedDataConverter.payloadCodecs;
    const stored = await encodeBytes(codecs, payload, this.#context);
    const digest = sha256(stored);
    await this.#store.put(digest, stored, this.#owner(sessionId));
    return { digest, bytes: bytes.length, media_type: mediaType };
  }

  /**
   * Reads a value of a session.
   *
   * @throws PerdureError `VALUE_NOT_FOUND` when the session has no such value, or it is gone; `CHECKPOINT_CORRUPTION`
   * when what is stored has another digest; `SERVER_UNAVAILABLE` when the store cannot be used
   */
  async get(digest: string, sessionId: string): Promise<Value> {
    if (!isDigest(digest)) throw invalid('digest', 'write the 64 hexadecimal digits of a SHA-256');
    const stored = await usable(async () =>
      (await this.#store.has(digest, this.#owner(sessionId))) ? this.#store.get(digest) : null,
    );
    if (stored === null) {
      throw new PerdureError(
        'VALUE_NOT_FOUND',
        `The store has no value ${digest} of session ${sessionId}: it was removed, or is in another store`,
        { details: { digest, sessionId } },
      );
    }
    if (sha256(stored) !== digest) {
      throw new PerdureError('CHECKPOINT_CORRUPTION', `The stored value ${digest} has other bytes`, {
        details: { digest },
      });
    }
    const codecs = this.#options.loadedDataConverter.payloadCodecs;
    const { metadata, data } = await decodeBytes(codecs, stored, this.#context);
    const mediaType = metadata?.['mediaType'];
    if (!mediaType) {
      throw new PerdureError(
        'CHECKPOINT_CORRUPTION',
        `The stored value ${digest} cannot be decoded. Use the payload codec with which it was stored`,
        { details: { digest } },
      );
    }
    return { bytes: data ?? new Uint8Array(), mediaType: Buffer.from(mediaType).toString() };
  }

  /** Makes a session another owner of a value. */
  async share(digest: string, sessionId: string): Promise<void> {
    await this.#store.share(digest, this.#owner(sessionId));
  }

  /** Makes the session `to` another owner of all values of the session `from`. */
  async shareAll(from: string, to: string): Promise<void> {
    for await (const { digest } of this.#store.list(this.#owner(from))) await this.share(digest, to);
  }

  /** Ends a session's ownership of all its values. Values without another owner are removed. */
  async releaseAll(sessionId: string): Promise<void> {
    const owner = this.#owner(sessionId);
    for await (const { digest } of this.#store.list(owner)) await this.#store.release(digest, owner);
  }

  /** All values in the store, with the owners that are sessions of this namespace. */
  async *list(): AsyncGenerator<StoredValue & { sessions: string[] }> {
    const prefix = this.#owner('');
    for await (const value of this.#store.list()) {
      const own = value.owners.filter((owner) => owner.startsWith(prefix));
      yield { ...value, sessions: own.map((owner) => owner.slice(prefix.length)) };
    }
  }

  /** Ends a session's ownership; `null` removes a value that nobody owns. Returns whether the value was removed. */
  release(digest: string, sessionId: string | null): Promise<boolean> {
    return this.#store.release(digest, sessionId === null ? null : this.#owner(sessionId));
  }

  /** The serialization context for codecs. It is the same for all sessions, because they share values. */
  get #context() {
    return { type: 'workflow', namespace: this.#options.namespace, workflowId: 'perdure-values' } as const;
  }

  /** Sessions of several namespaces may share a store. A namespace has no slash. */
  #owner(sessionId: string): string {
    return `${this.#options.namespace}/${sessionId}`;
  }
}

/** Gives the errors of a store a code. */
export async function usable<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (isPerdureError(cause)) throw cause;
    const why = messageOf(cause);
    throw new PerdureError('SERVER_UNAVAILABLE', `The store of values cannot be used: ${why}`, { cause });
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
