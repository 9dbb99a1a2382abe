/** `useChat` of the AI SDK, in both versions, against a session. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import type { UIMessage } from 'ai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { SIGNAL } from '../../src/contract/names.ts';
import { type DefinedAgent, DirectoryValues, defineAgent, defineTool, Sessions } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { type Chats, openChats, shows, textOf, toolsOf } from './support/chats.ts';

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** Does what the user says. */
const teller: Script = ({ lastUserText, toolResults, stepInTurn, repeat }) => {
  const [verb = ''] = lastUserText.split(' ');
  if (stepInTurn === 0 && (verb === 'pay' || verb === 'look'))
    return { toolCalls: [{ name: verb, args: { what: lastUserText } }], chunkDelayMs: 60 };
  if (verb === 'talk') return { reasoning: 'Hm.', text: words(60), chunks: 60, chunkDelayMs: 5 };
  if (verb === 'dawdle') return { text: words(60), chunks: 60, chunkDelayMs: 300 };
  if (verb === 'count') return { text: `repeat ${repeat}` };
  if (verb === 'fail') return { fault: 'status', status: 400 };
  return { text: `${lastUserText}: ${toolResults.at(-1)?.text ?? 'nothing'}` };
};

function agentOf(stage: Stage, runTurns?: number): DefinedAgent {
  const inputSchema = z.object({ what: z.string() });
  return defineAgent({
    name: 'teller',
    model: stage.provider('m'),
    instructions: 'Pay.',
    ...(runTurns !== undefined && { runTurns }),
    tools: {
      pay: defineTool({
        description: 'Pays',
        inputSchema,
        effect: 'mutate',
        needsApproval: true,
        execute: ({ what }) => ({ paid: what }),
      }),
      look: defineTool({ description: 'Looks', inputSchema, effect: 'read', execute: ({ what }) => what }),
    },
  });
}

async function open(hasWorker = true): Promise<{ stage: Stage; chats: Chats }> {
  const stage = await openStage(teller);
  if (hasWorker) await stage.startWorker([agentOf(stage)]);
  return {
    stage,
    chats: await openChats(stage.sessions, { agent: 'teller', sessionId: (id, { user }) => `${user}-${id}` }),
  };
}

test.each([6, 7] as const)(
  'version %i: each token of the model is a delta, and the messages load again',
  async (version) => {
    const { stage, chats } = await open();
    const id = stage.id();
    const page = chats.open(version, id);
    await page.chat.sendMessage({ text: 'talk' });
    expect(page.errors).toEqual([]);
    expect(textOf(page.chat.lastMessage)).toBe(words(60));
    expect(page.chunks.filter(({ type }) => type === 'text-delta').length).toBe(60);
    expect(page.chat.lastMessage?.parts.map(({ type }) => type)).toEqual(['step-start', 'reasoning', 'text']);
    await page.chat.sendMessage({ text: 'look here' });
    expect(textOf(page.chat.lastMessage)).toBe('look here: look here');
    expect(toolsOf(page.chat.lastMessage)).toMatchObject([
      { type: 'tool-look', state: 'output-available', input: { what: 'look here' }, output: 'look here' },
    ]);
    expect(page.chunks.flatMap(({ type, toolCallId }) => (toolCallId === 'call_2_0' ? [type] : []))).toEqual(
      expect.arrayContaining([
        'tool-input-start',
        'tool-input-delta',
        'tool-input-available',
        'tool-output-available',
      ]),
    );
    expect(page.chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);

    const { messages } = (await (await chats.get(`/${id}`)).json()) as { messages: object[] };
    expect(messages).toMatchObject(
      page.chat.messages.map(({ id: of, parts }) => ({ id: of, parts: parts.map(({ type }) => ({ type })) })),
    );
  },
);

