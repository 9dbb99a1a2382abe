import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, sep } from 'node:path';

/** A save causes several events. Those within this time count as one, in milliseconds. */
const SETTLE_MS = 60;

/** Watches single files, by their directories, because editors replace files when they save. */
export class FileWatch {
  readonly #onChange: (file: string) => void;
  readonly #directories = new Map<string, { watcher: FSWatcher; names: Set<string> }>();
  #settling: NodeJS.Timeout | undefined;

  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  add(file: string): void {
    const directory = dirname(file);
    const known = this.#directories.get(directory);
    if (known !== undefined) {
      known.names.add(basename(file));
      return;
    }
    const names = new Set([basename(file)]);
    const watcher = watch(directory, (_, name) => {
      if (name === null || !names.has(name)) return;
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => this.#onChange(`${directory}${sep}${name}`), SETTLE_MS);
    });
    // The directory was removed: there is nothing left to watch.
    watcher.on('error', () => watcher.close());
    this.#directories.set(directory, { watcher, names });
  }

  close(): void {
    clearTimeout(this.#settling);
    for (const { watcher } of this.#directories.values()) watcher.close();
    this.#directories.clear();
  }
}
