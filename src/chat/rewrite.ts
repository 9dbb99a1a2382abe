/** Takes a chat back to a message of a person: to answer it again, or to answer its edited text. */
import type { Session, Sessions } from '../client/index.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { Message } from '../contract/messages.ts';
import { isPersons } from './conversation.ts';

/**
 * Rewinds a session to the checkpoint that recorded a message. Later effects answer equal calls, so nothing is done
 * again.
 *
 * @param text - the new text of the message. Default: its old text
 * @throws PerdureError `CHECKPOINT_NOT_FOUND` when the message is not among the last 200, or is of an earlier run;
 * `SESSION_BUSY` while a mutation is open
 */
export async function takeBack(
  sessions: Sessions,
  session: Session,
  { messageId, text, by }: { messageId: string; text?: string; by: string },
): Promise<void> {
  const { runId, messages } = await session.state();
  const before = await session.transcript({ before: messages, limit: 200 });
  const at = before.items.findLastIndex((message) => isPersons(message) && message.id === messageId);
  const message = before.items[at];
  const cursor = message && (await cursorOf(session, runId, message.id));
  if (message === undefined || cursor === undefined) {
    throw new PerdureError(
      'CHECKPOINT_NOT_FOUND',
      'This message is too old to be answered again. Ask once more in a new message',
    );
  }
  const blocks: Message['blocks'] | undefined = text === undefined ? undefined : [{ kind: 'text', text }];
  const edits = blocks && { transcript: { from: before.first + at, messages: [{ ...message, blocks }] } };
  const reason = text === undefined ? 'answered again in the chat' : 'edited in the chat';
  await sessions.rewind(
    { sessionId: session.id, checkpointId: cursor },
    { by, reason, ...defined({ edits }) },
  );
}

/** The first checkpoint of a run that holds a message. */
async function cursorOf(session: Session, runId: string, messageId: string): Promise<string | undefined> {
  const stop = new AbortController();
  try {
    for await (const part of session.stream({ since: `${runId}:1`, until: 'rest', signal: stop.signal })) {
      if (part.type === 'message' && part.id === messageId) return part.cursor.split(':', 2).join(':');
    }
  } finally {
    stop.abort();
  }
  return undefined;
}
