import { expect, test } from 'vitest';
import type { Fault } from '../../src/testing/index.ts';
import { untilPhase } from '../support/stage.ts';
import { answered, ask, passes, reservedForFirstCall } from './support/faulty.ts';
import { expectSound } from './support/sound.ts';

const look = (id: string): { name: string; args: { id: string } } => ({ name: 'look', args: { id } });

const UNREADABLE: [string, Fault][] = [
  ['half a JSON object', { fault: 'garbage' }],
  ['half a JSON object in mid-stream', { fault: 'garbage', afterChunks: 3 }],
  ['no choices', { fault: 'no-choices' }],
  ['no finish reason', { fault: 'no-finish' }],
  ['an error in the stream', { fault: 'error-event' }],
];

test.each(UNREADABLE)(
  '%s: three requests, each charged, then it waits visibly; after resume it goes on',
  async (_, fault) => {
    const { stage, session } = await ask(passes(4, fault));
    const waiting = await untilPhase(session, 'waiting');
    expect(waiting.wait?.reason).toMatch(/^(invalid_response|provider_unavailable)$/);
    expect(waiting.wait?.message).not.toBe('');
    expect(waiting.wait?.next).toEqual({ action: 'resume', sessionId: session.id });
    expect(waiting.notices).toHaveLength(3);
    expect(stage.model.requests).toHaveLength(3);
    const reserved = await reservedForFirstCall(stage, session);
    expect(waiting.budget.spent).toMatchObject({ inputTokens: 3 * reserved, outputTokens: 0, turns: 0 });
    expect(waiting.budget.reserved).toEqual({ usd: 0, tokens: 0 });

    await session.resume();
    const { view, requests } = await answered(stage, session);
    expect(requests).toBe(5);
    expect(view.budget.spent.inputTokens).toBeGreaterThan(4 * reserved);
    expect(view.budget.spent.inputTokens + view.budget.spent.outputTokens).toBeLessThan(5 * reserved);
    await expectSound(stage, session);
  },
);

test.each<[string, Fault]>([
  ['of one id', { fault: 'duplicate-ids', toolCalls: [look('a'), look('b')] }],
  ['without an id', { fault: 'missing-id', toolCalls: [look('a'), look('b')] }],
])(
  'duplicate tool-call ids from the provider: calls %s get ids of our own, and each its own arguments',
  async (_, fault) => {
    const { stage, session } = await ask(({ assistantCount, toolResults }) =>
      assistantCount === 0 ? fault : { text: toolResults.map(({ text }) => text).join() },
    );
    expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('a,b');
    expect((await session.calls()).items).toMatchObject([
      { id: 'call_1_0', args: { id: 'a' } },
      { id: 'call_1_1', args: { id: 'b' } },
    ]);
    await expectSound(stage, session);
  },
);

test.each(['toString', 'constructor', '__proto__', 'no_such_tool'])(
  'a call of %s, which is no tool, goes back to the model as an error',
  async (name) => {
    const { stage, session } = await ask(({ assistantCount, toolResults }) =>
      assistantCount === 0
        ? { toolCalls: [{ name, args: { id: 'a' } }, look('b')] }
        : { text: toolResults.map(({ text }) => text).join('|') },
    );
    const { lastText } = await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
    expect(lastText).toBe(`There is no tool ${name}. Tools: look.|b`);
    await expectSound(stage, session);
  },
);

test('arguments that the schema refuses go back to the model with the field', async () => {
  const { stage, session } = await ask(({ assistantCount, toolResults }) =>
    assistantCount === 0
      ? {
          toolCalls: [
            { name: 'look', args: { id: 7 } },
            { name: 'look', args: {} },
            { name: 'look', args: [] },
          ],
        }
      : { text: toolResults.map(({ text }) => text).join('|') },
  );
  const { lastText } = await untilPhase(session, 'idle', 'waiting');
  const [seven, none, list] = lastText.split('|');
  expect(seven).toMatch(/^Invalid arguments for look: id: /);
  expect(none).toMatch(/^Invalid arguments for look: id: /);
  expect(list).toMatch(/^Invalid arguments for look: input: /);
  expect((await session.budget()).spent.toolCalls).toBe(0);
  await expectSound(stage, session);
});

