/** `useChat` of the AI SDK, in both versions, against a session. */
import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type DefinedAgent, defineAgent, defineTool } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { type Chats, openChats, shows, textOf, toolsOf } from './support/chats.ts';

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** Does what the user says. */
const teller: Script = ({ lastUserText, toolResults, stepInTurn, repeat }) => {
  const [verb = ''] = lastUserText.split(' ');
  if (stepInTurn === 0 && (verb === 'pay' || verb === 'look'))
    return { toolCalls: [{ name: verb, args: { what: lastUserText } }] };
  if (verb === 'talk') return { reasoning: 'Hm.', text: words(60), chunks: 60, chunkDelayMs: 5 };
  if (verb === 'dawdle') return { text: words(60), chunks: 60, chunkDelayMs: 300 };
  if (verb === 'count') return { text: `repeat ${repeat}` };
  if (verb === 'fail') return { fault: 'status', status: 400 };
  return { text: `${lastUserText}: ${toolResults.at(-1)?.text ?? 'nothing'}` };
};

function agentOf(stage: Stage): DefinedAgent {
  const inputSchema = z.object({ what: z.string() });
  return defineAgent({
    name: 'teller',
    model: stage.provider('m'),
    instructions: 'Pay.',
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

async function open(): Promise<{ stage: Stage; chats: Chats }> {
  const stage = await openStage(teller);
  await stage.startWorker([agentOf(stage)]);
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
  expect([one, other].map(({ chat }) => textOf(chat.lastMessage))).toEqual([
    expect.stringMatching(/^(one|other): /),
    expect.stringMatching(/^other: /),
  ]);
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