test.each([6, 7] as const)('version %i: a person approves or rejects a call in the page', async (version) => {
  const { stage, chats } = await open();
  const page = chats.open(version, stage.id());
  await page.chat.sendMessage({ text: 'pay rent' });
  const [asked] = toolsOf(page.chat.lastMessage);
  expect(asked).toMatchObject({ state: 'approval-requested', input: { what: 'pay rent' } });
  await page.chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true });
  await shows(page, ({ chat }) => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
  expect(page.chat.messages.length).toBe(2);
  expect(toolsOf(page.chat.lastMessage)).toMatchObject([
    { state: 'output-available', output: { paid: 'pay rent' } },
  ]);
  expect(textOf(page.chat.lastMessage)).toContain('"paid":"pay rent"');

  await page.chat.sendMessage({ text: 'pay more' });
  const [refused] = toolsOf(page.chat.lastMessage);
  await page.chat.addToolApprovalResponse({
    id: refused?.approval?.id ?? '',
    approved: false,
    reason: 'too much',
  });
  await shows(page, ({ chat }) => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
  expect(toolsOf(page.chat.lastMessage)).toMatchObject([{ state: 'output-denied' }]);
  expect(textOf(page.chat.lastMessage)).toContain('too much');
  expect(page.errors).toEqual([]);
  const [, second] = (await stage.sessions.get(`ada-${page.chat.id}`).calls()).items;
  expect(second?.decision).toMatchObject({ decision: 'reject', by: 'ada', reason: 'too much' });
});

test.each([6, 7] as const)(
  'version %i: an approval is decided although a message was sent meanwhile',
  async (version) => {
    const { stage, chats } = await open();
    const page = chats.open(version, stage.id());
    const session = stage.sessions.get(`ada-${page.chat.id}`);
    await page.chat.sendMessage({ text: 'pay rent' });
    const approve = async (): Promise<void> => {
      const asked = page.chat.messages.flatMap(toolsOf).find(({ state }) => state === 'approval-requested');
      await page.chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true });
    };
    await page.chat.sendMessage({ text: 'hello' });
    await approve();
    await page.chat.sendMessage();
    expect(page.errors).toEqual([]);
    expect(toolsOf(page.chat.messages[1])).toMatchObject([
      { state: 'output-available', output: { paid: 'pay rent' } },
    ]);
    await untilPhase(session, 'idle');
    await page.chat.resumeStream();
    expect(page.chat.messages.map(textOf)).toEqual([
      'pay rent',
      '',
      'hello',
      expect.stringMatching(/^hello: .*pay rent/),
    ]);

    // The next message brings a decision along, too.
    await page.chat.sendMessage({ text: 'pay more' });
    await page.chat.sendMessage({ text: 'and this' });
    await approve();
    await page.chat.sendMessage({ text: 'goodbye' });
    expect(page.errors).toEqual([]);
    expect(textOf(page.chat.lastMessage)).toMatch(/^goodbye: .*pay more/);
    const { items } = await session.calls();
    expect(items.map(({ decision }) => decision)).toMatchObject([
      { decision: 'approve', by: 'ada' },
      { decision: 'approve', by: 'ada' },
    ]);
  },
);

test.each([6, 7] as const)(
  'version %i: a page that is loaded in mid-answer shows the whole answer once',
  async (version) => {
    const { stage, chats } = await open();
    const id = stage.id();
    const page = chats.open(version, id);
    void page.chat.sendMessage({ text: 'talk' });
    await shows(page, ({ chat }) => textOf(chat.lastMessage).includes('word9'));
    await page.chat.stop();
    const { messages } = (await (await chats.get(`/${id}`)).json()) as { messages: [] };
    const reloaded = chats.open(version, id, { messages });
    await reloaded.chat.resumeStream();
    expect(reloaded.chat.messages.map(textOf)).toEqual(['talk', words(60)]);
    expect(reloaded.errors).toEqual([]);
    await untilPhase(stage.sessions.get(`ada-${id}`), 'idle');
    // It has just ended: a page that was loaded a moment ago gets the answer whole, in the place of what it has.
    await reloaded.chat.resumeStream();
    expect(reloaded.chat.messages.map(textOf)).toEqual(['talk', words(60)]);
  },
);

test('an answer is written again, and an edited message is answered in its place', async () => {
  const { stage, chats } = await open();
  const page = chats.open(7, stage.id());
  await page.chat.sendMessage({ text: 'hello' });
  await page.chat.sendMessage({ text: 'count' });
  const first = textOf(page.chat.lastMessage);
  await page.chat.regenerate();
  expect(page.errors).toEqual([]);
  expect(page.chat.messages.map(textOf)).toEqual([
    'hello',
    'hello: nothing',
    'count',
    expect.not.stringContaining(first),
  ]);
  const edited = page.chat.messages[2]?.id ?? '';
  await page.chat.sendMessage({ text: 'goodbye', messageId: edited });
  expect(page.errors).toEqual([]);
  expect(page.chat.messages.map(textOf)).toEqual(['hello', 'hello: nothing', 'goodbye', 'goodbye: nothing']);
  const { messages } = (await (await chats.get(`/${page.chat.id}`)).json()) as { messages: UIMessage[] };
  expect(messages.map(textOf)).toEqual(['hello', 'hello: nothing', 'goodbye', 'goodbye: nothing']);
});

