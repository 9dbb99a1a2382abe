import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredValue, ValueStore } from '../contract/values.ts';

const VALUE = 'value';
/** The name of a value that is being removed. */
const LEAVING = 'leaving';
/** Where to look for a value, in order. It may be moved and moved back meanwhile, even more than once. */
const PLACES = [VALUE, LEAVING, VALUE, LEAVING, VALUE] as const;
const OWNERS = 'owners';
/** How often to make a folder that another process removes at the same time. */
const FOLDER_TRIES = 100;

/**
 * Stores values in a directory that several processes of one host, or of a shared file system, may use at once. Files
 * are only for this user, and are synced before a value counts as stored.
 *
 * Layout: `values/ab/<digest>/value` with `owners/<owner>` beside it. `owners/<owner>/<digest>` finds an owner's
 * values.
 */
export class DirectoryValues implements ValueStore {
  readonly #root: string;

  /** @param directory - is created on first use. */
  constructor(directory: string) {
    this.#root = directory;
  }

  async put(digest: string, bytes: Uint8Array, owner: string): Promise<void> {
    for (;;) {
      await this.#mark(digest, owner);
      const path = join(this.#at(digest), VALUE);
      // The age of the value counts from now on.
      if (!(await this.#touch(digest)) && (await this.#write(path, bytes))) await sync(join(path, '..'));
      // A process that removed the value before the mark may have removed the folder of the mark, too.
      if (await this.has(digest, owner)) return;
    }
  }

  async get(digest: string): Promise<Uint8Array | null> {
    for (const name of PLACES) {
      const bytes = await orNull(readFile(join(this.#at(digest), name)));
      if (bytes !== null) return bytes;
    }
    return null;
  }

  async has(digest: string, owner: string): Promise<boolean> {
    return (await isThere(join(this.#at(digest), OWNERS, fileOf(owner)))) && this.#isStored(digest);
  }

  async share(digest: string, owner: string): Promise<boolean> {
    if (!(await this.#isStored(digest))) return false;
    await this.#mark(digest, owner);
    await this.#touch(digest);
    return this.has(digest, owner);
  }

  async *list(owner?: string): AsyncGenerator<StoredValue> {
    const digests = owner === undefined ? this.#digests() : await names(this.#ownerAt(owner));
    for await (const digest of digests) {
      const at = this.#at(digest);
      const file = (await orNull(stat(join(at, VALUE)))) ?? (await orNull(stat(join(at, LEAVING))));
      if (file === null) continue;
      const owners: string[] = [];
      for (const name of await names(join(at, OWNERS))) {
        const text = await orNull(readFile(join(at, OWNERS, name), 'utf8'));
        if (text !== null) owners.push(text);
      }
      yield { digest, bytes: file.size, storedAt: file.mtimeMs, owners };
    }
  }

  async release(digest: string, owner: string | null): Promise<boolean> {
    const at = this.#at(digest);
    if (owner !== null) {
      await rm(join(at, OWNERS, fileOf(owner)), { force: true });
      await rm(join(this.#ownerAt(owner), digest), { force: true });
      await rmdir(this.#ownerAt(owner)).catch(() => undefined);
    }
    if ((await names(join(at, OWNERS))).length > 0) return false;
    // A process that stores the value now marks it before the second look at the owners, or finds it gone and writes
    // it.
    await found(rename(join(at, VALUE), join(at, LEAVING)));
    if ((await names(join(at, OWNERS))).length > 0) {
      await found(rename(join(at, LEAVING), join(at, VALUE)));
      return false;
    }
    const removed = await isThere(join(at, LEAVING));
    await rm(join(at, LEAVING), { force: true });
    await rmdir(join(at, OWNERS)).catch(() => undefined);
    await rmdir(at).catch(() => undefined);
    return removed;
  }

  async #isStored(digest: string): Promise<boolean> {
    for (const name of PLACES) if (await isThere(join(this.#at(digest), name))) return true;
    return false;
  }

  async *#digests(): AsyncGenerator<string> {
    for (const beginning of await names(join(this.#root, 'values')))
      yield* await names(join(this.#root, 'values', beginning));
  }

  async #mark(digest: string, owner: string): Promise<void> {
    const places = [
      [this.#ownerAt(owner), digest],
      [join(this.#at(digest), OWNERS), fileOf(owner)],
    ] as const;
    for (const [folder, name] of places) {
      for (let tries = 1; ; tries++) {
        // While another process removes the folder, Node reports the new one as "not a directory".
        const made = mkdir(folder, { recursive: true, mode: 0o700 });
        await (tries < FOLDER_TRIES ? orNull(made) : made);
        if (await this.#write(join(folder, name), Buffer.from(owner))) break;
      }
    }
  }

  /** Writes a file whole or not at all, even on a full disk. @returns `false` when its folder was just removed */
  async #write(path: string, bytes: Uint8Array): Promise<boolean> {
    const folder = join(this.#root, 'writing');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const temporary = join(folder, randomUUID());
    try {
      await writeFile(temporary, bytes, { mode: 0o600, flush: true });
      return await found(rename(temporary, path));
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Sets the age of a value to zero. @returns `false` when there is no value */
  #touch(digest: string): Promise<boolean> {
    const now = new Date();
    return found(utimes(join(this.#at(digest), VALUE), now, now));
  }

  #at(digest: string): string {
    return join(this.#root, 'values', digest.slice(0, 2), digest);
  }

  #ownerAt(owner: string): string {
    return join(this.#root, 'owners', fileOf(owner));
  }
}

/** The file name of an owner: a hash, because an owner may have characters that a file name cannot have. */
function fileOf(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 32);
}

async function names(folder: string): Promise<string[]> {
  return (await orNull(readdir(folder))) ?? [];
}

async function isThere(path: string): Promise<boolean> {
  return (await orNull(stat(path))) !== null;
}

/** Syncs a folder, so that a rename in it lasts. */
async function sync(folder: string): Promise<void> {
  const handle = await orNull(open(folder));
  await handle?.sync();
  await handle?.close();
}

/** The result, or `null` when there is no such file. */
async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/** Whether there was such a file. */
async function found(call: Promise<void>): Promise<boolean> {
  return (await orNull(call.then(() => true))) ?? false;
}
