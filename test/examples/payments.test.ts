import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createPaymentsClient, type PaymentsClient, PaymentsError } from '../../examples/payments/client.ts';
import { createPaymentsControl, type PaymentsControl } from '../../examples/payments/control.ts';
import {
  type PaymentsOptions,
  type PaymentsService,
  startPayments,
} from '../../examples/payments/service.ts';

import { rejection } from '../support/rejection.ts';

const PEN = { chargeId: 'ch_1001', cents: 4_200, reason: 'broken' };
const MAIL = { to: 'ada@example.com', subject: 'Your refund', body: 'It is on its way.' };

let folder: string;
let ledger: string;
const services: PaymentsService[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-'));
  ledger = join(folder, 'ledger.jsonl');
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
  rmSync(folder, { recursive: true });
});

interface Started {
  service: PaymentsService;
  payments: PaymentsClient;
  control: PaymentsControl;
}

async function start(options: Partial<PaymentsOptions> = {}): Promise<Started> {
  const service = await startPayments({ ledger, ...options });
  services.push(service);
  return {
    service,
    payments: createPaymentsClient(service.url),
    control: createPaymentsControl(service.url),
  };
}

describe('a service that honours keys', () => {
  test('refunds once per key and finds it by the key', async () => {
    const { payments, control } = await start();
    const first = await payments.refund(PEN, 'key-1');
    expect(first).toEqual({ id: 're_1', at: first.at, ...PEN });
    expect(await payments.refund(PEN, 'key-1')).toEqual(first);
    expect(await payments.find('key-1')).toEqual({ outcome: 'landed', output: first });
    expect(await payments.find('key-2')).toEqual({ outcome: 'absent' });
    expect(await control.refunds()).toEqual([
      { id: 're_1', at: first.at, key: 'key-1', kind: 'refund', args: PEN },
    ]);
  });

  test('refuses a key that comes with other arguments: it has an effect already', async () => {
    const { payments, control } = await start();
    await payments.refund(PEN, 'key-1');
    expect(await rejection(payments.refund({ ...PEN, reason: 'late' }, 'key-1'))).toMatchObject({
      code: 'REFUSED',
      status: 422,
      reason: 'key_reused',
      notDone: false,
    });
    expect(await control.refunds()).toHaveLength(1);
  });

  test('keeps one effect of ten requests at the same time', async () => {
    const { payments, control } = await start();
    const refunds = await Promise.all(Array.from({ length: 10 }, () => payments.refund(PEN, 'key-1')));
    expect(new Set(refunds.map(({ id }) => id))).toEqual(new Set(['re_1']));
    expect(await control.refunds()).toHaveLength(1);
  });

  test('a refund and an e-mail may share a key', async () => {
    const { payments, control } = await start();
    await payments.refund(PEN, 'key');
    const sent = await payments.sendEmail(MAIL, 'key');
    expect(sent).toMatchObject({ id: 'em_2', ...MAIL });
    expect(await payments.findEmail('key')).toEqual({ outcome: 'landed', output: sent });
    expect(await control.emails()).toMatchObject([{ kind: 'email', key: 'key', args: MAIL }]);
    expect(await control.refunds()).toHaveLength(1);
  });
});

test('a service that ignores keys has an effect per request, and still finds the first by its key', async () => {
  const { payments, control } = await start({ honourKeys: false });
  const first = await payments.refund(PEN, 'key-1');
  const second = await payments.refund(PEN, 'key-1');
  expect(second.id).not.toBe(first.id);
  expect((await control.refunds()).map(({ id, key }) => [id, key])).toEqual([
    ['re_1', 'key-1'],
    ['re_2', 'key-1'],
  ]);
  expect(await payments.find('key-1')).toEqual({ outcome: 'landed', output: first });
});

test('orders are there to be read', async () => {
  const { payments } = await start();
  expect(await payments.order('1002')).toMatchObject({ id: '1002', cents: 12_900, chargeId: 'ch_1002' });
  expect(await rejection(payments.order('9'))).toMatchObject({ code: 'REFUSED', status: 404 });
});

test.each([
  ['an unknown charge', { ...PEN, chargeId: 'ch_0' }, 'no_such_charge'],
  ['more than the charge', { ...PEN, cents: 4_201 }, 'too_much'],
  ['no whole cents', { ...PEN, cents: 0.5 }, 'invalid'],
  ['nothing', { ...PEN, cents: 0 }, 'invalid'],
])('a refund of %s is refused and leaves no row', async (_name, input, reason) => {
  const { payments, control } = await start();
  expect(await rejection(payments.refund(input, 'k'))).toMatchObject({
    code: 'REFUSED',
    reason,
    notDone: true,
  });
  expect(await control.refunds()).toEqual([]);
});