test.each([6, 7] as const)(
  'version %i: a message that did not arrive is sent by a retry',
  async (version) => {
    const { stage, chats } = await open();
    const page = chats.open(version, stage.id());
    page.failNext();
    await page.chat.sendMessage({ text: 'hello' });
    expect(page.errors.splice(0).map(String)).toEqual(['TypeError: fetch failed']);
    await page.chat.regenerate();
    page.failNext();
    await page.chat.sendMessage({ text: 'goodbye' });
    expect(page.errors.splice(0).map(String)).toEqual(['TypeError: fetch failed']);
    await page.chat.regenerate();
    // Without a message the AI SDK names the last one, as if it were edited.
    page.failNext();
    await page.chat.sendMessage({ text: 'look here' });
    expect(page.errors.splice(0).map(String)).toEqual(['TypeError: fetch failed']);
    await page.chat.sendMessage();
    expect(page.errors).toEqual([]);
    expect(page.chat.messages.map(textOf)).toEqual([
      'hello',
      'hello: nothing',
      'goodbye',
      'goodbye: nothing',
      'look here',
      'look here: look here',
    ]);
  },
);

test('a message that waits in the queue is retried once, and edited where it is', async () => {
  const { stage, chats } = await open();
  const page = chats.open(7, stage.id());
  const session = stage.sessions.get(`ada-${page.chat.id}`);
  await page.chat.sendMessage({ text: 'pay rent' });
  await page.chat.sendMessage({ text: 'hello' });
  await page.chat.regenerate({ messageId: page.chat.messages[2]?.id ?? '' });
  expect(page.errors).toEqual([]);
  expect((await session.queue()).map(({ text }) => text)).toEqual(['hello']);
  await page.chat.sendMessage({ text: 'goodbye', messageId: page.chat.messages[2]?.id ?? '' });
  expect(page.errors).toEqual([]);
  expect((await session.queue()).map(({ text }) => text)).toEqual(['goodbye']);
});

test('what the session waits for is a part of the message, and the page goes on after it', async () => {
  const { stage, chats } = await open();
  const id = stage.id();
  const page = chats.open(6, id);
  await page.chat.sendMessage({ text: 'fail' });
  const waits = page.chat.lastMessage?.parts.filter(({ type }) => type === 'data-perdure-wait');
  expect(waits).toMatchObject([{ data: { reason: 'provider_rejected', message: expect.any(String) } }]);
  const { messages } = (await (await chats.get(`/${id}`)).json()) as { messages: UIMessage[] };
  expect(messages.at(-1)).toMatchObject({ id: page.chat.lastMessage?.id, parts: waits });
  expect((await chats.get(`/${id}/stream`)).status).toBe(204);
});

test('in two tabs the first decision wins, and both see what came of it', async () => {
  const { stage, chats } = await open();
  const id = stage.id();
  const one = chats.open(7, id);
  await one.chat.sendMessage({ text: 'pay rent' });
  const { messages } = (await (await chats.get(`/${id}`)).json()) as { messages: UIMessage[] };
  const other = chats.open(6, id, { messages });
  const [asked] = toolsOf(other.chat.lastMessage);
  expect(asked?.state).toBe('approval-requested');
  await other.chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true });
  await shows(other, ({ chat }) => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
  await one.chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: false });
  await shows(one, ({ chat }) => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
  for (const { chat, errors } of [one, other]) {
    expect(errors).toEqual([]);
    expect(toolsOf(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: { paid: 'pay rent' } },
    ]);
  }

  // Both say something at once: each tab gets the answer to its own message, or one to both messages.
  await Promise.all([one.chat.sendMessage({ text: 'one' }), other.chat.sendMessage({ text: 'other' })]);
  const answered = [one, other].map(({ chat }) => textOf(chat.lastMessage).split(':')[0]);
  expect([
    ['one', 'other'],
    ['one', 'one'],
    ['other', 'other'],
  ]).toContainEqual(answered);
});

