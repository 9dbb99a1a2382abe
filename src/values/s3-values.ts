import { createHash, randomUUID } from 'node:crypto';
import type { StoredValue, ValueStore } from '../contract/values.ts';
import { S3Bucket, type S3Object } from './s3-bucket.ts';
import { parseS3Url, type S3Options } from './s3-url.ts';

/** How often a value is looked for. Others may remove it and store it again meanwhile. */
const ATTEMPTS = 10;
/** Longer names of owners are hashed: a key has at most 1,024 bytes. */
const NAME_BYTES = 200;
/** Part of the key of a note, which says that the copy beside it is being removed. */
const LEAVING = '.leaving.';

/**
 * Stores values in a bucket of S3, or of a compatible service whose reads and lists show all earlier writes. Needs the
 * optional package `@aws-sdk/client-s3`. Calls reject with `SERVER_UNAVAILABLE` when the bucket cannot be used.
 *
 * Layout: `values/<digest>/copies/<id>` with `values/<digest>/owners/<owner>` beside it. `owners/<owner>/<digest>`
 * finds an owner's values. Usually a value has one copy. A process that removes a copy first writes a note beside it,
 * and then looks for owners. A process that stores the value first becomes an owner, and then looks for a copy without
 * a note, or writes one. So if both happen at once, one process sees the other. A copy's id is never used again, so
 * that a late removal cannot reach a newer copy.
 */
export class S3Values implements ValueStore {
  readonly #bucket: S3Bucket;

