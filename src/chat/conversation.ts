/** A session's recorded conversation: the answer to one message, and all of it as messages of the AI SDK. */
import type { Session } from '../client/index.ts';
import type { ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { type Block, type Message, textsOf } from '../contract/messages.ts';
import type { PendingCall, SessionView } from '../contract/views.ts';
import { answerId, approvalId, type FileUrl, fileOf, NO_MESSAGE, outcomeOf, sourceOf } from './parts.ts';
import { piecesOf } from './pieces.ts';
import { QUESTION_PART } from './request.ts';

const PAGE = 100;

/** The answer to a message of a person: the replies up to the next message. */
export interface Answer {
  /** Id of the message that it answers. */
  to: string;
  replies: Message[];
  calls: ReadonlyMap<string, ToolCall>;
  /** Whether another message follows it. */
  isPast: boolean;
}

/**
 * The answer to a message, or to the last message.
 *
 * @param view - the state up to which the conversation is read
 * @returns `null` when the message is not in the last five pages of the transcript
 */
export async function readAnswer(
  session: Session,
  view: SessionView,
  messageId?: string,
): Promise<Answer | null> {
  let messages: Message[] = [];
  for (let before = view.messages, pages = 0; before > 0 && pages < 5; pages++) {
    const page = await session.transcript({ before, limit: PAGE });
    messages = [...page.items, ...messages];
    const at = messages.findLastIndex(
      (message) => isPersons(message) && (messageId ?? message.id) === message.id,
    );
    if (at >= 0) return answerAt(session, view, messages, at);
    before = page.first;
    if (page.items.length === 0) break;
  }
  return null;
}

async function answerAt(
  session: Session,
  view: SessionView,
  messages: readonly Message[],
  at: number,
): Promise<Answer> {
  const after = messages.slice(at + 1);
  const isAnswered = (index: number): boolean => after.slice(0, index).some(isReply);
  const end = after.findIndex((message, i) => isPersons(message) && isAnswered(i));
  const replies = after.slice(0, end < 0 ? undefined : end).filter(isReply);
  const calls = await readCalls(session, view, replies);
  return { to: messages[at]?.id ?? '', replies, calls, isPast: end >= 0 };
}

/** The recorded calls of replies, by id. */
async function readCalls(
  session: Session,
  view: Pick<SessionView, 'calls'>,
  replies: readonly Message[],
): Promise<ReadonlyMap<string, ToolCall>> {
  const wanted = new Set(replies.flatMap(({ blocks }) => blocks.flatMap(callIdOf)));
  const calls = new Map<string, ToolCall>();
  for (let before = view.calls; before > 0 && wanted.size > 0; ) {
    const page = await session.calls({ before, limit: PAGE });
    for (const call of page.items) if (wanted.delete(call.id)) calls.set(call.id, call);
    if (page.items.length === 0) break;
    before = page.first;
  }
  return calls;
}

/** A part of a message in the AI SDK's shape. */
export type ChatPart = { type: string } & Record<string, unknown>;
/** A data part of ours, which the AI SDK passes on to the page. */
export type DataPart = { type: `data-perdure-${string}`; id: string; data: object };
/** A message in the AI SDK's shape, `UIMessage`. */
export interface ChatMessage {
  id: string;
  role: 'user' | 'assistant';
  parts: ChatPart[];
}

/**
 * Messages of the conversation, oldest first, for `useChat({ messages })`.
 *
 * @param before - only messages before this index of the session's transcript. `first` of one page is `before` of the
 * next
 */
export async function readConversation(
  session: Session,
  view: SessionView,
  fileUrl: FileUrl,
  before: number = view.messages,
): Promise<{ messages: ChatMessage[]; first: number }> {
  let messages: Message[] = [];
  let first = Math.min(before, view.messages);
  // A page begins with a message of a person, so that no answer is cut.
  for (let pages = 0; first > 0 && (pages < 2 || !messages.some(isPersons)); pages++) {
    const page = await session.transcript({ before: first, limit: PAGE });
    messages = [...page.items, ...messages];
    first = page.first;
    if (page.items.length === 0) break;
  }
  if (first > 0) {
    const from = Math.max(0, messages.findIndex(isPersons));
    messages = messages.slice(from);
    first += from;
  }
  const calls = await readCalls(session, view, messages.filter(isReply));
  const result: ChatMessage[] = [];
  let to = NO_MESSAGE;
  for (const [i, message] of messages.entries()) {
    if (message.aside === true) {
      if (message.role === 'assistant') result.at(-1)?.parts.push(asidePart(messages[i - 1], message));
    } else if (isPersons(message)) {
      to = message.id;
      result.push({
        id: message.id,
        role: 'user',
        parts: partsOf(session.id, message.blocks, calls, fileUrl),
      });
    } else if (isReply(message)) {
      const parts = [{ type: 'step-start' }, ...partsOf(session.id, message.blocks, calls, fileUrl)];
      const last = result.at(-1);
      if (last?.role === 'assistant') last.parts.push(...parts);
      else result.push({ id: answerId(to), role: 'assistant', parts });
    }
  }
  const parts = view.messages === before ? standingParts(view) : [];
  const last = result.at(-1);
  if (parts.length > 0 && last?.role === 'assistant') last.parts.push(...parts);
  else if (parts.length > 0) result.push({ id: answerId(to), role: 'assistant', parts });
  return { messages: result, first };
}

/** A question on the side with its answer. */
function asidePart(asked: Message | undefined, answer: Message): DataPart {
  const [question, text] = [asked, answer].map((message) => message && textsOf(message).join('\n'));
  return { type: 'data-perdure-aside', id: asked?.id ?? answer.id, data: { question, text } };
}

/** What a session waits for, as data parts. */
export function standingParts({ wait, paused, pending }: SessionView): DataPart[] {
  const parts: DataPart[] = [];
  if (wait !== null) parts.push({ type: 'data-perdure-wait', id: 'wait', data: waitData(wait) });
  if (paused !== null) parts.push({ type: 'data-perdure-pause', id: 'pause', data: pauseData(paused) });
  for (const call of pending) if (needsLook(call)) parts.push(callPart(call));
  return parts;
}

export function waitData({ reason, message, since }: NonNullable<SessionView['wait']>): object {
  return { reason, message, since };
}

export function pauseData({ by, reason }: NonNullable<SessionView['paused']>): object {
  return { by, reason };
}

/** Whether a call needs more from a person than an approval. */
export function needsLook({ status, question }: PendingCall): boolean {
  return status.kind !== 'approval' || question !== undefined;
}

/**
 * A call that a person must look at: a question that takes an answer, an unknown outcome, or a tool that no worker has.
 */
export function callPart({ callId, tool, status, question }: PendingCall): DataPart {
  if (question !== undefined) return { type: QUESTION_PART, id: callId, data: { callId, tool, ...question } };
  const reason = 'reason' in status ? status.reason : '';
  return { type: 'data-perdure-call', id: callId, data: { callId, tool, status: status.kind, reason } };
}

function partsOf(
  sessionId: string,
  blocks: readonly Block[],
  calls: ReadonlyMap<string, ToolCall>,
  fileUrl: FileUrl,
): ChatPart[] {
  return piecesOf(blocks).map((piece): ChatPart => {
    if (piece.kind === 'source') return sourceOf(piece.block);
    if (piece.kind === 'file')
      return { ...fileOf(piece.block, fileUrl), ...defined({ filename: piece.block.filename }) };
    if (piece.kind !== 'tool') return { type: piece.kind, text: piece.text, state: 'done' };
    const call = calls.get(piece.id);
    const part = { type: `tool-${piece.name}`, toolCallId: piece.id, input: call?.args ?? piece.input };
    return { ...part, ...(call === undefined ? { state: 'input-available' } : toolState(sessionId, call)) };
  });
}

function toolState(sessionId: string, call: ToolCall): Record<string, unknown> & { state: string } {
  const { status, decision } = call;
  const outcome = outcomeOf(call);
  const id = approvalId(sessionId, call);
  const approved = decision !== null && decision.decision !== 'reject' && decision.decision !== 'expired';
  const answer =
    decision === null ? {} : { approval: { id, approved, ...defined({ reason: decision.reason }) } };
  if (outcome === 'denied') return { state: 'output-denied', ...answer };
  if (outcome !== null && 'output' in outcome)
    return { state: 'output-available', ...outcome, ...(approved && answer) };
  if (outcome !== null) return { state: 'output-error', ...outcome, ...(approved && answer) };
  if (status.kind === 'approval') return { state: 'approval-requested', approval: { id } };
  return { state: decision === null ? 'input-available' : 'approval-responded', ...answer };
}

/** Whether a person wrote a message. The session itself writes summaries, requests for repairs, and reports. */
export function isPersons({
  role,
  summary,
  repair,
  aside,
  report,
}: Pick<Message, 'role' | 'summary' | 'repair' | 'aside' | 'report'>): boolean {
  const isOwn = summary !== undefined || repair !== undefined || report !== undefined;
  return role === 'user' && !isOwn && aside === undefined;
}

export function isReply({ role, summary, aside }: Pick<Message, 'role' | 'summary' | 'aside'>): boolean {
  return role === 'assistant' && summary === undefined && aside === undefined;
}

function callIdOf(block: Block): string[] {
  return block.kind === 'tool_call' ? [block.id] : [];
}
