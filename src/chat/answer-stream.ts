/** Streams the answer to a message as chunks: first what is recorded, then what follows. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Session, StreamPart } from '../client/index.ts';
import { isUnanswered, PerdureError } from '../contract/errors.ts';
import { needsPerson, type Phase } from '../contract/state.ts';
import type { SessionView } from '../contract/views.ts';
import {
  callPart,
  isPersons,
  isReply,
  needsLook,
  pauseData,
  readAnswer,
  standingParts,
  waitData,
} from './conversation.ts';
import { answerId, type FileUrl, NO_MESSAGE } from './parts.ts';
import { type AiSdk, AnswerWriter, type Chunk } from './writer.ts';

export interface AnswerOptions {
  /** The message to answer. Default: the last one. */
  messageId?: string | undefined;
  /** How many replies of the answer the client has. */
  has?: number;
  aiSdk: AiSdk;
  fileUrl: FileUrl;
  signal: AbortSignal;
}

/** A session's stream, read up to the present. */
export interface Opened {
  view: SessionView;
  /** The parts after `view`. */
  parts: AsyncGenerator<StreamPart>;
  cursor: string;
}

/** Opens a session's stream, and reads it up to the present. */
export async function openStream(session: Session, signal: AbortSignal): Promise<Opened> {
  const parts = session.stream({ until: 'rest', signal });
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    const part = next.value;
    if (part.type === 'phase') return { view: part.view, parts, cursor: part.cursor };
  }
  throw new PerdureError('SERVER_UNAVAILABLE', `The stream of ${session.id} has ended early. Try again`);
}

/** Writes an answer until it is complete, or the session waits for somebody. */
export async function* answerChunks(
  session: Session,
  { view, parts, cursor }: Opened,
  { messageId, has = 0, aiSdk, fileUrl, signal }: AnswerOptions,
): AsyncGenerator<Chunk[]> {
  const writer = new AnswerWriter(session.id, aiSdk, fileUrl);
  const answer = await readAnswer(session, view, messageId);
  let wanted: string | null = messageId ?? null;
  let hasReply = false;
  let now = view;
  let { turn } = view;
  let isBegun = false;
  let isSilent = false;
  const begin = (to: string): void => {
    if (!isBegun) writer.put({ type: 'start', messageId: answerId(to) });
    isBegun = true;
  };
  const take = (to: string): void => {
    wanted = null;
    begin(to);
    if (isSilent) writer.put({ type: 'data-perdure-worker', id: 'worker', data: null });
  };
  if (answer !== null) {
    take(answer.to);
    for (const [i, { blocks }] of answer.replies.entries()) {
      if (i < has) writer.skip(blocks);
      else writer.reply(blocks);
      for (const block of blocks) {
        const call = block.kind === 'tool_call' ? answer.calls.get(block.id) : undefined;
        if (call !== undefined) writer.call(call);
      }
      hasReply = true;
    }
    for (const part of standingParts(view)) writer.put(part);
    yield writer.take();
    if (answer.isPast) {
      writer.finish('stop');
      yield writer.take();
      return;
    }
  } else if (messageId === undefined) take(NO_MESSAGE);

  for (let rest: AsyncGenerator<StreamPart> | null = parts; rest !== null; ) {
    for await (const part of wanted === null ? rest : withSilence(session, rest)) {
      if (part.type === 'silence') {
        if (wanted === null) continue;
        isSilent = true;
        begin(wanted);
        writer.put({ type: 'data-perdure-worker', id: 'worker', data: { message: part.message } });
        yield writer.take();
        continue;
      }
      if ('cursor' in part && part.cursor !== '') cursor = part.cursor;
      if (part.type === 'phase') ({ turn } = now = part.view);
      if (part.type === 'message' && isPersons(part)) {
        if (part.id === wanted) take(part.id);
        // The next message has an answer of its own.
        else if (wanted === null && hasReply) {
          writer.finish('stop');
          yield writer.take();
          return;
        }
      }
      if (wanted !== null) continue;
      if (part.type === 'transcript' || (part.type === 'run' && part.cause !== 'continued')) {
        writer.put({ type: 'error', errorText: 'This chat was changed elsewhere. Load it again' });
        yield writer.take();
        return;
      }
      if (part.type === 'message' && isReply(part)) {
        hasReply = true;
        turn += 1;
      }
      write(writer, part, turn + 1);
      const chunks = writer.take();
      if (chunks.length > 0) yield chunks;
      if (rest !== parts && part.type === 'phase' && needsPerson(part.phase) && !writer.hasDecidedCall) break;
    }
    // Continue until a decided call has ended: a client that sends answers automatically would otherwise send them
    // again.
    const isOpen = writer.hasDecidedCall && now.phase !== 'closed' && !signal.aborted;
    rest = isOpen ? session.stream({ since: cursor, until: 'idle', signal }) : null;
  }
  if (wanted !== null) take(wanted);
  if (now.status.kind !== 'active') {
    const why =
      now.status.kind === 'completed' ? 'This chat has ended.' : `This chat has ended: ${endOf(now)}`;
    writer.put({
      type: 'data-perdure-closed',
      id: 'closed',
      data: { status: now.status.kind, message: why },
    });
  }
  writer.finish(FINISH[now.phase] ?? 'other');
  yield writer.take();
}

/** How long a message may wait before we ask whether a worker runs, in milliseconds. */
const SILENT_MS = 3_000;

/** Passes on the parts of a stream. If no worker answers after `SILENT_MS`, adds one part that says why. */
async function* withSilence(
  session: Session,
  parts: AsyncGenerator<StreamPart>,
): AsyncGenerator<StreamPart | { type: 'silence'; message: string }> {
  const over = new AbortController();
  const asked = delay(SILENT_MS, undefined, { ref: false, signal: over.signal })
    .then(() => session.ping())
    .then(
      () => null,
      (error: unknown) => (isUnanswered(error) ? error.message : null),
    );
  let silence: Promise<string | null> | null = asked;
  let next = parts.next();
  try {
    for (;;) {
      const first: IteratorResult<StreamPart> | string | null = await Promise.race(
        silence === null ? [next] : [next, silence],
      );
      if (first === null || typeof first === 'string') {
        silence = null;
        if (first !== null) yield { type: 'silence', message: first };
      } else if (first.done === true) return;
      else {
        yield first.value;
        next = parts.next();
      }
    }
  } finally {
    over.abort();
    await parts.return(undefined);
  }
}

const FINISH: Partial<Record<Phase, 'stop' | 'tool-calls'>> = { idle: 'stop', approval: 'tool-calls' };

function write(writer: AnswerWriter, part: StreamPart, turn: number): void {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'tool_input':
      writer.live(part, turn);
      break;
    case 'reset':
      writer.restart();
      break;
    case 'message':
      if (isReply(part)) writer.reply(part.blocks);
      break;
    case 'call':
      writer.call(part.call);
      break;
    case 'wait':
      writer.put({ type: 'data-perdure-wait', id: 'wait', data: part.wait && waitData(part.wait) });
      break;
    case 'pause':
      writer.put({ type: 'data-perdure-pause', id: 'pause', data: part.paused && pauseData(part.paused) });
      break;
    case 'phase':
      for (const call of part.view.pending) if (needsLook(call)) writer.put(callPart(call));
      break;
    default:
  }
}

function endOf({ status }: SessionView): string {
  return 'reason' in status ? status.reason : 'message' in status ? status.message : '';
}
