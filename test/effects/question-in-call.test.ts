/** Questions that a tool asks a person in the middle of a call. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type DefinedTool,
  defineAgent,
  defineTool,
  QuestionError,
  type Session,
  type ToolOptions,
} from '../../src/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';

const flight = z.object({ flight: z.string() });
type Booking = ToolOptions<z.infer<typeof flight>, unknown>;

/** An agent whose model calls `book` once, and then says what it has got. */
async function desk(
  execute: Booking['execute'],
  more: Partial<Booking> = {},
): Promise<{ stage: Stage; session: Session; tool: DefinedTool }> {
  const stage = await openStage(({ toolResults }) => {
    const result = toolResults.at(-1);
    if (result !== undefined) return { text: `got: ${result.text}` };
    return { toolCalls: [{ name: 'book', args: { flight: 'X1' } }] };
  });
  const tool = defineTool({ description: 'Book', inputSchema: flight, ...more, execute }) as DefinedTool;
  await stage.startWorker([agentOf(stage, tool)]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'book X1' });
  return { stage, session, tool };
}

function agentOf(stage: Stage, book: DefinedTool): ReturnType<typeof defineAgent> {
  return defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools: { book } });
}

const SEAT = { type: 'object', properties: { seat: { type: 'string' } } };

test.each(['mutate', 'idempotent', 'read'] as const)(
  'a tool with effect %s asks twice, and goes on with each answer',
  async (effect) => {
    const { stage, session } = await desk(
      ({ flight: no }, { answers }) => {
        const [seat, meal] = answers;
        if (seat === undefined) throw new QuestionError('Which seat?', { answer: SEAT, state: { hold: 7 } });
        if (meal === undefined) throw new QuestionError('Which meal?');
        return [no, seat.state, seat.output, meal.output];
      },
      { effect, maxAttempts: 1 },
    );
    const { pending } = await untilPhase(session, 'approval');
    expect(pending).toMatchObject([{ question: { text: 'Which seat?', answer: SEAT } }]);
    await decide(session, 'call_1_0', { decision: 'respond', output: { seat: 'A' } }, { by: 'ada' });
    await expect.poll(async () => (await session.state()).pending[0]?.question?.text).toBe('Which meal?');
    await decide(session, 'call_1_0', { decision: 'respond', output: 'none' }, { by: 'bob' });
    const view = await untilPhase(session, 'idle');
    expect(view.lastText).toBe('got: ["X1",{"hold":7},{"seat":"A"},"none"]');
    const { items } = await session.calls();
    expect(items).toMatchObject([
      {
        status: { kind: 'completed' },
        answers: [
          { text: 'Which seat?', output: { seat: 'A' }, by: 'ada' },
          { text: 'Which meal?', output: 'none', by: 'bob' },
        ],
        dispatches: [
          { outcome: 'absent', asked: true },
          { outcome: 'absent', asked: true },
          { outcome: 'returned' },
        ],
      },
    ]);
    await expectSound(stage, session);
  },
);

test('an answer counts only for its question, and only an answer or a rejection is taken', async () => {
  const { session } = await desk((_, { answers }) => {
    if (answers.length < 2) throw new QuestionError('Again?');
    return 'booked';
  });
  const { pending } = await untilPhase(session, 'approval');
  const [first] = pending;
  if (first === undefined) throw new Error('no question');
  for (const decision of [{ decision: 'approve' }, { decision: 'edit', args: { flight: 'X2' } }] as const) {
    expect(await rejection(session.decide(first, decision))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'decision: call call_1_0 asks a question. Answer it with respond, or reject it',
    });
  }
  const large = { decision: 'respond', output: 'x'.repeat(40_000) } as const;
  expect(await rejection(session.decide(first, large))).toMatchObject({ code: 'TOO_LARGE' });
  await session.decide(first, { decision: 'respond', output: 1 });
  await expect.poll(async () => (await session.state()).pending[0]?.dispatchNo).toBe(2);
  // Somebody who has seen the first question does not answer the second one, though it has the same words.
  expect(await rejection(session.decide(first, { decision: 'respond', output: 2 }))).toMatchObject({
    code: 'DIGEST_MISMATCH',
  });
  await decide(session, 'call_1_0', { decision: 'reject', reason: 'not today' });
  const view = await untilPhase(session, 'idle');
  expect(view.lastText).toBe(
    'got: A person did not answer the question "Again?", and so ended this call of book: not today',
  );
});

test('it waits without a worker, and the answer stays with the call when a later dispatch is lost', async () => {
  const seen: unknown[] = [];
  const execute: Booking['execute'] = (_, { answers, attempt }) => {
    seen.push([attempt, answers.map(({ output }) => output)]);
    if (answers.length === 0) throw new QuestionError('Sure?');
    if (attempt === 2) throw new Error('the connection was lost');
    return 'booked';
  };
  const stage = await openStage(({ toolResults }) =>
    toolResults.length > 0 ? { text: 'done' } : { toolCalls: [{ name: 'book', args: { flight: 'X1' } }] },
  );
  const tool = defineTool({
    description: 'Book',
    inputSchema: flight,
    settle: 10,
    execute,
    verify: () => ({ outcome: 'absent' }),
  }) as DefinedTool;
  const first = await stage.startWorker([agentOf(stage, tool)]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'book X1' });
  await untilPhase(session, 'approval');
  await first.stop();
  await stage.startWorker([agentOf(stage, tool)]);
  await decide(session, 'call_1_0', { decision: 'respond', output: 'yes' });
  await untilPhase(session, 'idle');
  expect(seen).toEqual([
    [1, []],
    [2, ['yes']],
    [3, ['yes']],
  ]);
  await expectSound(stage, session);
});

test('a question that nobody answers in time ends the call, and a tool that always asks ends it, too', async () => {
  const ask: Booking['execute'] = () => {
    throw new QuestionError('Sure?');
  };
  const late = await desk(ask, {
    needsApproval: true,
    approval: { expires: '4s', onExpiry: 'approve' },
  });
  await untilPhase(late.session, 'approval');
  await decide(late.session, 'call_1_0', { decision: 'approve' });
  expect((await untilPhase(late.session, 'idle')).lastText).toContain(
    'Nobody answered the question "Sure?" of',
  );
  const { session } = await desk(ask);
  for (let number = 1; number <= 10; number++) {
    await expect.poll(async () => (await session.state()).pending[0]?.dispatchNo).toBe(number);
    await decide(session, 'call_1_0', { decision: 'respond', output: number });
  }
  expect((await untilPhase(session, 'idle')).lastText).toContain('and has asked 10 in this call: Sure?');
});

test('a call of scope global cannot ask, and its model is told the question', async () => {
  const { session } = await desk(
    () => {
      throw new QuestionError('Sure?');
    },
    { idempotency: { scope: 'global' } },
  );
  expect((await untilPhase(session, 'idle')).lastText).toContain(
    'it asks a question, which a call of scope global cannot do: Sure?',
  );
});
