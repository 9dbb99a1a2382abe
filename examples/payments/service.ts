/**
 * A payments service with its own durable ledger: the world outside, whose effects must happen once.
 *
 *     GET  /orders/:id                → an order
 *     POST /refunds, POST /emails     (header Idempotency-Key) → 201 the receipt; 200 the one of the same key
 *     GET  /refunds?key=…             → the receipt of that key, or 404 (also /emails)
 *     GET  /refunds                   → all rows of the ledger of that kind (also /emails)
 *     POST /faults, GET /faults, DELETE /faults, GET /faults/held?min=1, POST /faults/release → for tests
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { z } from 'zod';
import { FaultBoard } from './faults.ts';
import { type Entry, Ledger, sameArgs } from './ledger.ts';
import { type Collection, emailInput, type Order, type Row, refundInput, serviceFault } from './protocol.ts';

export interface PaymentsOptions {
  /** The ledger's file; made when it is not there. */
  readonly ledger: string;
  /** TCP port; default 0, any free one. */
  readonly port?: number;
  /** Address to listen on; default 127.0.0.1, this machine alone. */
  readonly host?: string;
  /** Whether a key that was used before gives the same receipt (default), or another effect. */
  readonly honourKeys?: boolean;
}

export interface PaymentsService {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

export const ORDERS: readonly Order[] = [
  { id: '1001', customer: 'ada@example.com', item: 'Fountain pen', cents: 4_200 },
  { id: '1002', customer: 'grace@example.com', item: 'Desk lamp', cents: 12_900 },
  { id: '1003', customer: 'alan@example.com', item: 'Notebook', cents: 899 },
].map((order) => ({ ...order, chargeId: `ch_${order.id}`, placedAt: '2026-01-05T09:30:00.000Z' }));

const KIND: Record<Collection, Row['kind']> = { refunds: 'refund', emails: 'email' };

/** An answer that is not a success. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Answer {
  status: number;
  body: unknown;
}

/** Starts the service. Whatever it has answered is on disk: it may be killed at any time and started again. */
export async function startPayments(options: PaymentsOptions): Promise<PaymentsService> {
  const ledger = new Ledger(options.ledger);
  const honourKeys = options.honourKeys ?? true;
  const stopping = new AbortController();
  const faults = new FaultBoard(stopping.signal);

  async function post(
    on: Collection,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer | undefined> {
    const key = keyOf(incoming);
    const entry = await readEntry(on, key, incoming);
    const before = await faults.strike({ on, when: 'before-write', key, row: null }, response);
    if (before === 'answered') return undefined;

    const earlier = honourKeys && key !== null ? ledger.find(entry.kind, key) : undefined;
    if (earlier !== undefined && !sameArgs(earlier.args, entry.args)) {
      throw new Refusal(422, 'key_reused', `the key ${key} was used with other arguments (${earlier.id})`);
    }
    const row = earlier ?? ledger.append(entry);
    const after = await faults.strike({ on, when: 'after-write', key, row: row.id }, response);
    return after === 'answered' ? undefined : { status: earlier ? 200 : 201, body: receipt(row) };
  }

  function get(on: Collection, key: string | null): Answer {
    const kind = KIND[on];
    if (key === null) return { status: 200, body: ledger.rows.filter((row) => row.kind === kind) };
    const row = ledger.find(kind, key);
    if (row === undefined) throw new Refusal(404, 'unknown_key', `no ${kind} has the key ${key}`);
    return { status: 200, body: receipt(row) };
  }

  async function route(incoming: IncomingMessage, response: ServerResponse): Promise<Answer | undefined> {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://service');
    const place = `${incoming.method} ${pathname}`;
    if (incoming.method === 'GET' && pathname.startsWith('/orders/')) {
      const id = decodeURIComponent(pathname.slice('/orders/'.length));
      const order = ORDERS.find((each) => each.id === id);
      if (order === undefined) throw new Refusal(404, 'not_found', `there is no order ${id}`);
      return { status: 200, body: order };
    }
    switch (place) {
      case 'POST /refunds':
        return post('refunds', incoming, response);
      case 'POST /emails':
        return post('emails', incoming, response);
      case 'GET /refunds':
        return get('refunds', searchParams.get('key'));
      case 'GET /emails':
        return get('emails', searchParams.get('key'));
      case 'POST /faults':
        faults.arm(await readJson(incoming, serviceFault));
        return { status: 201, body: { armed: faults.armed } };
      case 'GET /faults':
        return { status: 200, body: { armed: faults.armed, held: faults.held } };
      case 'DELETE /faults':
        faults.disarm();
        return { status: 200, body: { armed: faults.armed } };
      case 'GET /faults/held': {
        const gone = new AbortController();
        response.once('close', () => gone.abort());
        return {
          status: 200,
          body: await faults.untilHeld(Number(searchParams.get('min') ?? 1), gone.signal),
        };
      }
      case 'POST /faults/release':
        return { status: 200, body: { released: faults.release() } };
      default:
        throw new Refusal(404, 'not_found', `${place} is not served`);
    }
  }

  const server = createServer((incoming, response) => {
    route(incoming, response)
      .catch((error: unknown): Answer => {
        const { status, code } = error instanceof Refusal ? error : { status: 500, code: 'internal' };
        return { status, body: { error: { code, message: error instanceof Error ? error.message : '' } } };
      })
      .then((answer) => {
        if (answer === undefined || response.destroyed) return;
        response.writeHead(answer.status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer.body));
      })
      .catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    ledger.close();
    throw error;
  }
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stop: async () => {
      if (stopping.signal.aborted) return;
      const closed = once(server, 'close');
      stopping.abort();
      server.close();
      server.closeAllConnections();
      await closed;
      ledger.close();
    },
  };
}

function receipt({ id, at, args }: Row): object {
  return { id, at, ...args };
}

function keyOf({ headers }: IncomingMessage): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key === '') throw new Refusal(400, 'invalid', 'Idempotency-Key is empty');
  return key;
}

async function readEntry(on: Collection, key: string | null, incoming: IncomingMessage): Promise<Entry> {
  if (on === 'emails') return { kind: 'email', key, args: await readJson(incoming, emailInput) };
  const args = await readJson(incoming, refundInput);
  const order = ORDERS.find(({ chargeId }) => chargeId === args.chargeId);
  if (order === undefined) throw new Refusal(422, 'no_such_charge', `there is no charge ${args.chargeId}`);
  // Each refund is checked by itself, not their sum: a second one must show in the ledger, not be turned away.
  if (args.cents > order.cents) {
    throw new Refusal(422, 'too_much', `${args.cents} is more than the charge of ${order.cents} cents`);
  }
  return { kind: 'refund', key, args };
}

async function readJson<Value>(incoming: IncomingMessage, schema: z.ZodType<Value>): Promise<Value> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new Refusal(400, 'invalid', 'the body is not JSON');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Refusal(400, 'invalid', parsed.error.message);
  return parsed.data;
}
