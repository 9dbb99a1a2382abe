/** `useChat` of the AI SDK, in both versions, against a session. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type DefinedAgent, defineAgent, defineTool } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { type Chats, openChats, shows, textOf, toolsOf } from './support/chats.ts';

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** Does what the user says. */
const teller: Script = ({ lastUserText, toolResults, stepInTurn }) => {
  const [verb = ''] = lastUserText.split(' ');
  if (stepInTurn === 0 && (verb === 'pay' || verb === 'look'))
    return { toolCalls: [{ name: verb, args: { what: lastUserText } }] };
  if (verb === 'talk') return { reasoning: 'Hm.', text: words(60), chunks: 60, chunkDelayMs: 5 };
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