  /**
   * @param url - `s3://bucket/prefix`. Its query may hold `endpoint`, `region` and `forcePathStyle`.
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string, options: S3Options = {}) {
    this.#bucket = new S3Bucket({ ...parseS3Url(url), ...options });
  }

  async put(digest: string, bytes: Uint8Array, owner: string): Promise<void> {
    await this.#mark(digest, owner);
    if (!(await this.#stays(digest))) await this.#bucket.write(copiesOf(digest) + randomUUID(), bytes);
  }

  async get(digest: string): Promise<Uint8Array | null> {
    // A copy may be removed before it is read, and then there may be another one.
    for (let i = 0; i < ATTEMPTS; i++) {
      const { copies } = await this.#copies(digest);
      if (copies.length === 0) return null;
      for (const copy of copies) {
        const bytes = await this.#bucket.read(copy);
        if (bytes !== null) return bytes;
      }
    }
    return null;
  }

  async has(digest: string, owner: string): Promise<boolean> {
    const [isOwner, { copies }] = await Promise.all([
      this.#bucket.has(ownersOf(digest) + nameOf(owner)),
      this.#copies(digest),
    ]);
    return isOwner && copies.length > 0;
  }

  async share(digest: string, owner: string): Promise<boolean> {
    if ((await this.#copies(digest)).copies.length === 0) return false;
    await this.#mark(digest, owner);
    if (await this.#stays(digest)) return true;
    const bytes = await this.get(digest);
    if (bytes === null) return false;
    await this.put(digest, bytes, owner);
    return true;
  }

  async *list(owner?: string): AsyncGenerator<StoredValue> {
    if (owner === undefined) {
      yield* this.#values('values/');
      return;
    }
    for await (const { key } of this.#bucket.list(wayBack(owner))) {
      yield* this.#values(`values/${key.slice(wayBack(owner).length)}/`);
    }
  }

  async release(digest: string, owner: string | null): Promise<boolean> {
    if (owner !== null) {
      await this.#bucket.remove(ownersOf(digest) + nameOf(owner));
      await this.#bucket.remove(wayBack(owner) + digest);
    }
    const { copies, notes } = await this.#copies(digest);
    if (copies.length === 0 || (await this.#isOwned(digest))) return false;
    const own = copies.map((copy) => copy + LEAVING + randomUUID());
    await Promise.all(own.map((note) => this.#bucket.write(note, Buffer.alloc(0))));
    const stays = await this.#isOwned(digest);
    if (!stays) await this.#bucket.remove(...copies);
    await this.#bucket.remove(...own, ...(stays ? [] : await this.#leftOver(digest, notes)));
    return !stays;
  }

  /** Notes whose copies are gone: whoever wrote them has died or is about to remove them. */
  async #leftOver(digest: string, notes: readonly string[]): Promise<string[]> {
    if (notes.length === 0) return [];
    const { copies } = await this.#copies(digest);
    return notes.filter((note) => !copies.some((copy) => note.startsWith(copy)));
  }

  async #mark(digest: string, owner: string): Promise<void> {
    const text = Buffer.from(owner);
    await this.#bucket.write(wayBack(owner) + digest, text);
    // Writing the owner again sets the age of the value to zero.
    await this.#bucket.write(ownersOf(digest) + nameOf(owner), text);
  }

  /** Whether there is a copy that nobody is removing. Call it once the value has an owner. */
  async #stays(digest: string): Promise<boolean> {
    const { copies, notes } = await this.#copies(digest);
    const unmarked = copies.filter((copy) => !notes.some((note) => note.startsWith(copy)));
    // A list is not of one moment: copy and note may have left in the middle of it. A copy that is there after the list
    // had no note during all of it.
    for (const copy of unmarked) if (await this.#bucket.has(copy)) return true;
    return false;
  }

  async #isOwned(digest: string): Promise<boolean> {
    for await (const _ of this.#bucket.list(ownersOf(digest), 1)) return true;
    return false;
  }

  /** The keys of a value's copies, and of the notes beside copies that are being removed. */
  async #copies(digest: string): Promise<{ copies: string[]; notes: string[] }> {
    const [copies, notes]: [string[], string[]] = [[], []];
    for await (const { key } of this.#bucket.list(copiesOf(digest)))
      (key.includes(LEAVING) ? notes : copies).push(key);
    return { copies, notes };
  }

  /** The values whose keys have this beginning. The keys of one value follow each other. */
  async *#values(beginning: string): AsyncGenerator<StoredValue> {
    let value: StoredValue | undefined;
    for await (const object of this.#bucket.list(beginning)) {
      const [, digest = ''] = object.key.split('/');
      if (value?.digest !== digest) {
        if (value !== undefined && value.bytes >= 0) yield value;
        value = { digest, bytes: -1, storedAt: 0, owners: [] };
      }
      await this.#add(value, object);
    }
    if (value !== undefined && value.bytes >= 0) yield value;
  }

  async #add(value: StoredValue, { key, bytes, storedAt }: S3Object): Promise<void> {
    if (key.includes(LEAVING)) return;
    value.storedAt = Math.max(value.storedAt, storedAt);
    if (key.startsWith(copiesOf(value.digest))) {
      value.bytes = bytes;
      return;
    }
    const owner = ownerOf(key.slice(ownersOf(value.digest).length));
    const text = owner ?? (await this.#bucket.read(key));
    if (text !== null) value.owners.push(Buffer.from(text).toString());
  }
}

function copiesOf(digest: string): string {
  return `values/${digest}/copies/`;
}

function ownersOf(digest: string): string {
  return `values/${digest}/owners/`;
}

function wayBack(owner: string): string {
  return `owners/${nameOf(owner)}/`;
}

/** Encodes an owner for a key. A long owner is hashed, and its object holds the text. */
function nameOf(owner: string): string {
  const name = owner.replace(/[^A-Za-z0-9_-]+/g, (text) =>
    Buffer.from(text).toString('hex').replace(/../g, '.$&'),
  );
  return name.length <= NAME_BYTES ? name : `~${createHash('sha256').update(owner).digest('hex')}`;
}

/** The owner of a name, or `null` when it was hashed. */
function ownerOf(name: string): string | null {
  if (name.startsWith('~')) return null;
  return name.replace(/(\.[0-9a-f]{2})+/g, (codes) =>
    Buffer.from(codes.replaceAll('.', ''), 'hex').toString(),
  );
}
