/** The wire in front of a real HTTP service: what is held outlives its sender, and arrives once and in order. */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openWire, type Wire } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';

interface Service {
  readonly wire: Wire;
  /** The bodies that have arrived whole. */
  readonly bodies: string[];
  /** Resolves when so many have. */
  arrived(count: number): Promise<void>;
}

/** A service that takes its time: it reads a request a turn of its loop after it came. */
async function openService(): Promise<Service> {
  const bodies: string[] = [];
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    void (async () => {
      await setImmediate();
      let body = '';
      for await (const chunk of req) body += String(chunk);
      bodies.push(body);
      res.end('done');
      server.emit('served');
    })().catch(() => {});
  });
  // As in gRPC, an idle connection stays open.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const wire = await openWire(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    await wire.close();
    server.closeAllConnections();
    server.close();
  });
  const arrived = async (count: number): Promise<void> => {
    while (bodies.length < count) await once(server, 'served');
  };
  return { wire, bodies, arrived };
}

/** Begins to post; what is written later belongs to the same request. */
function post(wire: Wire, path: string, agent: Agent | false = false): ReturnType<typeof request> {
  const [host, port] = wire.address.split(':');
  const sending = request({ host, port, path, method: 'POST', agent });
  sending.on('error', () => {});
  return sending;
}

/** Resolves when the wire has seen what came before: a later connection of the same process has come to it. */
async function seen(wire: Wire): Promise<void> {
  const later = post(wire, '/later');
  later.end('later');
  await wire.held('/later');
}

/** Holds a request whose sender is then gone, and the one that tells of it. */
async function holdOfGone(wire: Wire): Promise<void> {
  wire.hold();
  const refund = post(wire, '/refund');
  refund.end('refund');
  await wire.held('/refund');
  refund.destroy();
  await seen(wire);
}

test('a request that is held arrives after its sender is gone', async () => {
  const { wire, bodies, arrived } = await openService();
  await holdOfGone(wire);
  expect(bodies).toEqual([]);
  wire.release();
  await arrived(2);
  expect(bodies.toSorted()).toEqual(['later', 'refund']);
});

test('a wire that is cut loses what is held of a sender that is gone', async () => {
  const { wire, bodies, arrived } = await openService();
  await holdOfGone(wire);
  wire.cut();
  // Of the two connections one had its sender.
  expect(wire.broken).toBe(1);
  wire.mend();
  post(wire, '/after').end('after');
  await arrived(1);
  expect(bodies).toEqual(['after']);
});

test('a wire that is mended lets what is held pass before what follows', async () => {
  const { wire, bodies, arrived } = await openService();
  wire.hold();
  const sending = post(wire, '/refund');
  sending.write('first ');
  await wire.held('first ');
  wire.mend();
  sending.end('second');
  await arrived(1);
  expect(bodies).toEqual(['first second']);
});

test('a wire that is mended loses no more answers', async () => {
  const { wire } = await openService();
  wire.loseAnswersFrom('/refund');
  wire.mend();
  const sending = post(wire, '/refund');
  const answered = once(sending, 'response');
  sending.end('refund');
  const [answer] = (await answered) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
});

test('a client whose answer was lost connects anew after the wire is mended', async () => {
  const { wire, arrived } = await openService();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  wire.loseAnswersFrom('/refund');
  const refund = post(wire, '/refund', agent);
  const lost = once(refund, 'error');
  refund.end('refund');
  await arrived(1);
  wire.mend();
  expect(await lost).toMatchObject([{ code: 'ECONNRESET' }]);
  const again = post(wire, '/again', agent);
  const answered = once(again, 'response');
  again.end('again');
  const [answer] = (await answered) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
});

test.each(['http://127.0.0.1:7233/v1', '127.0.0.1', '7233', 'localhost:0', 'localhost:65536', ''])(
  'a wire to %j is refused at once',
  async (target) => {
    expect(await rejection(openWire(target))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('host:port'),
    });
  },
);
