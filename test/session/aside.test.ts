/** Side answers: a message that is answered while a call is open, and changes nothing that is pending. */
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { textsOf } from '../../src/contract/messages.ts';
import { defineAgent, defineTool, type Message, type Session } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { openWorld, PEN } from '../support/world.ts';
import { expectSound } from './support/sound.ts';

/** A tool call that ends when the test says so. */
function gate(): { passed: Promise<void>; pass: () => void } {
  let pass = (): void => {};
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  onTestFinished(pass);
  return { passed, pass };
}

const input = z.object({});

async function open({ budget = {}, said }: { budget?: object; said?: Promise<void> } = {}): Promise<{
  stage: Stage;
  start: (message: string) => Promise<Session>;
}> {
  const stage = await openStage(({ lastUserText, toolResults }) => {
    if (lastUserText === 'pay' && toolResults.length === 0)
      return {
        toolCalls: [
          { name: 'look', args: {} },
          { name: 'pay', args: {} },
        ],
      };
    if (lastUserText === 'read' && toolResults.length === 0)
      return { toolCalls: [{ name: 'slow', args: {} }] };
    return { text: `heard: ${lastUserText}` };
  });
  const tools = {
    look: defineTool({ inputSchema: input, effect: 'read', execute: async () => 'it costs 3' }),
    pay: defineTool({
      inputSchema: input,
      effect: 'idempotent',
      needsApproval: true,
      execute: async () => 'paid',
    }),
    slow: defineTool({
      inputSchema: input,
      effect: 'read',
      execute: async () => {
        await said;
        return 'read';
      },
    }),
  };
  await stage.startWorker([
    defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Pay.', tools, budget }),
  ]);
  return { stage, start: (message) => stage.sessions.start('clerk', { id: stage.id(), message }) };
}

const said = (messages: readonly Message[]): string[] =>
  messages.map(
    (message) => `${message.role}${message.aside === true ? '*' : ''}: ${textsOf(message).join()}`,
  );

async function decide(session: Session): Promise<void> {
  const [call] = await session.approvals();
  if (call === undefined) throw new Error('nothing waits');
  await session.decide(call, { decision: 'approve' });
}

test('a message during an approval gets a side answer at once, and nothing pending changes', async () => {
  const { stage, start } = await open();
  const session = await start('pay');
  const { pending, turn } = await untilPhase(session, 'approval');
  const cursor = await session.cursor();
  await session.send({ text: 'What does it cost?', id: 'cost', mode: 'aside', by: 'ann' });
  await session.send({ text: 'Who asks?', id: 'who', mode: 'aside' });
  const view = await until(session, ({ messages }) => messages === 6);
  expect(view).toMatchObject({ phase: 'approval', turn, pending, queued: 0, lastText: '' });
  expect(view.budget.reserved).toEqual({ usd: 0, tokens: 0 });
  expect(view.budget.spent.turns).toBe(1);
  const parts: string[] = [];
  for await (const part of session.stream({ since: cursor })) {
    if (part.type === 'message') parts.push(`${part.role} ${String(part.aside)}: ${part.text}`);
    if (parts.length === 4) break;
  }
  expect(parts[1]).toBe('assistant true: heard: What does it cost?');
  // The model was told what is known so far, the side answers before, and could not call tools.
  const [, first, second] = stage.model.requests.map(({ request }) => request);
  expect(first?.body).toMatchObject({ tool_choice: 'none' });
  expect(first?.messages.map(({ role, text }) => `${role}: ${text}`).slice(1)).toEqual([
    'user: pay',
    'assistant: ',
    'tool: it costs 3',
    expect.stringMatching(/^tool: It has not run yet: it waits for the approval of a person\. /),
    'user: What does it cost?',
  ]);
  expect(second?.messages.slice(-3).map(({ text }) => text)).toEqual([
    'What does it cost?',
    'heard: What does it cost?',
    'Who asks?',
  ]);
  await decide(session);
  await untilPhase(session, 'idle');
  expect(said((await session.transcript()).items)).toEqual([
    'user: pay',
    'assistant: ',
    'user*: What does it cost?',
    'assistant*: heard: What does it cost?',
    'user*: Who asks?',
    'assistant*: heard: Who asks?',
    'tool: ',
    'assistant: heard: pay',
  ]);
  // Later prompts are as if nobody had asked.
  expect(stage.model.requests.at(-1)?.request.messages.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'tool',
  ]);
  expect(said([...(await session.view())])).not.toContain('user*: Who asks?');
  await expectSound(stage, session);
});

