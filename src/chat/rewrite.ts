/** Takes a chat back to a message of a person: to answer it again, or to answer its edited text. */
import type { MessagePart, Session, Sessions } from '../client/index.ts';
import { invalid, isPerdureError, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { Message } from '../contract/messages.ts';
import type { SessionState } from '../contract/state.ts';
import { hasMessage } from '../session/state.ts';
import { mayBeTaken } from '../session/taken-ids.ts';
import { isPersons } from './conversation.ts';

/** Where a session has a message. `null`: it has never seen the message, or does not exist. */
export async function placeOf(session: Session, messageId: string): Promise<'queue' | 'transcript' | null> {
  let state: SessionState;
  try {
    state = await session.snapshot();
  } catch (error) {
    if (isPerdureError(error, 'SESSION_NOT_FOUND')) return null;
    throw error;
  }
  if (state.inbox.some(({ id }) => id === messageId)) return 'queue';
  const isTaken = hasMessage(state, messageId) || mayBeTaken(state.past?.taken, messageId);
  return isTaken ? 'transcript' : null;
}

/** The new text of a message. @throws PerdureError `INVALID_ARGUMENT` when it has files */
export function textOf(parts: readonly MessagePart[]): string {
  return parts
    .map((part) => {
      if (part.type === 'text') return part.text;
      throw invalid('messages', 'a message with files cannot be edited. Send a new one');
    })
    .join('\n');
}

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