test('the stop of the chat ends the answer, and the next message is answered', async () => {
  const { stage, chats } = await open();
  const id = stage.id();
  const page = chats.open(7, id);
  void page.chat.sendMessage({ text: 'dawdle' });
  await shows(page, ({ chat }) => textOf(chat.lastMessage).includes('word9'));
  expect((await chats.post(`/${id}/stop`, {})).status).toBe(204);
  await shows(page, ({ chat }) => chat.status === 'ready');
  await untilPhase(stage.sessions.get(`ada-${id}`), 'paused');
  expect((await chats.get(`/${id}/stream`)).status).toBe(204);
  await page.chat.sendMessage({ text: 'hello' });
  expect(textOf(page.chat.lastMessage)).toBe('hello: nothing');
  expect(page.errors).toEqual([]);
});

/** A chat that its user has stopped after an answer. */
async function openStopped() {
  const { stage, chats } = await open();
  const id = stage.id();
  const page = chats.open(7, id);
  await page.chat.sendMessage({ text: 'hello' });
  expect((await chats.post(`/${id}/stop`, {})).status).toBe(204);
  return { stage, page, session: stage.sessions.get(`ada-${id}`) };
}

test('a pause after the stop of the chat holds it over the next message, until somebody resumes it', async () => {
  const { page, session } = await openStopped();
  await session.pause({ by: 'eve', reason: 'a review' });
  const done = page.chat.sendMessage({ text: 'again' });
  await until(session, ({ queued }) => queued === 1);
  expect(await session.state()).toMatchObject({ phase: 'paused', paused: { by: 'eve', reason: 'a review' } });
  await session.resume({ by: 'eve' });
  await done;
  await until(session, ({ lastText }) => lastText === 'again: nothing');
  expect(page.errors).toEqual([]);
});

test('a message after the stop of the chat does not end a pause that comes while it is sent', async () => {
  const { stage, page, session } = await openStopped();
  await untilPhase(session, 'paused');
  // The chat has read the state by then.
  const start = stage.sessions.start.bind(stage.sessions);
  vi.spyOn(stage.sessions, 'start').mockImplementationOnce(async (...given) => {
    await session.pause({ by: 'eve', reason: 'a review' });
    return start(...given);
  });
  const done = page.chat.sendMessage({ text: 'again' });
  const handle = stage.client.workflow.getHandle(session.id);
  const signals = async () => {
    const { events } = await handle.fetchHistory();
    return events?.flatMap((event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? []);
  };
  await expect.poll(signals).toContain(SIGNAL.resume);
  expect(await session.state()).toMatchObject({ phase: 'paused', paused: { by: 'eve', reason: 'a review' } });
  await session.resume({ by: 'eve' });
  await done;
  await until(session, ({ lastText }) => lastText === 'again: nothing');
  expect(page.errors).toEqual([]);
});

test('a message that is sent while no worker runs is answered when one does', async () => {
  const { stage, chats } = await open(false);
  const page = chats.open(7, stage.id());
  const done = page.chat.sendMessage({ text: 'hello' });
  await shows(page, ({ chunks }) => chunks.some(({ type }) => type === 'data-perdure-worker'));
  await stage.startWorker([agentOf(stage)]);
  await done;
  expect(page.errors).toEqual([]);
  expect(page.chat.messages.map(textOf)).toEqual(['hello', 'hello: nothing']);
});

test('an error that an answer meets is reported, and the page learns nothing of it', async () => {
  const { stage } = await open();
  let isOut = false;
  const codec: PayloadCodec = {
    encode: async (payloads) => payloads,
    decode: async (payloads) => {
      if (isOut) throw new Error('the key server is out');
      return payloads;
    },
  };
  const { connection, options } = stage.client;
  const { namespace } = options;
  const client = new Client({ connection, namespace, dataConverter: { payloadCodecs: [codec] } });
  const reported: unknown[] = [];
  const chats = await openChats(new Sessions(client, { taskQueue: stage.taskQueue }), {
    agent: 'teller',
    onError: (error) => reported.push(error),
  });
  const page = chats.open(7, stage.id());
  const sent = page.chat.sendMessage({ text: 'talk' });
  await shows(page, ({ chat }) => textOf(chat.lastMessage).includes('word9'));
  isOut = true;
  await sent;
  expect(page.errors.map(({ message }) => message)).toEqual([expect.stringContaining('in the log')]);
  expect(reported.map(String)).toEqual([expect.stringContaining('the key server is out')]);
});

test('an approval of a paused session is answered once, and its stream stays until the call has ended', async () => {
  const { stage, chats } = await open();
  const id = stage.id();
  const page = chats.open(6, id);
  await page.chat.sendMessage({ text: 'pay rent' });
  const session = stage.sessions.get(`ada-${id}`);
  await session.pause({ by: 'bob', reason: 'lunch' });
  await untilPhase(session, 'paused');
  const [asked] = toolsOf(page.chat.lastMessage);
  await page.chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true });
  await shows(
    page,
    ({ chat }) => chat.lastMessage?.parts.some(({ type }) => type === 'data-perdure-pause') === true,
  );
  expect(page.chat.status).toBe('streaming');
  await session.resume({ by: 'bob' });
  await shows(page, ({ chat }) => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
  expect(toolsOf(page.chat.lastMessage)).toMatchObject([{ state: 'output-available' }]);
  expect(page.chunks.filter(({ type }) => type === 'start').length).toBe(2);
});

