import type { Context } from '@temporalio/activity';
import { shortDigest } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';
import type { Past } from '../contract/past.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import { loadPieces } from '../temporal/past.ts';
import type { TranscriptMemory } from './transcript-memory.ts';

/** The messages up to a digest: from this worker's memory, or else from the history. */
export async function transcript(
  context: Context,
  memory: TranscriptMemory,
  digest: string,
): Promise<readonly Message[]> {
  const { workflowExecution } = context.info;
  if (workflowExecution === undefined) throw new Error('this activity runs only in a session');
  const { workflowId, runId } = workflowExecution;
  const known = memory.recall(workflowId, digest);
  if (known !== undefined) return known;
  const { client } = context;
  let found: { messages: Message[]; position: Position; past: Past | undefined } | undefined;
  await foldHistory(readPages(client, workflowExecution), client.options.loadedDataConverter, {
    runId,
    onTask: ({ state: { position, transcript: all, past } }) => {
      if (shortDigest(position.digest) !== shortDigest(digest)) return;
      found = {
        messages: all.slice(0, position.count - (past?.messages ?? 0)),
        position: { ...position },
        past,
      };
    },
  });
  if (found === undefined) throw new Error(`the history has no transcript with the digest ${digest}`);
  const { past, position } = found;
  let { messages } = found;
  if (past !== undefined) {
    const pieces = await loadPieces(client, past.newest);
    messages = [...pieces.flatMap((piece) => piece.messages).slice(0, past.messages), ...messages];
  }
  memory.replace(workflowId, messages, position);
  return messages;
}
