/** What went wrong elsewhere with what is stored of a session, and sent to the model. `docs/comparison.md` says where. */
import type { LanguageModelV3, LanguageModelV3Prompt, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide } from '../support/decide.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';

type Part = LanguageModelV3StreamPart;

const finish = (raw: 'stop' | 'tool-calls'): Part => ({
  type: 'finish',
  finishReason: { unified: raw, raw },
  usage: {
    inputTokens: { total: 7, noCache: 7, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 2, text: undefined, reasoning: undefined },
  },
});

const says = (delta: string): Part[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
  { type: 'text-end', id: 't' },
  finish('stop'),
];

const asks = (toolName: string, ...args: object[]): Part[] => [
  ...args.map(
    (input, i): Part => ({
      type: 'tool-call',
      toolCallId: `x${i}`,
      toolName,
      input: JSON.stringify(input),
    }),
  ),
  finish('tool-calls'),
];

/** A model in this process: costs nothing, and sees the prompt as the AI SDK's providers do. */
function modelOf(reply: (prompt: LanguageModelV3Prompt) => readonly Part[]): LanguageModelV3 {
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('only streams are asked for')),
    doStream: async ({ prompt }) => ({
      stream: new ReadableStream({
        start: (controller) => {
          for (const part of reply(prompt)) controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  };
}

test('a hang at a thousand events', async () => {
  const stage = await openStage(() => ({ text: 'not asked' }));
  const ROUNDS = 170;
  const CALLS = 6;
  let looked = 0;
  const model = modelOf((prompt) => {
    const rounds = prompt.filter(({ role }) => role === 'tool').length;
    const last = prompt.findLast(({ role }) => role === 'user');
    return JSON.stringify(last?.content).includes('still there')
      ? says(`yes, after ${rounds}`)
      : rounds < ROUNDS
        ? asks('look', ...Array.from({ length: CALLS }, (_, i) => ({ n: rounds * CALLS + i })))
        : says('that was all');
  });
  const look = defineTool({
    inputSchema: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => {
      looked += 1;
      return n;
    },
  });
  const agent = defineAgent({ name: 'long', model, instructions: 'Look.', tools: { look }, runTurns: false });
  const first = await stage.startWorker([agent]);
  const session = await stage.sessions.start('long', { id: stage.id(), message: 'go' });
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('that was all');
  const { historyLength } = await stage.client.workflow.getHandle(session.id).describe();
  expect(historyLength).toBeGreaterThan(1_000);

  // Also for a worker that has to read all of it first.
  await first.stop();
  await stage.startWorker([agent]);
  await session.send('still there?');
  await until(session, ({ lastText, phase }) => phase === 'idle' && lastText === `yes, after ${ROUNDS}`);
  expect(looked).toBe(ROUNDS * CALLS);
  await expectSound(stage, session);
});

/** All text of a history: what is in its payloads, decoded. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(textOf).join('\n');
}

test('step payloads stored twice', async () => {
  const stage = await openStage(() => ({ text: 'not asked' }));
  const rounds = (prompt: LanguageModelV3Prompt): number =>
    prompt.filter(({ role }) => role === 'assistant').length;
  const model = modelOf((prompt) =>
    rounds(prompt) === 0
      ? [
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: 'MARK-text' },
          { type: 'text-end', id: 't' },
          ...asks('fetch', { q: 'MARK-args' }),
        ]
      : says(`answer ${rounds(prompt)}`),
  );
  const fetch = defineTool({
    inputSchema: z.object({ q: z.string() }),
    effect: 'read',
    needsApproval: true,
    execute: () => ({ rows: `MARK-output ${'x'.repeat(50_000)}` }),
  });
  const agent = defineAgent({ name: 'once', model, instructions: 'MARK-instructions', tools: { fetch } });
  let worker = await stage.startWorker([agent]);
  const session = await stage.sessions.start('once', { id: stage.id(), message: 'MARK-message' });
  await untilPhase(session, 'approval');
  await decide(session, 'call_1_0', { decision: 'approve' });
  await untilPhase(session, 'idle');
  for (let turn = 3; turn <= 6; turn++) {
    // Neither turns nor a worker that has nothing in its memory write the past again.
    await worker.stop();
    worker = await stage.startWorker([agent]);
    await session.send('go on');
    await until(session, ({ lastText, phase }) => phase === 'idle' && lastText === `answer ${turn - 1}`);
  }
  const { history } = await expectSound(stage, session);
  const text = textOf(history);
  const times = (mark: string): number => text.split(mark).length - 1;
  expect({
    message: times('MARK-message'),
    instructions: times('MARK-instructions'),
    text: times('MARK-text'),
    output: times('MARK-output'),
    // A read finds its arguments in the transcript.
    args: times('MARK-args'),
  }).toEqual({ message: 1, instructions: 1, text: 1, output: 1, args: 1 });
});

test('provider metadata dropped in streaming', async () => {
  const stage = await openStage(() => ({ text: 'not asked' }));
  const prompts: LanguageModelV3Prompt[] = [];
  const model = modelOf((prompt) => {
    prompts.push(prompt);
    if (prompts.length > 1) return says('Paid.');
    return [
      // As Anthropic does: the signature comes last, with a delta or the end.
      { type: 'reasoning-start', id: 'r1' },
      { type: 'reasoning-delta', id: 'r1', delta: 'I think.' },
      {
        type: 'reasoning-delta',
        id: 'r1',
        delta: '',
        providerMetadata: { anthropic: { signature: 'c2ln' } },
      },
      { type: 'reasoning-end', id: 'r1' },
      // Redacted: nothing but metadata.
      { type: 'reasoning-start', id: 'r2', providerMetadata: { anthropic: { redactedData: 'aGlk' } } },
      { type: 'reasoning-end', id: 'r2' },
      // As OpenAI does: the id at the start, the content at the end.
      {
        type: 'reasoning-start',
        id: 'r3',
        providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: null } },
      },
      {
        type: 'reasoning-end',
        id: 'r3',
        providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'ZW5j' } },
      },
      { type: 'text-start', id: 't1', providerMetadata: { openai: { itemId: 'msg_1' } } },
      { type: 'text-delta', id: 't1', delta: 'I pay.' },
      { type: 'text-end', id: 't1' },
      // As Gemini does: on the call itself.
      {
        type: 'tool-call',
        toolCallId: 'x',
        toolName: 'pay',
        input: '{"cents":5}',
        providerMetadata: { google: { thoughtSignature: 'dGhv' } },
      },
      finish('tool-calls'),
    ];
  });
  const pay = defineTool({
    inputSchema: z.object({ cents: z.number() }),
    needsApproval: true,
    execute: ({ cents }) => `paid ${cents}`,
  });
  const agent = defineAgent({ name: 'signed', model, instructions: 'Pay.', tools: { pay } });
  const first = await stage.startWorker([agent]);
  const session = await stage.sessions.start('signed', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'approval');
  // The next prompt comes from the history, not from the memory of the worker that had the stream.
  await first.stop();
  await stage.startWorker([agent]);
  await decide(session, 'call_1_0', { decision: 'approve' });
  await untilPhase(session, 'idle');

  expect(prompts[1]?.find(({ role }) => role === 'assistant')?.content).toEqual([
    { type: 'reasoning', text: 'I think.', providerOptions: { anthropic: { signature: 'c2ln' } } },
    { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'aGlk' } } },
    {
      type: 'reasoning',
      text: '',
      providerOptions: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'ZW5j' } },
    },
    { type: 'text', text: 'I pay.', providerOptions: { openai: { itemId: 'msg_1' } } },
    {
      type: 'tool-call',
      toolCallId: expect.stringMatching(/^\w{9}$/),
      toolName: 'pay',
      input: { cents: 5 },
      providerOptions: { google: { thoughtSignature: 'dGhv' } },
    },
  ]);
  await expectSound(stage, session);
});

test('an orphaned tool call that poisons the next model call', async () => {
  // The endpoint refuses, as OpenAI's does, a prompt in which a call has no result.
  const stage = await openStage(({ lastUserText, stepInTurn, toolResults }) =>
    lastUserText === 'pay' && stepInTurn === 0
      ? { toolCalls: ['a', 'b', 'c'].map((to) => ({ name: 'pay', args: { to } })) }
      : { text: `${toolResults.length} results` },
  );
  const pay = defineTool({
    inputSchema: z.object({ to: z.string() }),
    needsApproval: true,
    idempotency: { scope: 'call' },
    execute: ({ to }) => `paid ${to}`,
  });
  const agent = defineAgent({
    name: 'payer',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: { pay },
  });
  let worker = await stage.startWorker([agent]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'pay' });
  const answered = (turn: number, text: string): ReturnType<typeof until> =>
    until(session, (view) => view.phase === 'waiting' || (view.turn >= turn && view.lastText === text));

  // One has run, one is rejected, one is still open when the user says something else.
  await untilPhase(session, 'approval');
  await decide(session, 'call_1_0', { decision: 'approve' });
  await decide(session, 'call_1_1', { decision: 'reject' });
  await session.send({ text: 'stop', mode: 'interrupt' });
  expect(await answered(2, '3 results')).toMatchObject({ wait: null });

  // Paused, its worker lost, interrupted in the pause, resumed by another.
  await session.send('pay');
  await until(session, ({ phase, turn }) => phase === 'approval' && turn === 3);
  await session.pause({ now: true });
  await worker.stop();
  worker = await stage.startWorker([agent]);
  await session.send({ text: 'stop', mode: 'interrupt' });
  await session.resume();
  expect(await answered(4, '6 results')).toMatchObject({ wait: null });

  // Cancelled in the middle of a batch: what is left is a whole transcript, for a fork or an export.
  await session.send('pay');
  await until(session, ({ phase, turn }) => phase === 'approval' && turn === 5);
  await session.cancel();
  await session.result();
  const { state } = await expectSound(stage, session);
  const blocks = state?.transcript.flatMap((message) => message.blocks) ?? [];
  const asked = blocks.flatMap((block) => (block.kind === 'tool_call' ? [block.id] : []));
  const told = blocks.flatMap((block) => (block.kind === 'tool_result' ? [block.call_id] : []));
  expect(asked).toHaveLength(9);
  expect(told).toEqual(asked);
  expect(stage.model.requests).toHaveLength(5);
});