describe('faults', () => {
  test('after-write + hang: the effect has landed, the reply never comes', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
    const leaving = new AbortController();
    const call = rejection(payments.refund(PEN, 'key-1', leaving.signal));
    expect(await control.held()).toEqual([{ on: 'refunds', when: 'after-write', key: 'key-1', row: 're_1' }]);
    expect(await payments.find('key-1')).toMatchObject({ outcome: 'landed', output: { id: 're_1' } });
    leaving.abort();
    expect(await call).toMatchObject({ name: 'AbortError' });
    expect(await control.refunds()).toHaveLength(1);
  });

  test('a held reply comes when it is released; other collections are not touched', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'after-write', do: 'hang', times: 2 });
    const calls = [payments.refund(PEN, 'key-1'), payments.refund(PEN, 'key-2')];
    await payments.sendEmail(MAIL, 'key-1');
    expect(await control.held(2)).toHaveLength(2);
    expect(await control.release()).toBe(2);
    expect((await Promise.all(calls)).map(({ id }) => id).sort()).toEqual(['re_1', 're_2'].sort());
    expect(await payments.refund(PEN, 'key-3')).toMatchObject(PEN);
  });

  test('before-write + hang: nothing has happened, until the request that is on its way arrives late', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'before-write', do: 'hang' });
    await control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
    const leaving = new AbortController();
    const call = rejection(payments.refund(PEN, 'key-1', leaving.signal));
    expect(await control.held()).toMatchObject([{ when: 'before-write', row: null }]);
    leaving.abort();
    await call;
    expect(await payments.find('key-1')).toEqual({ outcome: 'absent' });
    await control.release();
    expect(await control.held()).toMatchObject([{ when: 'after-write', row: 're_1' }]);
    expect(await payments.find('key-1')).toMatchObject({ outcome: 'landed' });
  });

  test('a hang with delayMs ends by itself', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'before-write', do: 'hang', delayMs: 1 });
    expect(await payments.refund(PEN, 'key-1')).toMatchObject({ id: 're_1' });
  });

  test.each([
    ['before-write', 'absent'],
    ['after-write', 'landed'],
  ] as const)('%s + drop-connection: no reply, and the effect is %s', async (when, outcome) => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when, do: 'drop-connection' });
    expect(await rejection(payments.refund(PEN, 'key-1'))).toMatchObject({
      code: 'NO_REPLY',
      notDone: false,
    });
    expect(await payments.find('key-1')).toMatchObject({ outcome });
  });

  test.each([
    ['before-write', 'absent'],
    ['after-write', 'landed'],
  ] as const)('%s + status: a 503, and the effect is %s', async (when, outcome) => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when, do: 'status', status: 503 });
    expect(await rejection(payments.refund(PEN, 'key-1'))).toMatchObject({
      code: 'FAILED',
      status: 503,
      notDone: false,
    });
    expect(await payments.find('key-1')).toMatchObject({ outcome });
  });

  test('a refusal that comes after the write is no proof that nothing happened', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'after-write', do: 'status', status: 422 });
    expect(await rejection(payments.refund(PEN, 'key-1'))).toMatchObject({ status: 422, notDone: false });
    expect(await payments.find('key-1')).toMatchObject({ outcome: 'landed' });
  });

  test('what is disarmed does not strike', async () => {
    const { payments, control } = await start();
    await control.arm({ on: 'refunds', when: 'before-write', do: 'status' });
    await control.disarm();
    expect(await payments.refund(PEN, 'key-1')).toMatchObject({ id: 're_1' });
  });
});

describe('what was certainly not sent', () => {
  test('a service that is not there', async () => {
    const { service, payments } = await start();
    await service.stop();
    const error = await rejection(payments.refund(PEN, 'key-1'));
    expect(error).toBeInstanceOf(PaymentsError);
    expect(error).toMatchObject({ code: 'NOT_SENT', notDone: true });
    expect(await rejection(payments.find('key-1'))).toMatchObject({ code: 'NOT_SENT' });
  });

  test('a signal that fired before', async () => {
    const { payments, control } = await start();
    const call = payments.refund(PEN, 'key-1', AbortSignal.abort(new Error('cancelled')));
    expect(await rejection(call)).toMatchObject({ code: 'NOT_SENT', cause: { message: 'cancelled' } });
    expect(await control.refunds()).toEqual([]);
  });
});

describe('what something between the tool and the service answers', () => {
  /** A client whose requests all get this answer. */
  async function behindProxy(status: number, body: string, headers = {}): Promise<PaymentsClient> {
    const proxy = createServer((_request, response) => response.writeHead(status, headers).end(body));
    onTestFinished(() => void proxy.close());
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    return createPaymentsClient(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  }

  test.each([
    ['a 404', 404, '<html>no such page</html>', 'REFUSED'],
    ['a 408', 408, '{"error":{"code":"timeout","message":"the upstream is slow"}}', 'REFUSED'],
    ['a 200', 200, '<html>log in</html>', 'NO_REPLY'],
  ])('%s does not pass for absent, nor for a refund that was not done', async (_name, status, body, code) => {
    const payments = await behindProxy(status, body);
    expect(await rejection(payments.find('key-1'))).toMatchObject({ code });
    expect(await rejection(payments.refund(PEN, 'key-1'))).toMatchObject({ code, notDone: false });
  });

  test.each([303, 307])('a %i: a refund does not go elsewhere', async (status) => {
    const { service, control } = await start();
    const payments = await behindProxy(status, '', { location: `${service.url}/refunds` });
    expect(await rejection(payments.refund(PEN, 'key-1'))).toMatchObject({
      code: 'NO_REPLY',
      notDone: false,
    });
    expect(await control.refunds()).toEqual([]);
  });
});

test('a last line that a crash cut short never happened, and the next row is whole', async () => {
  const first = await start();
  await first.payments.refund(PEN, 'key-1');
  await first.service.stop();
  appendFileSync(ledger, '{"id":"re_2","at":"2026-01-0');

  const { payments, control } = await start();
  expect(await control.refunds()).toHaveLength(1);
  expect(await payments.refund(PEN, 'key-1')).toMatchObject({ id: 're_1' });
  expect(await payments.refund(PEN, 'key-2')).toMatchObject({ id: 're_2' });
  const lines = readFileSync(ledger, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { key: string }).key)).toEqual(['key-1', 'key-2']);
});
