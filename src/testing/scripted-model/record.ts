/** The record of a scripted model's calls. Another process can count them, also after a crash. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';

/** One line of a record file. It is on disk before the first byte of the answer is sent. */
export interface RecordLine {
  /** ISO 8601. */
  readonly at: string;
  readonly model: string;
  /** SHA-256 (hex) of the canonical JSON of the messages. */
  readonly digest: string;
  readonly assistantCount: number;
  /** `reply`, `fault:<name>`, `fault:status:<status>`, or `fault:script` for a script that threw. */
  readonly outcome: string;
}

/** Appends lines, each with an fsync. */
export interface RecordFile {
  append(line: RecordLine): void;
  close(): void;
}

/** Opens a record file for appending, and creates it if needed. An incomplete last line is removed. */
export function openRecordFile(path: string): RecordFile {
  if (existsSync(path)) {
    const bytes = readFileSync(path);
    const end = bytes.lastIndexOf('\n') + 1;
    if (end < bytes.length) truncateSync(path, end);
  }
  const file = openSync(path, 'a');
  return {
    append(line) {
      writeFileSync(file, `${JSON.stringify(line)}\n`);
      fsyncSync(file);
    },
    close: () => closeSync(file),
  };
}

/**
 * Reads a record file, oldest line first. A missing file counts as empty. Safe while the endpoint writes: an incomplete
 * last line is left out. Lines with `outcome === 'reply'` are the calls that were paid for.
 */
export function readRecordFile(path: string): RecordLine[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RecordLine);
}
