import type { Context } from '@temporalio/activity';
import { shortDigest } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';
import type { ContentRef } from '../contract/thread.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import { entriesOf } from '../temporal/past.ts';
import type { Stretch, TranscriptMemory } from './transcript-memory.ts';

/** The messages up to a digest: from this worker's memory, or else from the history. */
export async function transcript(
  context: Context,
  memory: TranscriptMemory,
  digest: string,
): Promise<Stretch> {
  const { workflowExecution } = context.info;
  if (workflowExecution === undefined) throw new Error('this activity runs only in a session');
  const { workflowId, runId } = workflowExecution;
  const known = memory.recall(workflowId, digest);
  if (known !== undefined) return known;
  const { client } = context;
  let found:
    | { own: Message[]; position: Position; before: number; base: number; newest?: ContentRef }
    | undefined;
  await foldHistory(readPages(client, workflowExecution), client.options, {
    runId,
    onTask: ({ state: { position, transcript: all, past, summarized: base = 0 } }) => {
      if (shortDigest(position.digest) !== shortDigest(digest)) return;
      const before = past?.messages ?? 0;
      const own = all.slice(Math.max(0, base - before), position.count - before);
      found = { own, position: { ...position }, before, base, ...(past && { newest: past.newest }) };
    },
  });
  if (found === undefined) throw new Error(`the history has no transcript with the digest ${digest}`);
  const { own, position, before, base, newest } = found;
  const isPast = newest !== undefined && base < before;
  const earlier = isPast ? await entriesOf(client, newest, 'messages', { first: base, end: before }) : [];
  const messages = [...earlier, ...own];
  memory.replace(workflowId, { messages, base }, position);
  return { messages, base };
}
