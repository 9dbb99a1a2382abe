/** A worker that is killed in mid-answer. */
import { expect, inject, onTestFinished, test } from 'vitest';
import { Sessions } from '../../src/index.ts';
import { createHarness } from '../../src/testing/index.ts';
import { effects } from '../support/effect-agents.ts';
import { openChats, shows, textOf } from './support/chats.ts';

const said = (what: string): string => Array.from({ length: 60 }, (_, i) => `${what}${i}`).join(' ');

test('a worker is killed in mid-answer: the page shows the answer of the next one, once', async () => {
  const harness = await createHarness({
    script: ({ repeat }) => ({ text: said(repeat === 0 ? 'lost' : 'word'), chunks: 60, chunkDelayMs: 100 }),
    agents: [effects],
    module: new URL('../support/effect-agents.ts', import.meta.url),
    server: inject('temporal'),
  });
  onTestFinished(() => harness.stop());
  const sessions = new Sessions(harness.client, { taskQueue: harness.taskQueue });
  const chats = await openChats(sessions, { agent: 'effects' });
  const worker = await harness.startWorkerProcess();
  const page = chats.open(7, `crash-${Date.now()}`);
  const done = page.chat.sendMessage({ text: 'talk' });
  await shows(page, ({ chat }) => textOf(chat.lastMessage).includes('lost5'));
  const old = chats.open(6, page.chat.id);
  const resumed = old.chat.resumeStream();
  await shows(old, ({ chat }) => textOf(chat.lastMessage).includes('lost5'));
  await worker.crash();
  await harness.startWorkerProcess();
  await Promise.all([done, resumed]);
  expect(page.errors).toEqual([]);
  expect(page.chat.messages.map(textOf)).toEqual(['talk', said('word')]);
  expect(page.chunks.filter(({ type }) => type === 'reset-step').length).toBe(1);

  // Version 6 cannot remove what it has: it is marked.
  expect(old.errors).toEqual([]);
  const parts = old.chat.lastMessage?.parts.filter(({ type }) => type === 'text') ?? [];
  expect(parts).toMatchObject([
    { text: expect.stringContaining('lost5'), providerMetadata: { perdure: { withdrawn: true } } },
    { text: said('word') },
  ]);
});
