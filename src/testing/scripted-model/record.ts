/** The record of what a scripted model was asked, for counting calls from another process, also after a crash. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';

/** One line of a record file. It is on disk before the first byte of the answer leaves. */
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

/** Opens a record file for appending, and makes it when it is not there. A last line cut short is taken off. */
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
 * Reads a record file, oldest line first; a file that is not there is an empty one. Safe while the endpoint
 * writes: a last line without its end is left out. `outcome === 'reply'` are the calls that were paid for.
 */
export function readRecordFile(path: string): RecordLine[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RecordLine);
}
