/** The support desk: several customers of two shops over weeks. It shows what Perdure does by default. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { createHarness, type Harness, type ReplyToolCall } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { startProcess } from '../support/ready-process.ts';

const file = (name: string): string =>
  fileURLToPath(new URL(`../../examples/support-desk/${name}`, import.meta.url));

const ANN = { tenant: 'lamps', email: 'ann@example.com' };
const BOB = { tenant: 'books', email: 'bob@example.com', language: 'German' };

const look = (order: string): ReplyToolCall => ({ name: 'lookUpOrder', args: { order } });
const refund = (cents: number, order = '1001'): ReplyToolCall => ({ name: 'refund', args: { order, cents } });
const mail: ReplyToolCall = { name: 'sendMail', args: { subject: 'Your invoice', text: 'Here it is.' } };

/** What the model asks for, by the customer's words. */
const ASKS: Readonly<Record<string, readonly ReplyToolCall[]>> = {
  'Where is my order?': [look('1001')],
  'Mail me the invoice.': [mail],
  'Mail me the invoice!': [mail, mail],
  'It is broken.': [refund(9_900)],
  'Where is her order?': [look('1001')],
  'Refund her order.': [refund(100)],
  'Refund his order.': [refund(100, '1002')],
};

interface Desk {
  harness: Harness;
  /** What a shop has of a kind. */
  rows(tenant: string, kind: 'refunds' | 'mails'): Promise<object[]>;
  ship(tenant: string, order: string): Promise<void>;
  /** Says something to a session, and resolves with what the tools of its answer told the model. */
  ask(session: Session, text: string): Promise<string[]>;
}

async function openDesk(): Promise<Desk> {
  const folder = mkdtempSync(join(tmpdir(), 'desk-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const shop = await startProcess(file('shop.ts'), ['--store', join(folder, 'shop.jsonl')]);
  onTestFinished(() => shop.kill());
  const { url } = shop.ready;
  const harness = await createHarness({
    module: file('agents.ts'),
    server: inject('temporal'),
    env: { SHOP_URL: url },
    script: ({ lastUserText, stepInTurn }) =>
      stepInTurn === 0 ? { toolCalls: ASKS[lastUserText] ?? [] } : { text: 'Done.' },
  });
  onTestFinished(() => harness.stop());
  return {
    harness,
    rows: async (tenant, kind) => (await (await fetch(`${url}/${tenant}/${kind}`)).json()) as object[],
    ship: async (tenant, order) => {
      const body = JSON.stringify({ status: 'shipped' });
      await fetch(`${url}/${tenant}/orders/${order}`, { method: 'POST', body });
    },
    ask: async (session, text) => {
      const { turn, calls } = await harness.until(session, 'idle');
      await session.send(text);
      await harness.until(session, (view) => view.turn === turn + 2 && view.phase === 'idle');
      return (await session.calls()).items.slice(calls).map(({ result }) => JSON.stringify(result?.content));
    },
  };
}

test('the second mail is sent, the second look-up is fresh, and equal calls in one answer are one mail', async () => {
  const { harness, rows, ship, ask } = await openDesk();
  const first = await harness.startWorkerProcess();
  const session = await harness.startSession('desk', { context: ANN });
  expect(await ask(session, 'Where is my order?')).toEqual([expect.stringContaining('packed')]);
  await ask(session, 'Mail me the invoice.');
  await ship('lamps', '1001');
  // Weeks later: another worker, and the same words.
  await first.crash();
  await harness.startWorkerProcess();
  expect(await ask(session, 'Where is my order?')).toEqual([expect.stringContaining('shipped')]);
  await ask(session, 'Mail me the invoice.');
  const invoice = { to: 'ann@example.com', subject: 'Your invoice', text: 'Here it is.' };
  expect(await rows('lamps', 'mails')).toMatchObject([invoice, invoice]);
  const [sent, replayed] = await ask(session, 'Mail me the invoice!');
  expect(await rows('lamps', 'mails')).toHaveLength(3);
  expect(sent).toContain('mails-');
  expect(replayed).toMatch(/not executed/i);
});

test('a person makes a refund smaller: the shop refunds that much, and the model is told', async () => {
  const { harness, rows } = await openDesk();
  await harness.startWorkerProcess();
  const session = await harness.startSession('desk', { context: ANN, message: 'It is broken.' });
  const { pending } = await harness.until(session, 'approval');
  await decide(session, pending[0]?.callId ?? '', {
    decision: 'edit',
    args: { order: '1001', cents: 4_000 },
  });
  await harness.until(session, 'idle');
  expect(await rows('lamps', 'refunds')).toMatchObject([{ order: '1001', cents: 4_000 }]);
  const told = harness.model.requests.at(-1)?.request.toolResults.at(-1)?.text;
  expect(told).toContain('edited by a person');
  expect(told).toContain('cents\\":4000');
});

test('a refund within the limit of the customer needs no approval', async () => {
  const { harness, rows } = await openDesk();
  await harness.startWorkerProcess();
  const context = { ...ANN, refundLimit: 10_000 };
  const session = await harness.startSession('desk', { context, message: 'It is broken.' });
  await harness.until(session, 'idle');
  expect(await rows('lamps', 'refunds')).toMatchObject([{ order: '1001', cents: 9_900 }]);
});

test('the tenant and the customer are enforced, whatever the model asks for', async () => {
  const { harness, rows, ask } = await openDesk();
  await harness.startWorkerProcess();
  const bob = await harness.startSession('desk', { context: BOB });
  const ann = await harness.startSession('desk', { context: ANN });
  // An order of another tenant, and one of another customer of the same tenant.
  const none = expect.stringContaining('has no order');
  expect(await ask(bob, 'Where is her order?')).toEqual([none]);
  expect(await ask(bob, 'Refund her order.')).toEqual([none]);
  expect(await ask(ann, 'Refund his order.')).toEqual([none]);
  await Promise.all([ask(bob, 'Mail me the invoice.'), ask(ann, 'Mail me the invoice.')]);
  expect(await rows('lamps', 'refunds')).toEqual([]);
  expect(await rows('books', 'refunds')).toEqual([]);
  expect(await rows('lamps', 'mails')).toMatchObject([{ to: 'ann@example.com' }]);
  expect(await rows('books', 'mails')).toMatchObject([{ to: 'bob@example.com' }]);
  const systems = harness.model.requests.map(({ request }) => request.messages[0]?.text);
  expect(systems).toContain('Help bob@example.com with their orders. Answer in German.');
  expect(systems).toContain('Help ann@example.com with their orders. Answer in English.');
});

test.each([
  ['before sendMail', 'absent'],
  ['after sendMail', 'landed'],
])(
  'a worker that is killed %s: its successor looks in the tenant, and one mail is sent',
  async (point, outcome) => {
    const { harness, rows } = await openDesk();
    const worker = await harness.startWorkerProcess({ breakAt: [point] });
    const session = await harness.startSession('desk', { context: BOB, message: 'Mail me the invoice.' });
    await worker.reached(point);
    await worker.crash();
    await harness.startWorkerProcess();
    await harness.until(session, 'idle');
    expect(await rows('books', 'mails')).toMatchObject([{ to: 'bob@example.com' }]);
    expect((await session.calls()).items[0]?.dispatches[0]).toMatchObject({ outcome });
    expect(await session.state()).toMatchObject({ context: BOB });
  },
);
