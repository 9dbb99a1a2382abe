/** Values that are too large for the history: they are stored apart, and the session holds references. */
import * as z from 'zod/mini';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** Names a stored value. */
export interface ValueRef {
  /** SHA-256, in hexadecimal, of what the store holds: the value after the data converter's payload codecs. */
  digest: string;
  /** Bytes of the value itself. */
  bytes: number;
  media_type: string;
}

export const valueRefSchema: LazySchema<ValueRef> = lazySchema(() =>
  z.object({
    digest: z.string().check(z.regex(DIGEST, 'write the 64 hexadecimal digits of a SHA-256')),
    bytes: z.int().check(z.nonnegative()),
    media_type: z.string().check(z.minLength(1), z.maxLength(200)),
  }),
);

const DIGEST = /^[0-9a-f]{64}$/;

export function isDigest(value: unknown): value is string {
  return typeof value === 'string' && DIGEST.test(value);
}

/** A media type, or the first half of one. A header can carry it. */
export const MEDIA_TYPE: RegExp = /^[\w!#$&^.+*-]+(\/[\w!#$&^.+*-]+)?([ \t]*;[\x20-\x7e]*)?$/;

/** The built-in tool with which a model reads on in a stored value. */
export const READ_VALUE_TOOL = 'read_value';

/**
 * Where values are stored. Equal bytes are stored once, and each session that refers to them is an owner of them. All
 * calls may be repeated, and may be made by several processes at once. They reject when the store cannot be used.
 */
export interface ValueStore {
  /** Stores bytes for an owner. Durable when it resolves. */
  put(digest: string, bytes: Uint8Array, owner: string): Promise<void>;
  /** The bytes, or `null` when they are not stored. */
  get(digest: string): Promise<Uint8Array | null>;
  /** Whether the value is stored for this owner. */
  has(digest: string, owner: string): Promise<boolean>;
  /** Adds an owner to a stored value. `false` when the value is not stored. */
  share(digest: string, owner: string): Promise<boolean>;
  /** The values of an owner, or all. */
  list(owner?: string): AsyncIterable<StoredValue>;
  /** Ends an owner's ownership (`null`: nobody's) and removes the value if no owner is left. Returns whether it did. */
  release(digest: string, owner: string | null): Promise<boolean>;
}

export interface StoredValue {
  digest: string;
  /** Bytes that the store holds. */
  bytes: number;
  /** When it was stored last, in milliseconds since 1970. */
  storedAt: number;
  owners: string[];
}
