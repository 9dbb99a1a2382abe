import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredValue, ValueStore } from '../contract/values.ts';

const VALUE = 'value';
/** The name of a value that is being removed. */
const LEAVING = 'leaving';
/** Where a value is looked for: it may be on its way back meanwhile, and more than once. */
const PLACES = [VALUE, LEAVING, VALUE, LEAVING, VALUE] as const;
const OWNERS = 'owners';
/** How often a folder is made that another process removes at the same time. */
const FOLDER_TRIES = 100;

/**
 * Values in a directory, which several processes of one host, or of a shared file system, may use at once. Files are only
 * for this user, and are synced before a value counts as stored.
 *
 * Layout: `values/ab/<digest>/value` with `owners/<owner>` beside it, and `owners/<owner>/<digest>` as the way back.
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
      // Its age counts from now on.
      if (!(await this.#touch(digest)) && (await this.#write(path, bytes))) await sync(join(path, '..'));
      // Somebody who removed the value before the mark may have removed the folder with it.
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
    // Whoever stores it now either marks it before the second look, or finds it gone and writes it.
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

  /** The file is there whole, or not at all: a disk may have no room. `false` when its folder was removed just now. */
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

  /** Makes a value as young as one that is stored now. `false` when there is none. */
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

/** An owner may have characters that a file's name cannot have. */
function fileOf(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 32);
}

async function names(folder: string): Promise<string[]> {
  return (await orNull(readdir(folder))) ?? [];
}

async function isThere(path: string): Promise<boolean> {
  return (await orNull(stat(path))) !== null;
}

/** A rename lasts when the folder is synced. */
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