test('a reply with more calls than a session can hold is not a reply', async () => {
  const { stage, session } = await ask(({ repeat }) =>
    repeat === 0 ? { toolCalls: Array.from({ length: 129 }, (_, i) => look(`${i}`)) } : { text: 'fine' },
  );
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  expect(view.notices).toMatchObject([
    { kind: 'invalid_response', message: 'the reply has over 128 tool calls, the limit' },
  ]);
  await expectSound(stage, session);
});

test('a reply of more than 1 MB is not a reply', async () => {
  const { stage, session } = await ask(({ repeat }) =>
    repeat === 0 ? { text: 'x'.repeat(1_100_000) } : { text: 'fine' },
  );
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  expect(view.notices[0]).toMatchObject({
    kind: 'invalid_response',
    message: expect.stringMatching(/^the reply has 11\d+ bytes, the limit is 1000000$/),
  });
  await expectSound(stage, session);
});

test('arguments that are not JSON go back to the model as an error, without another request', async () => {
  let sent: unknown;
  const { stage, session } = await ask(({ assistantCount, toolResults, messages }) => {
    if (assistantCount === 0) return { fault: 'invalid-arguments', name: 'look' };
    sent = messages.flatMap(({ toolCalls }) => toolCalls.map(({ args }) => args));
    return { text: toolResults[0]?.text ?? '' };
  });
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('Invalid arguments for look: they are not JSON.');
  // Providers refuse arguments that are no object, and would refuse every request from then on.
  expect(sent).toEqual([{}]);
  expect(stage.model.requests).toHaveLength(2);
  expect((await session.calls()).items).toMatchObject([{ status: { kind: 'skipped' }, dispatches: [] }]);
  await expectSound(stage, session);
});

test('a refusal is not asked again: it waits as rejected, is charged, and goes on after resume', async () => {
  const { stage, session } = await ask(passes(1, { fault: 'refusal', text: 'I cannot' }));
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_rejected', message: expect.stringContaining('refused') });
  expect(stage.model.requests).toHaveLength(1);
  const reserved = await reservedForFirstCall(stage, session);
  expect((await session.budget()).spent.inputTokens).toBe(reserved);
  await session.resume();
  expect((await answered(stage, session)).requests).toBe(2);
});

test.each<[string, Fault]>([
  [
    'a page for people',
    { fault: 'status', status: 200, body: '<html>Sign in</html>', headers: { 'content-type': 'text/html' } },
  ],
  ['an empty body', { fault: 'status', status: 200, body: '' }],
  ['JSON of something else', { fault: 'status', status: 200, body: { hello: 'world' } }],
])('%s in place of a stream is not a reply: asked again, and charged', async (_, fault) => {
  const { stage, session } = await ask(passes(1, fault));
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  expect(view.notices).toMatchObject([{ kind: 'invalid_response' }]);
  expect(view.budget.spent.inputTokens).toBeGreaterThan(await reservedForFirstCall(stage, session));
});

test.each([
  { inputTokens: -1_000, outputTokens: 5 },
  { inputTokens: 5, outputTokens: -1_000 },
  { inputTokens: 1.5, outputTokens: 0.25 },
  // A client's, of a usage that has no counts.
  { inputTokens: 0, outputTokens: 0 },
])('usage that no provider can mean ($inputTokens, $outputTokens) is charged as reserved', async (usage) => {
  const { stage, session } = await ask(() => ({ text: 'fine', usage }));
  const { view } = await answered(stage, session);
  const { inputTokens, outputTokens } = view.budget.spent;
  expect(inputTokens + outputTokens).toBe(await reservedForFirstCall(stage, session));
  await expectSound(stage, session);
});

test('a budget for thoughts, which the client of Anthropic adds to a reply, is reserved, and not asked for twice', async () => {
  const asked: unknown[] = [];
  const { stage, session } = await ask(
    ({ body }) => {
      asked.push(body['max_tokens']);
      return { text: 'fine', usage: 'omit' };
    },
    { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 10_000 } } } },
  );
  const { view } = await answered(stage, session);
  expect(asked).toEqual([100]);
  expect(view.budget.spent.inputTokens).toBeGreaterThan(10_100);
  await expectSound(stage, session);
});

test('a reply that was cut at the limit of its tokens is kept, and says so', async () => {
  const { stage, session } = await ask(() => ({ text: 'fine', finishReason: 'length' }));
  const { view } = await answered(stage, session);
  expect(view.notices).toMatchObject([
    { kind: 'truncated', message: expect.stringContaining('maxOutputTokens') },
  ]);
  await expectSound(stage, session);
});
