/** Chats whose client is the AI SDK's own, over HTTP. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Chat as Chat7 } from '@ai-sdk/react';
import { getRequestListener } from '@hono/node-server';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered6,
  DefaultChatTransport as Transport6,
  type UIMessage,
} from 'ai';
import { Chat as Chat6 } from 'ai-sdk-react-6';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered7,
  DefaultChatTransport as Transport7,
  type UIMessage as UIMessage7,
} from 'ai7';
import { onTestFinished } from 'vitest';
import { type ChatHandlerOptions, createChatHandler } from '../../../src/chat/index.ts';
import type { Sessions } from '../../../src/index.ts';
import { polled } from '../../support/polled.ts';

/** A chunk as it came over the wire. */
export type WireChunk = { type: string } & Record<string, unknown>;

/** A page with a chat. */
export interface Page {
  chat: Chat6<UIMessage> | Chat7<UIMessage7>;
  chunks: WireChunk[];
  errors: Error[];
  /** Lets the next request fail on its way. */
  failNext(): void;
}

export interface Chats {
  url: string;
  /** Opens a page of a user. `messages`: what it has loaded. */
  open(version: 6 | 7, chatId: string, options?: { user?: string; messages?: UIMessage[] }): Page;
  get(path: string, user?: string): Promise<Response>;
  post(path: string, body: unknown, user?: string): Promise<Response>;
}

export async function openChats(
  sessions: Sessions,
  options: Partial<ChatHandlerOptions> & Pick<ChatHandlerOptions, 'agent'>,
): Promise<Chats> {
  const handler = createChatHandler({
    sessions,
    authorize: (request) => {
      const user = request.headers.get('x-user');
      return user === null ? null : { user };
    },
    ...options,
  });
  const listener = getRequestListener(handler);
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/chat`;
  const call = (path: string, user: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}${path}`, { ...init, headers: { 'x-user': user, 'content-type': 'application/json' } });
  return {
    url,
    get: (path, user = 'ada') => call(path, user),
    post: (path, body, user = 'ada') => call(path, user, { method: 'POST', body: JSON.stringify(body) }),
    open: (version, id, { user = 'ada', messages = [] } = {}) => {
      const chunks: WireChunk[] = [];
      const errors: Error[] = [];
      const headers = { 'x-user': user, 'x-ai-sdk': String(version) };
      const listen = listening(chunks);
      let fails = false;
      const send: typeof fetch = async (input, init) => {
        if (!fails) return listen(input, init);
        fails = false;
        throw new TypeError('fetch failed');
      };
      const transport = { api: url, headers, fetch: send };
      const shared = { id, onError: (error: Error) => errors.push(error) };
      const chat =
        version === 6
          ? new Chat6<UIMessage>({
              ...shared,
              messages,
              transport: new Transport6(transport),
              sendAutomaticallyWhen: isAnswered6,
            })
          : new Chat7<UIMessage7>({
              ...shared,
              messages: messages,
              transport: new Transport7(transport),
              sendAutomaticallyWhen: isAnswered7,
            });
      onTestFinished(() => chat.stop());
      const failNext = (): void => {
        fails = true;
      };
      return { chat, chunks, errors, failNext };
    },
  };
}

/** Keeps the chunks that come. */
function listening(chunks: WireChunk[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null) return response;
    const [one, other] = response.body.tee();
    void read(one, chunks).catch(() => undefined);
    return new Response(other, { status: response.status, headers: response.headers });
  };
}

async function read(body: ReadableStream<Uint8Array>, chunks: WireChunk[]): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events)
      if (event.startsWith('data: {')) chunks.push(JSON.parse(event.slice(6)) as WireChunk);
  }
}

/** What a person reads: the texts of a message. */
export function textOf(
  { parts }: { parts: readonly { type: string }[] } | undefined = { parts: [] },
): string {
  return parts.map((part) => ('text' in part && part.type === 'text' ? String(part.text) : '')).join('');
}

/** The tool parts of a message. */
export function toolsOf(
  message: { parts: readonly { type: string }[] } | undefined,
): (WireChunk & { state: string; approval?: { id: string } })[] {
  return (message?.parts ?? []).filter(({ type }) => type.startsWith('tool-')) as never;
}

/** Waits for a condition on a page. */
export function shows(page: Page, condition: (page: Page) => boolean): Promise<void> {
  return polled(
    async () => condition(page),
    () =>
      JSON.stringify(
        { messages: page.chat.messages, status: page.chat.status, errors: page.errors.map(String) },
        null,
        1,
      ),
  );
}
