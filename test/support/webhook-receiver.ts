/** A receiver of webhooks that answers as a test says. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** A request. `data` is that of the event. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  type: string;
  data: Record<string, unknown>;
}

/** A running receiver. */
export interface WebhookReceiver {
  readonly url: string;
  /** The requests, as they came. */
  readonly received: Received[];
  /** What it answers from now on; `hang`: nothing. */
  answer: number | 'hang';
  /** The requests of one type. */
  of(type: string): Received[];
}

/** Starts a receiver for the running test. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { type, data } = JSON.parse(body) as Pick<Received, 'type' | 'data'>;
      received.push({ headers: request.headers, body, type, data });
      if (receiver.answer === 'hang') return;
      response.writeHead(receiver.answer).end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    answer: 200,
    of: (type) => received.filter((request) => request.type === type),
  };
  return receiver;
}
