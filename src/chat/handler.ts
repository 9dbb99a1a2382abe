/** A durable chat over HTTP, for `useChat` of the AI SDK. */
import type { Session, Sessions, StartedAgent } from '../client/index.ts';
import { invalid, isPerdureError, PerdureError } from '../contract/errors.ts';
import { STOPPED_IN_CHAT } from '../contract/inputs.ts';
import { defined, type JsonObject } from '../contract/json.ts';
import { needsPerson } from '../contract/state.ts';
import type { PendingCall, SessionView } from '../contract/views.ts';
import { errorBody, reportUnexpected, STATUS } from '../http/errors.ts';
import { type AnswerOptions, answerChunks, openStream } from './answer-stream.ts';
import { readConversation } from './conversation.ts';
import { decide } from './decide.ts';
import type { FileUrl } from './parts.ts';
import { type ChatRequest, noAnswer, parseAside, parseRequest, readBody, type Said } from './request.ts';
import { placeOf, takeBack, textOf } from './rewrite.ts';
import { sseResponse } from './sse.ts';
import type { AiSdk } from './writer.ts';

/** The person who chats. */
export interface ChatUser {
  /** The user's id. Together with the chat's id it names the session. Messages and decisions are recorded with it. */
  user: string;
  /** The context of the session that a new chat starts. */
  context?: JsonObject;
}

export interface ChatHandlerOptions {
  sessions: Sessions;
  /** The agent of new chats: its name, or its definition, which checks the context. */
  agent: string | StartedAgent;
  /**
   * Says who asks. `null` refuses with 401; a `Response` is sent as it is. A chat belongs to the user who began it: the
   * same chat id of another user is another session.
   */
  authorize(
    request: Request,
    chatId: string,
  ): ChatUser | Response | null | Promise<ChatUser | Response | null>;
  /** The path where the handler is mounted. Default: `/api/chat`, the AI SDK's own. */
  base?: string;
  /**
   * The id of a chat's session. Users choose chat ids: no choice may lead to another user's session. Default:
   * `chat:<user>:<chat id>`.
   */
  sessionId?(chatId: string, user: ChatUser): string;
  /** Whether this user may answer an approval in the chat. Default: yes. Otherwise it waits for somebody else. */
  mayDecide?(call: PendingCall, user: ChatUser): boolean | Promise<boolean>;
  /**
   * The AI SDK's major version in the browser. Default: what the header `x-ai-sdk` says, otherwise 6, which clients of
   * version 7 understand. Only version 7 can remove the text of a worker that died in mid-answer.
   */
  aiSdk?: AiSdk;
  /** Largest request in bytes. Default: 8 MiB. */
  maxBytes?: number;
  /** Called with errors whose details the browser does not get. */
  onError?(error: unknown): void;
  /** Lets browsers send files by their URL, which providers or workers fetch. Default: only `data:` URLs. */
  fileUrls?: boolean;
}

/** How long after its end an answer is sent again to a page that reconnects, in milliseconds. */
const JUST_ENDED_MS = 5_000;

/**
 * Makes a handler for `useChat`. `POST base` sends a message or answers an approval, and streams the answer.
 * `GET base/:id/stream` continues after a reload, with 204 when nothing is being written. `GET base/:id` gives the
 * messages. `POST base/:id/stop` stops the answer. `POST base/:id/aside` sends an aside. The session continues when a
 * browser disconnects.
 *
 * From what a browser sends, the handler takes only the person's last message, and answers to open approvals and
 * questions.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { createChatHandler } from 'perdure/chat';
 * import { Sessions } from 'perdure/client';
 *
 * const handler = createChatHandler({
 *   sessions: new Sessions(new Client()),
 *   agent: 'support',
 *   authorize: (request) => {
 *     const user = request.headers.get('x-user');
 *     return user === null ? null : { user };
 *   },
 * });
 * export { handler as GET, handler as POST };
 * ```
 */
export function createChatHandler(options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  const base = (options.base ?? '/api/chat').replace(/\/$/, '');
  return async (request) => {
    try {
      return await route(options, base, request);
    } catch (error) {
      reportUnexpected(error, (unexpected) => options.onError?.(unexpected), request.signal);
      const { code, message } = errorBody(error).error;
      // The AI SDK shows the text of the answer as the error's message.
      const headers = new Headers({ 'content-type': 'text/plain; charset=utf-8', 'x-perdure-error': code });
      // The rest of the request is not read.
      if (code === 'TOO_LARGE') headers.set('connection', 'close');
      return new Response(message, { status: STATUS[code], headers });
    }
  };
}

