/** The payments service as a process that is killed: what it did is there once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPaymentsClient } from '../../examples/payments/client.ts';
import { createPaymentsControl } from '../../examples/payments/control.ts';
import { type ReadyProcess, startProcess } from '../support/ready-process.ts';
import { rejection } from '../support/rejection.ts';

const SERVER = fileURLToPath(new URL('../../examples/payments/server.ts', import.meta.url));
const PEN = { chargeId: 'ch_1001', cents: 4_200, reason: 'broken' };

let folder: string;
const processes: ReadyProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-'));
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((started) => started.kill()));
  rmSync(folder, { recursive: true });
});

async function start(...args: string[]) {
  const running = await startProcess(SERVER, ['--ledger', join(folder, 'ledger.jsonl'), ...args]);
  processes.push(running);
  const { url, port } = running.ready;
  return { running, port, payments: createPaymentsClient(url), control: createPaymentsControl(url) };
}

test('killed after the write and before the reply: the row is there once, and the repeat finds it', async () => {
  const first = await start();
  await first.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  const call = rejection(first.payments.refund(PEN, 'key-1'));
  expect(await first.control.held()).toMatchObject([{ key: 'key-1', row: 're_1' }]);
  await first.running.kill();
  expect(await call).toMatchObject({ code: 'NO_REPLY', notDone: false });
  await expect(first.payments.refund(PEN, 'key-1')).rejects.toMatchObject({ code: 'NOT_SENT' });

  const { payments, control } = await start('--port', String(first.port));
  expect(await payments.find('key-1')).toMatchObject({ outcome: 'landed', output: { id: 're_1', ...PEN } });
  expect(await payments.refund(PEN, 'key-1')).toMatchObject({ id: 're_1' });
  expect(await control.refunds()).toMatchObject([{ id: 're_1', key: 'key-1' }]);
});

test('killed before the write: there is nothing', async () => {
  const first = await start();
  await first.control.arm({ on: 'refunds', when: 'before-write', do: 'hang' });
  const call = rejection(first.payments.refund(PEN, 'key-1'));
  await first.control.held();
  await first.running.kill();
  expect(await call).toMatchObject({ code: 'NO_REPLY' });

  const { payments, control } = await start();
  expect(await payments.find('key-1')).toEqual({ outcome: 'absent' });
  expect(await control.refunds()).toEqual([]);
});

test('with --ignore-keys a repeat is a second effect, as with many real services', async () => {
  const { payments, control } = await start('--ignore-keys');
  await payments.refund(PEN, 'key-1');
  await payments.refund(PEN, 'key-1');
  expect(await control.refunds()).toHaveLength(2);
});

test('it ends with SIGTERM, and with its stdin when asked to, also while it holds a request', async () => {
  expect(await (await start()).running.terminate()).toBe(0);
  const { running, payments, control } = await start('--with-stdin');
  await control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  const call = rejection(payments.refund(PEN, 'key-1'));
  await control.held();
  expect(await running.closeStdin()).toBe(0);
  expect(await call).toMatchObject({ code: 'NO_REPLY' });
});
