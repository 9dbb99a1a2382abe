/** Reading through a thread without having all of it in memory. */
import type { Checkpoint, CheckpointSaver } from '../contract/checkpoint.ts';
import { jsonSize } from '../contract/json.ts';

/** The most records of a page. */
const MOST = 256;
/** What a page should not be larger than, in bytes of JSON: a record alone may be. */
const PAGE_BYTES = 8_000_000;

/** Where to begin, and how. */
interface Reading {
  /** Only what was stored before this one. */
  before?: string | undefined;
  /** The most to hand over. Default: all. */
  limit?: number;
  /** The records of the first page; the next ones are of the size that this one suggests. */
  first: number;
}

/** The checkpoints of a thread, newest first. A page is read when the one before is used up. */
export async function* inPages(
  saver: Pick<CheckpointSaver, 'list'>,
  threadId: string,
  { before, limit = Number.POSITIVE_INFINITY, first }: Reading,
): AsyncGenerator<Checkpoint> {
  let from = before;
  let left = limit;
  for (let wanted = Math.min(first, left); ; ) {
    const page = await saver.list(threadId, { limit: wanted, before: from });
    yield* page;
    left -= page.length;
    from = page.at(-1)?.id;
    if (page.length < wanted || left <= 0 || from === undefined) return;
    const average = page.reduce((bytes, record) => bytes + jsonSize(record), 0) / page.length;
    const fitting = Math.max(1, Math.floor(PAGE_BYTES / average));
    wanted = Math.min(wanted * 4, MOST, fitting, left);
  }
}
