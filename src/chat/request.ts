/** Reads what a browser sends. Nothing in it is trusted. */
import { randomUUID } from 'node:crypto';
import type { MessagePart } from '../client/index.ts';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import { answeredId } from './parts.ts';

/** A decision of a person, as `addToolApprovalResponse` puts it into a message. */
export interface ApprovalAnswer {
  id: string;
  approved: boolean;
  reason?: string;
}

/** The answer of a person to a question, as `addToolOutput` puts it into a message. */
export interface CallOutput {
  callId: string;
  input: JsonValue;
  output: JsonValue;
}

/** Answers to approvals and questions, from all messages of the page: it sends them with everything. */
export interface Answers {
  answers: ApprovalAnswer[];
  outputs: CallOutput[];
}

/** A message of a person. `edit`: its new content. `regenerate`: it needs a new answer. */
export interface Said extends Answers {
  kind: 'send' | 'edit' | 'regenerate';
  messageId: string;
  /** Reads its parts. A message to answer again may have files that the session accepts only from itself. */
  parts: () => MessagePart[];
}

/** Answers without a message. They continue an assistant message of the page. */
export interface Decided extends Answers {
  kind: 'decide';
  /** Whether that assistant message has an answer. */
  isAnswered: boolean;
  /** The message of a person that the assistant message answers, if its id says so. */
  messageId: string | undefined;
  /** How many replies of it the client has. */
  has: number;
}

/** What a request asks for. Everything else in it is ignored, above all the client's copy of the conversation. */
export type ChatRequest = { chatId: string } & (Said | Decided);

/** The type of the part that tells the browser that a call is a question. */
export const QUESTION_PART = 'data-perdure-question';

type Json = Record<string, unknown>;

/** Reads the body of a request. @throws PerdureError `TOO_LARGE`, `INVALID_ARGUMENT` */
export async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const body: AsyncIterable<Uint8Array> | Uint8Array[] = request.body ?? [];
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new PerdureError(
        'TOO_LARGE',
        `The request is larger than ${maxBytes} bytes. Send only the last message with prepareSendMessagesRequest, send smaller files, or raise maxBytes of createChatHandler`,
        { details: { field: 'body', limit: maxBytes } },
      );
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch (error) {
    throw invalid('body', 'is not JSON. Use the DefaultChatTransport of the AI SDK', error);
  }
}

/** @throws PerdureError `INVALID_ARGUMENT` naming the field */
export function parseRequest(body: unknown, fileUrls: boolean): ChatRequest {
  if (!isObject(body)) throw invalid('body', 'is not an object with id and messages');
  const { id: chatId, messages, trigger, messageId } = body;
  if (typeof chatId !== 'string' || chatId === '') throw invalid('id', 'write the id of the chat');
  if (/\p{Surrogate}/u.test(chatId))
    throw invalid('id', 'has half of a surrogate pair, which no address can carry');
  if (trigger !== undefined && trigger !== 'submit-message' && trigger !== 'regenerate-message')
    throw invalid('trigger', 'is submit-message or regenerate-message');
  const sent: readonly unknown[] = Array.isArray(messages) ? messages : [];
  const last = readMessage(sent.at(-1));
  if (last === null) throw invalid('messages', 'has no last message with parts');
  const assistants = sent.flatMap((message) => readMessage(message, 'assistant') ?? []);
  const all = answersOf(assistants);
  // After an approval the AI SDK names the message of the call, which need not be the last one.
  const named = assistants.find(({ id }) => id === messageId) ?? last;
  if (named.role === 'user') {
    const { id, parts } = named;
    if (typeof id !== 'string' || id === '') throw invalid('messages', 'the last message has no id');
    const edited = messageId === id ? 'edit' : 'send';
    return {
      kind: trigger === 'regenerate-message' ? 'regenerate' : edited,
      chatId,
      messageId: id,
      parts: () => parts.map((part, i) => personsPart(part, `messages: parts.${i}`, fileUrls)),
      ...all,
    };
  }
  if (named.role !== 'assistant') throw noAnswer();
  const own = answersOf([named]);
  return {
    kind: 'decide',
    chatId,
    isAnswered: own.answers.length + own.outputs.length > 0,
    messageId: typeof named.id === 'string' ? answeredId(named.id) : undefined,
    has: named.parts.filter((part) => isObject(part) && part['type'] === 'step-start').length,
    ...all,
  };
}

/** The error of a request that has nothing for the session. */
export function noAnswer(): PerdureError {
  return invalid(
    'messages',
    'the last message is neither a message of a person nor an answer to an approval or a question. Tools run in the workers: their results are not taken from the browser',
  );
}

/** A message of the page, as far as it is read. */
interface PageMessage {
  id: unknown;
  role: unknown;
  parts: readonly unknown[];
}

function readMessage(message: unknown, role?: string): PageMessage | null {
  if (!isObject(message) || !Array.isArray(message['parts'])) return null;
  if (role !== undefined && message['role'] !== role) return null;
  return { id: message['id'], role: message['role'], parts: message['parts'] };
}

function answersOf(messages: readonly PageMessage[]): Answers {
  return {
    answers: messages.flatMap(({ parts }) => parts.flatMap(approvalOf)),
    outputs: messages.flatMap(({ parts }) => parts.flatMap((part) => outputOf(part, parts))),
  };
}

/** Reads an aside. @throws PerdureError `INVALID_ARGUMENT` naming the field */
export function parseAside(body: unknown): { text: string; id: string } {
  const { text, id = randomUUID() } = isObject(body) ? body : {};
  if (typeof text !== 'string' || text.trim() === '') throw invalid('text', 'write what to ask');
  if (typeof id !== 'string' || id === '')
    throw invalid('id', 'is a text that no other message has, or absent');
  return { text, id };
}

function personsPart(part: unknown, field: string, fileUrls: boolean): MessagePart {
  if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string')
    return { type: 'text', text: part['text'] };
  if (!isObject(part) || part['type'] !== 'file') throw invalid(field, 'is neither text nor a file');
  const { url, mediaType, filename } = part;
  if (typeof url !== 'string' || typeof mediaType !== 'string')
    throw invalid(field, 'a file has a url and a mediaType');
  // The worker fetches what a provider cannot: a URL of the worker's own network must not come from a browser.
  if (!url.startsWith('data:') && !fileUrls)
    throw invalid(`${field}.url`, 'is not a data: URL. To let browsers name files to fetch, set fileUrls');
  return {
    type: 'file',
    data: url,
    mediaType,
    filename: typeof filename === 'string' ? filename : undefined,
  };
}

function approvalOf(part: unknown): ApprovalAnswer[] {
  if (!isObject(part) || part['state'] !== 'approval-responded' || !isObject(part['approval'])) return [];
  const { id, approved, reason } = part['approval'];
  if (typeof id !== 'string' || typeof approved !== 'boolean')
    throw invalid('messages', 'an approval has an id, and approved is true or false');
  return [{ id, approved, ...(typeof reason === 'string' && reason !== '' && { reason }) }];
}

/** The answer of a question. Other results came from workers: the browser only repeats them. */
function outputOf(part: unknown, parts: readonly unknown[]): CallOutput[] {
  if (!isObject(part) || part['state'] !== 'output-available') return [];
  const { toolCallId: callId, input = null, output = null } = part;
  const isQuestion = parts.some(
    (other) => isObject(other) && other['type'] === QUESTION_PART && other['id'] === callId,
  );
  if (!isQuestion || typeof callId !== 'string') return [];
  // They came out of JSON.parse.
  return [{ callId, input: input as JsonValue, output: output as JsonValue }];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