async function route(options: ChatHandlerOptions, base: string, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [chatId, ...rest] = pathname.startsWith(`${base}/`)
    ? pathname
        .slice(base.length + 1)
        .split('/')
        .map(decoded)
    : [];
  const what = `${request.method} ${rest[0] ?? ''}`.trim();
  if (pathname === base && request.method === 'POST') {
    const asked = parseRequest(await jsonBody(options, request), options.fileUrls === true);
    return withChat(options, base, request, asked.chatId, (chat) => post(chat, asked));
  }
  if (chatId !== undefined && chatId !== '' && rest.length < 3) {
    if (what === 'GET' && rest.length === 0) return withChat(options, base, request, chatId, messages);
    if (what === 'GET stream' && rest.length === 1) return withChat(options, base, request, chatId, resume);
    if (what === 'POST stop' && rest.length === 1) return withChat(options, base, request, chatId, stop);
    if (what === 'POST aside' && rest.length === 1) {
      const asked = parseAside(await jsonBody(options, request));
      return withChat(options, base, request, chatId, (chat) => aside(chat, asked));
    }
    const digest = rest[1];
    if (what === 'GET files' && digest !== undefined)
      return withChat(options, base, request, chatId, (chat) => file(chat, digest));
  }
  throw new PerdureError(
    'ROUTE_NOT_FOUND',
    `There is no ${request.method} ${pathname}. The chat is at ${base}`,
  );
}

function jsonBody({ maxBytes = 8 * 1024 * 1024 }: ChatHandlerOptions, request: Request): Promise<unknown> {
  // A page of another origin can send forms without permission, but not JSON.
  if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
    throw new PerdureError('UNSUPPORTED_MEDIA_TYPE', 'Send the content type application/json');
  return readBody(request, maxBytes);
}

/** A request of an authorized user. */
interface Chat {
  readonly options: ChatHandlerOptions;
  readonly request: Request;
  readonly user: ChatUser;
  readonly session: Session;
  readonly fileUrl: FileUrl;
}

async function withChat(
  options: ChatHandlerOptions,
  base: string,
  request: Request,
  chatId: string,
  answer: (chat: Chat) => Promise<Response>,
): Promise<Response> {
  const user = await options.authorize(request, chatId);
  if (user instanceof Response) return user;
  if (user === null) throw new PerdureError('UNAUTHORIZED', 'Sign in to chat');
  if (typeof user.user !== 'string' || user.user === '')
    throw new PerdureError('INTERNAL', 'authorize: return { user } with a name that is not empty, or null');
  const id =
    options.sessionId?.(chatId, user) ??
    `chat:${encodeURIComponent(user.user)}:${encodeURIComponent(chatId)}`;
  const fileUrl = (digest: string): string => `${base}/${encodeURIComponent(chatId)}/files/${digest}`;
  return answer({ options, request, user, session: options.sessions.get(id), fileUrl });
}

async function post(chat: Chat, asked: ChatRequest): Promise<Response> {
  if (asked.kind === 'decide') {
    const { pending } = await chat.session.state();
    const isMet = await decide(chat.session, pending, asked, deciderOf(chat));
    if (!isMet && !asked.isAnswered) throw noAnswer();
    return stream(chat, { messageId: asked.messageId, has: asked.has });
  }
  const { session, user } = chat;
  const { kind, messageId } = asked;
  const by = user.user;
  // Only a message that the session has taken can be taken back. Any other may have been lost on its way.
  const place = kind === 'send' ? null : await placeOf(session, messageId);
  if (place === 'transcript') {
    const text = kind === 'edit' ? textOf(asked.parts()) : undefined;
    await takeBack(chat.options.sessions, session, { messageId, by, ...defined({ text }) });
  } else {
    if (place === 'queue' && kind === 'edit')
      await session.editMessage(messageId, { parts: asked.parts(), by });
    await send(chat, asked);
  }
  return stream(chat, { messageId });
}

function deciderOf({ options, user }: Chat): Parameters<typeof decide>[3] {
  return { by: user.user, mayDecide: (call) => options.mayDecide?.(call, user) ?? true };
}

