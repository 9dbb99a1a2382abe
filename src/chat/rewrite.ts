/** Takes a chat back to a message of a person: to answer it again, or to answer it as it is now. */
import type { Session, Sessions } from '../client/index.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { Message } from '../contract/messages.ts';
import { isPersons } from './conversation.ts';

/**
 * Takes a session back to where it had taken a message. Effects from after it answer equal calls,
 * so that nothing is done again.
 *
 * @param text - what the message says now. Default: what it said
 * @throws PerdureError `CHECKPOINT_NOT_FOUND` when the message is of an earlier run; `SESSION_BUSY` while a mutation is open
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

/** The checkpoint of the run that recorded a message first. */
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
