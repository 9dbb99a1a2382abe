/** Reads a thread page by page. */
import type { Checkpoint, CheckpointSaver } from '../contract/checkpoint.ts';
import { jsonSize } from '../contract/json.ts';

const MOST = 256;
/** The most bytes of JSON in a page of several records. */
const PAGE_BYTES = 8_000_000;

interface Reading {
  /** Only checkpoints that were stored before this one. */
  before?: string | undefined;
  /** The most checkpoints to return. Default: all. */
  limit?: number;
  /** Records in the first page. Their size decides how many the next pages have. */
  first: number;
}

/** The checkpoints of a thread, newest first. Each page is read on demand. */
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
