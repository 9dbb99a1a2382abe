/** Reads what a browser sends. Nothing in it is trusted. */
import { randomUUID } from 'node:crypto';
import type { MessagePart } from '../client/index.ts';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';

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

/** A message of a person. `edit`: its new content. `regenerate`: it needs a new answer. */
export interface Said {
  kind: 'send' | 'edit' | 'regenerate';
  messageId: string;
  /** Reads its parts. A message to answer again may have files that the session accepts only from itself. */
  parts: () => MessagePart[];
}

/** Answers to approvals and questions. `has`: how many replies of the answer the client has. */
interface Approved {
  kind: 'approve';
  answers: ApprovalAnswer[];
  outputs: CallOutput[];
  has: number;
}

/** What a request asks for. Everything else in it is ignored, above all the client's copy of the conversation. */
export type ChatRequest = { chatId: string } & (Said | Approved);

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
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  if (!isObject(last) || !Array.isArray(last['parts']))
    throw invalid('messages', 'has no last message with parts');
  const parts: readonly unknown[] = last['parts'];
  if (last['role'] === 'user') {
    const id = last['id'];
    if (typeof id !== 'string' || id === '') throw invalid('messages', 'the last message has no id');
    const edited = messageId === id ? 'edit' : 'send';
    return {
      kind: trigger === 'regenerate-message' ? 'regenerate' : edited,
      chatId,
      messageId: id,
      parts: () => parts.map((part, i) => personsPart(part, `messages: parts.${i}`, fileUrls)),
    };
  }
  const isAnswer = last['role'] === 'assistant';
  const answers = isAnswer ? parts.flatMap(approvalOf) : [];
  const outputs = isAnswer ? parts.flatMap((part) => outputOf(part, parts)) : [];
  if (answers.length + outputs.length === 0) {
    throw invalid(
      'messages',
      'the last message is neither a message of a person nor an answer to an approval or a question. Tools run in the workers: their results are not taken from the browser',
    );
  }
  const has = parts.filter((part) => isObject(part) && part['type'] === 'step-start').length;
  return { kind: 'approve', chatId, answers, outputs, has };
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