test('a side answer beside a long read of the same activity comes before the read ends', async () => {
  const { passed, pass } = gate();
  const { stage, start } = await open({ said: passed });
  const session = await start('read');
  await untilPhase(session, 'acting');
  await session.send({ text: 'Still there?', id: 'there', mode: 'aside' });
  await until(session, ({ messages }) => messages === 4);
  pass();
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'heard: read', turn: 2 });
  await expectSound(stage, session);
});

test('without an open call, or without money, it is an ordinary message', async () => {
  const { stage, start } = await open({ budget: { tokens: 20_000 } });
  const session = await start('hello');
  await untilPhase(session, 'idle');
  await session.send({ text: 'pay', mode: 'aside' });
  await untilPhase(session, 'approval');
  const { budget } = await session.state();
  const { inputTokens, outputTokens } = budget.spent;
  await session.setBudget({ limits: { tokens: inputTokens + outputTokens + 100 } });
  await session.send({ text: 'Why?', id: 'why', mode: 'aside' });
  expect(await session.state()).toMatchObject({ phase: 'approval', queued: 1 });
  expect((await session.state()).notices.at(-1)).toMatchObject({
    kind: 'aside',
    message: expect.stringMatching(
      /^message why gets no side answer and waits for the end of the turn: tokens: /,
    ),
  });
  expect(await session.queue()).toEqual([expect.not.objectContaining({ aside: true })]);
  await session.setBudget({ limits: { tokens: 20_000 } });
  await decide(session);
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'heard: Why?' });
  expect(said((await session.transcript()).items).slice(-2)).toEqual([
    'user: Why?',
    'assistant: heard: Why?',
  ]);
  await expectSound(stage, session);
});

test('a worker that is killed in a side answer: it is asked again, charged, and answered once', async () => {
  const asks = { toolCalls: [{ name: 'refundAsked', args: PEN }] };
  const world = await openWorld(({ lastUserText, toolResults, repeat }) => {
    if (lastUserText === 'Why?') return repeat === 0 ? { fault: 'hang' } : { text: 'Because.' };
    return toolResults.length === 0 ? asks : { text: 'Done.' };
  });
  const session = await world.begin('priced');
  const worker = await world.startWorkerProcess();
  await world.until(session, 'approval');
  await session.send({ text: 'Why?', id: 'why', mode: 'aside' });
  await world.model.waitFor((requests) => requests.some(({ request }) => request.lastUserText === 'Why?'));
  expect(await rejection(session.withdraw('why'))).toMatchObject({
    code: 'MESSAGE_NOT_QUEUED',
    message: expect.stringContaining('it is getting its side answer now'),
  });
  await worker.crash();
  await world.startWorkerProcess();
  await world.until(session, ({ messages }) => messages === 4);
  expect(await session.state()).toMatchObject({ phase: 'approval', budget: { spent: { lostReplies: 1 } } });
  await decide(session);
  expect(await world.until(session, 'idle')).toMatchObject({ lastText: 'Done.' });
  const state = await world.check(session);
  expect(said(state.transcript).filter((line) => line.includes('*'))).toEqual([
    'user*: Why?',
    'assistant*: Because.',
  ]);
  expect(await world.control.refunds()).toHaveLength(1);
}, 120_000);

test('a pause that takes effect now stops a side answer, and it comes after the pause', async () => {
  const stage = await openStage(({ lastUserText, repeat, toolResults }) => {
    if (lastUserText === 'Why?') return repeat === 0 ? { fault: 'hang' } : { text: 'Because.' };
    return toolResults.length === 0 ? { toolCalls: [{ name: 'pay', args: {} }] } : { text: 'Done.' };
  });
  const pay = defineTool({
    inputSchema: input,
    effect: 'idempotent',
    needsApproval: true,
    execute: async () => 1,
  });
  const model = stage.provider('m');
  await stage.startWorker([defineAgent({ name: 'clerk', model, instructions: 'Pay.', tools: { pay } })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'pay' });
  await untilPhase(session, 'approval');
  await session.send({ text: 'Why?', id: 'why', mode: 'aside' });
  await stage.model.waitFor((requests) => requests.length === 2);
  await session.pause({ now: true });
  await until(session, ({ budget }) => budget.reserved.tokens === 0);
  expect(await session.queue()).toMatchObject([{ id: 'why', aside: true }]);
  await session.resume();
  await until(session, ({ messages }) => messages === 4);
  await session.send({ text: 'And now?', id: 'now', mode: 'aside' });
  await session.cancel();
  expect((await session.result()).status).toBe('cancelled');
  await expectSound(stage, session);
});
