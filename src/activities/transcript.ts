import type { Context } from '@temporalio/activity';
import { shortDigest } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import type { TranscriptMemory } from './transcript-memory.ts';

/** The messages up to a digest: from this worker's memory, or else from the history. */
export async function transcript(
  context: Context,
  memory: TranscriptMemory,
  digest: string,
): Promise<readonly Message[]> {
  const { workflowExecution } = context.info;
  if (workflowExecution === undefined) throw new Error('this activity runs only in a session');
  const { runId } = workflowExecution;
  const known = memory.recall(runId, digest);
  if (known !== undefined) return known;
  const { client } = context;
  let found: { messages: Message[]; position: Position } | undefined;
  await foldHistory(readPages(client, workflowExecution), client.options.loadedDataConverter, {
    runId,
    onTask: ({ state: { position, transcript: all } }) => {
      if (shortDigest(position.digest) !== shortDigest(digest)) return;
      found = { messages: all.slice(0, position.count), position: { ...position } };
    },
  });
  if (found === undefined) throw new Error(`the history has no transcript with the digest ${digest}`);
  memory.replace(runId, found.messages, found.position);
  return found.messages;
}
