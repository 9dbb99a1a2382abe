/** An append-only file of what has happened. A row is on disk before anybody is told of it. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Row } from './protocol.ts';

/** What a row says, before the ledger gives it an id and a time. */
export type Entry = Row extends infer Each ? (Each extends Row ? Omit<Each, 'id' | 'at'> : never) : never;

const ID_PREFIX: Record<Row['kind'], string> = { refund: 're', email: 'em' };

/** One process writes a ledger at a time. */
export class Ledger {
  readonly #file: number;
  readonly #rows: Row[];

  /** Opens the ledger at `path`, reading what is there. A last line that a crash cut short never happened. */
  constructor(path: string) {
    const existed = existsSync(path);
    const bytes = existed ? readFileSync(path) : Buffer.alloc(0);
    const end = bytes.lastIndexOf('\n') + 1;
    if (end < bytes.length) truncateSync(path, end);
    this.#rows = bytes
      .toString('utf8', 0, end)
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Row);
    this.#file = openSync(path, 'a');
    if (!existed) syncFolder(dirname(path));
  }

  /** All rows, oldest first. */
  get rows(): readonly Row[] {
    return this.#rows;
  }

  /** The first row of a kind with this key. */
  find<Kind extends Row['kind']>(kind: Kind, key: string): Extract<Row, { kind: Kind }> | undefined {
    return this.#rows.find(
      (row): row is Extract<Row, { kind: Kind }> => row.kind === kind && row.key === key,
    );
  }

  /** Writes a row and returns it once it is on disk. */
  append(entry: Entry): Row {
    const id = `${ID_PREFIX[entry.kind]}_${this.#rows.length + 1}`;
    const row: Row = { id, at: new Date().toISOString(), ...entry };
    writeFileSync(this.#file, `${JSON.stringify(row)}\n`);
    fsyncSync(this.#file);
    this.#rows.push(row);
    return row;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Whether two rows' arguments are the same. */
export function sameArgs(one: Row['args'], other: Row['args']): boolean {
  return isDeepStrictEqual(one, other);
}

/** A new file survives a power cut only when its folder's entry is on disk, too. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  fsyncSync(folder);
  closeSync(folder);
}