test('an image is stored, and loads again as an image; other files only as downloads', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chat-values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const stage = await openStage(teller);
  const values = new DirectoryValues(folder);
  await stage.startWorker([agentOf(stage)], { values });
  const sessions = new Sessions(stage.client, { taskQueue: stage.taskQueue, values });
  const chats = await openChats(sessions, { agent: 'teller' });
  const page = chats.open(7, stage.id());
  const png = Buffer.from('89504e470d0a1a0a', 'hex').toString('base64');
  const html = Buffer.from('<script>alert(1)</script>').toString('base64');
  await page.chat.sendMessage({
    text: 'look here',
    files: [
      { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${png}`, filename: 'a.png' },
      { type: 'file', mediaType: 'text/html', url: `data:text/html;base64,${html}` },
    ],
  });
  const { messages } = (await (await chats.get(`/${page.chat.id}`)).json()) as { messages: UIMessage[] };
  expect(messages[0]?.parts).toMatchObject([
    { type: 'file', mediaType: 'image/png', filename: 'a.png' },
    { type: 'file', mediaType: 'text/html' },
    { type: 'text', text: 'look here' },
  ]);
  const got = async (index: number, user = 'ada'): Promise<unknown[]> => {
    const part = messages[0]?.parts[index];
    const url = part?.type === 'file' ? part.url : '';
    const response = await chats.get(url.replace('/api/chat', ''), user);
    const { headers } = response;
    return [response.status, headers.get('content-type'), headers.get('content-disposition')];
  };
  expect(await got(0)).toEqual([200, 'image/png', 'inline']);
  expect(await got(1)).toEqual([200, 'application/octet-stream', 'attachment']);
  expect((await got(0, 'eve'))[0]).toBe(404);
});

test('a chat goes on over many runs of its session, and loads with all its messages', async () => {
  const stage = await openStage(teller);
  await stage.startWorker([agentOf(stage, 3)]);
  const chats = await openChats(stage.sessions, { agent: 'teller' });
  const page = chats.open(7, stage.id());
  const first = { text: 'look 0' };
  await page.chat.sendMessage(first);
  for (const n of [1, 2, 3]) await page.chat.sendMessage({ text: `look ${n}` });
  const expected = [0, 1, 2, 3].flatMap((n) => [`look ${n}`, `look ${n}: look ${n}`]);
  expect(page.chat.messages.map(textOf)).toEqual(expected);
  const { messages } = (await (await chats.get(`/${page.chat.id}`)).json()) as { messages: UIMessage[] };
  expect(messages.map(textOf)).toEqual(expected);
  expect(messages.map(({ id }) => id)).toEqual(page.chat.messages.map(({ id }) => id));
  await page.chat.regenerate({ messageId: page.chat.messages[1]?.id ?? '' });
  expect(page.errors.map(String).join()).toContain('too old to be answered again');
});

test('an answer that the session asks for again is one message', async () => {
  const answers = ['it is three', '{"total":3}'];
  const stage = await openStage(() => ({ text: answers.shift() ?? '' }));
  const output = z.object({ total: z.number() });
  await stage.startWorker([
    defineAgent({ name: 'sums', model: stage.provider('m'), instructions: 'Add.', tools: {}, output }),
  ]);
  const chats = await openChats(stage.sessions, { agent: 'sums' });
  const page = chats.open(6, stage.id());
  await page.chat.sendMessage({ text: '1 and 2' });
  const { messages } = (await (await chats.get(`/${page.chat.id}`)).json()) as { messages: UIMessage[] };
  for (const all of [page.chat.messages, messages])
    expect(all.map(textOf)).toEqual(['1 and 2', 'it is three{"total":3}']);
});
