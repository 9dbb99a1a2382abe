/** `perdure/chat`: a durable chat for `useChat` of the AI SDK. */
export { type ChatHandlerOptions, type ChatUser, createChatHandler } from './handler.ts';
export type { AiSdk } from './writer.ts';