/** Sends a message, after the decisions that come with it. The session takes a message once. */
async function send(chat: Chat, asked: ChatRequest & Said): Promise<void> {
  const { options, user, session } = chat;
  const { messageId } = asked;
  const parts = asked.parts();
  const view = await stateOf(session);
  await decide(session, view?.pending ?? [], asked, deciderOf(chat));
  const isStopped = view?.paused?.reason === STOPPED_IN_CHAT;
  const who = { by: user.user, verified: true as const };
  const message = { parts, id: messageId, ...who, ...(isStopped && { mode: 'interrupt' as const }) };
  // An existing session keeps its context.
  const context = view === null ? defined({ context: user.context }) : {};
  const { id } = session;
  try {
    await options.sessions.start(options.agent, { id, message, onExisting: 'use', ...context });
  } catch (error) {
    if (!isPerdureError(error, 'SESSION_EXISTS')) throw error;
    throw new PerdureError('SESSION_CLOSED', 'This chat has ended. Begin a new one', { cause: error });
  }
  // Somebody else may have paused the session meanwhile.
  if (isStopped) await session.resume({ by: user.user, pausedFor: STOPPED_IN_CHAT });
}

async function stateOf(session: Session): Promise<SessionView | null> {
  try {
    return await session.state();
  } catch (error) {
    if (isPerdureError(error, 'SESSION_NOT_FOUND')) return null;
    throw error;
  }
}

/** The answer as a stream. */
async function stream(chat: Chat, wanted: Pick<AnswerOptions, 'messageId' | 'has'>): Promise<Response> {
  const { options, request, session, fileUrl } = chat;
  const gone = new AbortController();
  request.signal.addEventListener('abort', () => gone.abort(), { once: true });
  const opened = await openStream(session, gone.signal);
  const aiSdk = options.aiSdk ?? (request.headers.get('x-ai-sdk') === '7' ? 7 : 6);
  const chunks = answerChunks(session, opened, { ...wanted, aiSdk, fileUrl, signal: gone.signal });
  return sseResponse(chunks, { gone, onError: (error) => options.onError?.(error) });
}

async function resume(chat: Chat): Promise<Response> {
  const view = await stateOf(chat.session);
  if (view === null) return new Response(null, { status: 204 });
  if (!(await isAtWork(chat.session, view))) return new Response(null, { status: 204 });
  return stream(chat, {});
}

/**
 * Whether an answer is being written, or has just ended: a page that loaded the messages just before may lack its end.
 */
async function isAtWork(session: Session, { phase, queued }: SessionView): Promise<boolean> {
  if (phase === 'closed') return false;
  if (phase !== 'idle') return !needsPerson(phase);
  if (queued > 0) return true;
  const last = (await session.transcript({ limit: 1 })).items[0];
  if (last === undefined) return false;
  return last.role !== 'assistant' || Date.now() - Date.parse(last.created_at) < JUST_ENDED_MS;
}

async function messages({ request, session, fileUrl }: Chat): Promise<Response> {
  const view = await stateOf(session);
  if (view === null) return Response.json({ messages: [], first: 0 });
  const before = new URL(request.url).searchParams.get('before');
  if (before !== null && !/^\d{1,9}$/.test(before))
    throw invalid('before', 'write the number first of a page');
  return Response.json(
    await readConversation(session, view, fileUrl, before === null ? undefined : Number(before)),
  );
}

/**
 * Stops the answer. A reply in progress is dropped; a call that has begun is settled. The next message resumes the
 * session.
 */
async function stop({ session, user }: Chat): Promise<Response> {
  await session.pause({ by: user.user, reason: STOPPED_IN_CHAT, now: true });
  return new Response(null, { status: 204 });
}

/** Sends an aside and waits for the answer. `text` is `null` when the message waits for the end of the turn instead. */
async function aside(
  { request, session, user }: Chat,
  asked: ReturnType<typeof parseAside>,
): Promise<Response> {
  const since = await session.cursor();
  await session.send({ ...asked, mode: 'aside', by: user.user, verified: true });
  const queued = (await session.queue()).find(({ id }) => id === asked.id);
  const isOrdinary = queued !== undefined && queued.aside === undefined;
  const parts = session.stream({ since, until: 'rest', signal: request.signal });
  let isAsked = false;
  for await (const part of isOrdinary ? [] : parts) {
    if (part.type !== 'message') continue;
    if (isAsked) return Response.json({ id: asked.id, text: part.text });
    if (part.id === asked.id && part.aside === undefined) break;
    isAsked = part.id === asked.id;
  }
  return Response.json({ id: asked.id, text: null });
}

/** A file of the conversation. Its content is not trusted: the headers keep browsers from running it. */
async function file({ session }: Chat, digest: string): Promise<Response> {
  const { bytes, mediaType } = await session.value(digest);
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(mediaType);
  return new Response(new Uint8Array(bytes), {
    headers: {
      'content-type': isImage ? mediaType : 'application/octet-stream',
      'content-disposition': isImage ? 'inline' : 'attachment',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, max-age=31536000, immutable',
    },
  });
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    throw invalid('url', `${segment.slice(0, 80)} is not encoded correctly`, error);
  }
}
