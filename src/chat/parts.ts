/** Parts for calls, files and sources that the AI SDK's messages and its stream have in common. */
import { isFinal, type ToolCall } from '../contract/calls.ts';
import { defined, digestJson, type JsonValue } from '../contract/json.ts';
import type { FileBlock, SourceBlock } from '../contract/messages.ts';

/** Makes the URL of a stored file. */
export type FileUrl = (digest: string) => string;

/** Stands for the id of a message of a person in a session that began without one. */
export const NO_MESSAGE = 'start';

const ANSWER = 'answer-';

/** The id of a message that answers a message of a person, before and after it is recorded. */
export function answerId(userMessageId: string): string {
  return `${ANSWER}${userMessageId}`;
}

/** The id of the message of a person that a message answers. `undefined`: of none, or its id does not say. */
export function answeredId(messageId: string): string | undefined {
  const id = messageId.startsWith(ANSWER) ? messageId.slice(ANSWER.length) : NO_MESSAGE;
  return id === NO_MESSAGE ? undefined : id;
}

/** The id of an approval. It names the session, the call and the arguments. */
export function approvalId(sessionId: string, call: Pick<ToolCall, 'id' | 'argsDigest'>): string {
  return `${call.id}:${sessionMark(sessionId, call.id)}:${call.argsDigest}`;
}

/** Reads the id of an approval. @returns `null` when it is not one of this session */
export function readApprovalId(sessionId: string, id: string): { callId: string; argsDigest: string } | null {
  const [callId = '', mark, argsDigest = ''] = id.split(':');
  return mark === sessionMark(sessionId, callId) ? { callId, argsDigest } : null;
}

/** Call ids repeat across sessions. The mark tells the sessions apart. */
function sessionMark(sessionId: string, callId: string): string {
  return digestJson({ sessionId, callId }).slice(0, 16);
}

/** How a call ended, or `null` while it has not. */
export type Outcome = { output: JsonValue } | { errorText: string } | 'denied' | null;

export function outcomeOf(call: ToolCall): Outcome {
  const { result, decision } = call;
  if (!isFinal(call) || result === null) return null;
  if (decision?.decision === 'reject') return 'denied';
  if (!result.isError) return { output: result.content };
  const { content } = result;
  return { errorText: typeof content === 'string' ? content : JSON.stringify(content) };
}

export function fileOf(
  { media_type: mediaType, value, url }: FileBlock,
  fileUrl: FileUrl,
): { type: 'file'; mediaType: string; url: string } {
  return { type: 'file', mediaType, url: value === undefined ? (url ?? '') : fileUrl(value.digest) };
}

export type SourcePart =
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string };

export function sourceOf({ id: sourceId, url, title, media_type, filename }: SourceBlock): SourcePart {
  if (url !== undefined) return { type: 'source-url', sourceId, url, ...defined({ title }) };
  const mediaType = media_type ?? 'application/octet-stream';
  return {
    type: 'source-document',
    sourceId,
    mediaType,
    title: title ?? filename ?? sourceId,
    ...defined({ filename }),
  };
}
