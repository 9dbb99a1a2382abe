import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredValue, ValueStore } from '../contract/values.ts';

const VALUE = 'value';
/** Begins the name of a value that is being removed. */
const LEAVING = 'leaving';
const OWNERS = 'owners';
/** How often a value is looked for. Others may move it and move it back meanwhile. */
const LOOKS = 5;
/** How often to make a folder that another process removes at the same time. */
const FOLDER_TRIES = 100;

/**
 * Stores values in a directory that several processes of one host, or of a shared file system, may use at once. Files
 * are only for this user, and are synced before a value counts as stored.
 *
 * Layout: `values/ab/<digest>/value` with `owners/<owner>` beside it. `owners/<owner>/<digest>` finds an owner's
 * values. The age of a value is that of its youngest owner.
 *
 * A process that removes a value first renames it to `leaving.<id>`, a name of its own, and then looks for owners. If
 * there are any, it renames the value back. Otherwise it removes what has that name. A process that stores the value
 * first becomes an owner, and then looks for a `value`, or writes one. So if both happen at once, one process sees the
 * other. A process that dies leaves a `leaving.<id>`. The next one that removes the value takes it over in the same way.
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
      if (!(await isThere(path)) && (await this.#write(path, bytes))) await sync(join(path, '..'));
      // A process that removed the value before the mark may have removed the folder of the mark, too.
      if (await this.has(digest, owner)) return;
    }
  }

  get(digest: string): Promise<Uint8Array | null> {
    return this.#find(digest, (path) => readFile(path));
  }

  async has(digest: string, owner: string): Promise<boolean> {
    return (await isThere(join(this.#at(digest), OWNERS, fileOf(owner)))) && this.#isStored(digest);
  }

  async share(digest: string, owner: string): Promise<boolean> {
    if (!(await this.#isStored(digest))) return false;
    await this.#mark(digest, owner);
    if (await isThere(join(this.#at(digest), VALUE))) return true;
    // Whoever removes it may have looked for owners before there was this one.
    const bytes = await this.get(digest);
    if (bytes === null) return false;
    await this.put(digest, bytes, owner);
    return true;
  }

  async *list(owner?: string): AsyncGenerator<StoredValue> {
    const digests = owner === undefined ? this.#digests() : await names(this.#ownerAt(owner));
    for await (const digest of digests) {
      const file = await this.#find(digest, (path) => stat(path));
      if (file === null) continue;
      const value: StoredValue = { digest, bytes: file.size, storedAt: file.mtimeMs, owners: [] };
      const folder = join(this.#at(digest), OWNERS);
      for (const path of (await names(folder)).map((name) => join(folder, name))) {
        const mark = await orNull(stat(path));
        const text = await orNull(readFile(path, 'utf8'));
        if (mark === null || text === null) continue;
        value.storedAt = Math.max(value.storedAt, mark.mtimeMs);
        value.owners.push(text);
      }
      yield value;
    }
  }

  async release(digest: string, owner: string | null): Promise<boolean> {
    if (owner !== null) {
      await rm(join(this.#at(digest), OWNERS, fileOf(owner)), { force: true });
      await rm(join(this.#ownerAt(owner), digest), { force: true });
      await rmdir(this.#ownerAt(owner)).catch(() => undefined);
    }
    while (!(await this.#isOwned(digest))) {
      const own = await this.#take(digest);
      if (!(await this.#isOwned(digest))) return this.#remove(digest, own);
      // Then look again: the new owner may have left meanwhile, without finding the value.
      for (const path of own) await found(rename(path, join(this.#at(digest), VALUE)));
    }
    return false;
  }

  /** Renames each file of a value to a name that only this process has. @returns the new paths */
  async #take(digest: string): Promise<string[]> {
    const own: string[] = [];
    for (const path of await this.#files(digest)) {
      const to = join(path, '..', `${LEAVING}.${randomUUID()}`);
      if (await found(rename(path, to))) own.push(to);
    }
    return own;
  }

  /** @returns whether one of the files was still there */
  async #remove(digest: string, paths: readonly string[]): Promise<boolean> {
    let removed = false;
    for (const path of paths) removed = (await found(rm(path))) || removed;
    await rmdir(join(this.#at(digest), OWNERS)).catch(() => undefined);
    await rmdir(this.#at(digest)).catch(() => undefined);
    return removed;
  }

  async #isStored(digest: string): Promise<boolean> {
    return (await this.#find(digest, (path) => stat(path))) !== null;
  }

  async #isOwned(digest: string): Promise<boolean> {
    return (await names(join(this.#at(digest), OWNERS))).length > 0;
  }

  /** What `read` makes of a file of the value, or `null` when there is none. */
  async #find<T>(digest: string, read: (path: string) => Promise<T>): Promise<T | null> {
    for (let i = 0; i < LOOKS; i++) {
      for (const path of await this.#files(digest)) {
        const result = await orNull(read(path));
        if (result !== null) return result;
      }
    }
    return null;
  }

  /** The files that hold the value: usually one. */
  async #files(digest: string): Promise<string[]> {
    const at = this.#at(digest);
    const files = (await names(at)).filter((name) => name === VALUE || name.startsWith(LEAVING));
    return files.map((name) => join(at, name));
  }

  async *#digests(): AsyncGenerator<string> {
    for (const beginning of await names(join(this.#root, 'values')))
      yield* await names(join(this.#root, 'values', beginning));
  }

  /** Makes an owner. For an existing one, this sets the age of the value to zero. */
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
