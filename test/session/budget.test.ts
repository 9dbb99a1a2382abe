import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type AgentOptions,
  type BudgetLimits,
  type DefinedAgent,
  defineAgent,
  defineTool,
  type Session,
} from '../../src/index.ts';
import { commandsFor } from '../../src/session/commands.ts';
import type { ReplyUsage, Script } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const PRICE = { inputPerMillion: 3, outputPerMillion: 15 };

/** A session of an agent that calls its tools as the script says, under caps. */
async function spend(
  script: Script,
  options: { budget?: BudgetLimits; mode?: 'chat' | 'task'; toolMs?: number; maxOutputTokens?: number } = {},
): Promise<{ stage: Stage; session: Session; ran: string[]; restart: () => Promise<void> }> {
  const stage = await openStage(script);
  const ran: string[] = [];
  const step = defineTool({
    inputSchema: z.object({ n: z.string() }),
    effect: 'idempotent',
    execute: async ({ n }) => {
      if (options.toolMs !== undefined) await new Promise((resolve) => setTimeout(resolve, options.toolMs));
      return ran.push(n);
    },
  });
  const agent = defineAgent({
    name: 'spender',
    model: { model: stage.provider('m'), price: PRICE },
    instructions: 'Work.',
    maxOutputTokens: options.maxOutputTokens ?? 200,
    tools: { step },
  });
  let worker = await stage.startWorker([agent]);
  const session = await stage.sessions.start('spender', {
    id: stage.id(),
    message: 'go',
    ...(options.budget === undefined ? {} : { budget: options.budget }),
    ...(options.mode === undefined ? {} : { mode: options.mode }),
  });
  const restart = async (): Promise<void> => {
    await worker.stop();
    worker = await stage.startWorker([agent]);
  };
  return { stage, session, ran, restart };
}

const call = (n: number): { name: string; args: { n: string } } => ({ name: 'step', args: { n: `${n}` } });

/** Three turns with a call each, then an answer; with known usage. */
const USAGE: ReplyUsage[] = [
  { inputTokens: 101, outputTokens: 11 },
  { inputTokens: 203, outputTokens: 17, cachedInputTokens: 100 },
  { inputTokens: 307, outputTokens: 19, reasoningTokens: 7 },
  { inputTokens: 401, outputTokens: 23 },
];
const threeTurns: Script = ({ assistantCount, tools }) => {
  const usage = USAGE[assistantCount] ?? { inputTokens: 1, outputTokens: 1 };
  if (tools.length === 0) return { text: 'summary', usage };
  return assistantCount < 3 ? { toolCalls: [call(assistantCount)], usage } : { text: 'done', usage };
};

test('what is spent is exactly what the endpoint counted, at the price, also over a restart of the worker', async () => {
  const { stage, session, restart } = await spend((request) => threeTurns(request));
  await untilPhase(session, 'idle');
  await restart();
  await session.send('again');
  await until(session, ({ turn, phase }) => turn === 5 && phase === 'idle');
  const input = 101 + 203 + 307 + 401 + 1;
  const output = 11 + 17 + 19 + 23 + 1;
  const { spent, reserved } = await session.budget();
  expect(spent).toMatchObject({ inputTokens: input, outputTokens: output, turns: 5, toolCalls: 3 });
  expect(spent.usd).toBeCloseTo((input * 3 + output * 15) / 1e6, 12);
  expect(reserved).toEqual({ usd: 0, tokens: 0 });
  const { checkpoints } = await expectSound(stage, session);
  // Each call was reserved for before it was made, and the reserve covered what it came to.
  const reserves = checkpoints.filter(({ budget }) => budget.reserved.tokens > 0);
  expect(reserves.length).toBeGreaterThanOrEqual(5);
});

test.each<[string, BudgetLimits, BudgetLimits, string[]]>([
  ['turns', { turns: 2 }, { turns: 4 }, ['0', '1']],
  ['toolCalls', { toolCalls: 1 }, { toolCalls: 3 }, ['0']],
  ['tokens', { tokens: 1_100 }, { tokens: 20_000 }, []],
  ['usd', { usd: 0.0045 }, { usd: 1 }, []],
])(
  'the cap on %s: it waits visibly before the cap is exceeded, and goes on when it is raised',
  async (name, budget, raised, atLeast) => {
    const { stage, session, ran } = await spend(threeTurns, { budget });
    const { wait, budget: view } = await untilPhase(session, 'waiting', 'idle');
    expect(wait).toMatchObject({
      reason: 'budget',
      message: expect.stringMatching(
        new RegExp(`^${name}: .* would be spent or reserved, the cap is ${Object.values(budget)[0]}`),
      ),
      next: { action: 'budget', sessionId: session.id, cap: name, atLeast: expect.any(Number) },
    });
    expect(ran.slice(0, atLeast.length)).toEqual(atLeast);
    const asked = stage.model.requests.length;
    // Temporal's own UI says the same.
    const handle = stage.client.workflow.getHandle(session.id);
    const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
    const [raise = '', finish = ''] = wait === null ? [] : commandsFor(wait.next);
    expect(currentDetails).toContain(`Next: \`${raise}\` or \`${finish}\``);
    expect(raise).toMatch(/^perdure budget \S+ --[a-z-]+ [\d.]+$/);
    // Resuming without more budget only waits again.
    await session.resume();
    await until(session, ({ wait: again }) => again !== null && again.since !== wait?.since);
    expect(stage.model.requests).toHaveLength(asked);
    expect((await session.budget()).spent).toEqual(view.spent);

    await session.setBudget({ limits: raised, by: 'ada' });
    const done = await untilPhase(session, 'idle');
    expect(done).toMatchObject({ lastText: 'done', turn: 4, wait: null });
    expect(ran).toEqual(['0', '1', '2']);
    expect(done.notices).toMatchObject([{ kind: 'budget', message: expect.stringMatching(/^ada set /) }]);
    await expectSound(stage, session);
  },
);

test('the cap on active time: a session stops at the first boundary after it is spent', async () => {
  const { stage, session, ran } = await spend(threeTurns, { budget: { activeMs: 400 }, toolMs: 500 });
  const { wait, budget } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'budget',
    next: { action: 'budget', sessionId: session.id, cap: 'activeMs', atLeast: expect.any(Number) },
    message: expect.stringMatching(
      /^activeMs: \d+ ms of active time would be spent or reserved, the cap is 400$/,
    ),
  });
  expect(budget.spent.activeMs).toBeGreaterThanOrEqual(400);
  expect(ran).toEqual(['0']);
  // Waiting for people is free.
  const { spent } = await session.budget();
  await session.send('are you there?');
  await session.setBudget({ limits: { activeMs: 60_000 } });
  expect((await untilPhase(session, 'idle')).budget.spent.activeMs).toBeGreaterThan(spent.activeMs);
  await expectSound(stage, session);
});

test.each<[string, BudgetLimits]>([
  ['turns', { turns: 1 }],
  ['toolCalls', { toolCalls: 1 }],
  ['toolCalls from the start', { toolCalls: 0 }],
  ['usd', { usd: 0.0045 }],
  ['nothing at all', { usd: 0, tokens: 0, turns: 0 }],
])(
  'finish: a session at its cap on %s closes with a summary, and no further tool runs',
  async (_, budget) => {
    const { stage, session, ran } = await spend(
      (request) =>
        request.body['tool_choice'] === 'none'
          ? { text: 'summary', usage: { inputTokens: 50, outputTokens: 5 } }
          : threeTurns(request),
      { budget },
    );
    await untilPhase(session, 'waiting');
    const before = ran.length;
    const asked = stage.model.requests.length;
    await session.setBudget({ finish: true, by: 'ada' });
    expect(await session.result()).toMatchObject({ status: 'completed', text: 'summary' });
    expect(ran).toHaveLength(before);
    expect(stage.model.requests).toHaveLength(asked + 1);
    const last = stage.model.requests.at(-1)?.request;
    expect(last?.messages[0]?.text).toMatch(/budget of this session is used up/i);
    expect((await session.state()).notices.map(({ kind }) => kind)).toContain('budget');
    await expectSound(stage, session);
  },
);

test.each<[string, { text?: string }, RegExp]>([
  ['nothing but calls', {}, /^\[The budget is used up\. Instead of a summary, the model asked for step,/],
  ['calls and a text', { text: 'so far so good' }, /^so far so good$/],
])('finish: a model that pays no heed and answers with %s runs nothing more', async (_, said, text) => {
  // As endpoints do that know no `tool_choice`.
  const { stage, session, ran } = await spend(
    ({ assistantCount }) => ({ ...said, toolCalls: [call(assistantCount)] }),
    { budget: { turns: 2 } },
  );
  await untilPhase(session, 'waiting');
  await session.setBudget({ finish: true, by: 'ada' });
  expect(await session.result()).toMatchObject({ status: 'completed', text: expect.stringMatching(text) });
  expect(ran).toEqual(['0', '1']);
  expect(stage.model.requests).toHaveLength(3);
  expect((await session.budget()).limits.turns).toBe(3);
  await expectSound(stage, session);
});

test('finish: a message that comes while the summary is written is refused, and pays for no other', async () => {
  let write = (): void => {};
  let begin = (): void => {};
  const written = new Promise<void>((resolve) => {
    write = resolve;
  });
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const { stage, session } = await spend(
    async (request) => {
      if (request.body['tool_choice'] !== 'none') return threeTurns(request);
      begin();
      await written;
      return { text: 'summary' };
    },
    { budget: { turns: 1 } },
  );
  await untilPhase(session, 'waiting');
  const asked = stage.model.requests.length;
  await session.setBudget({ finish: true, by: 'ada' });
  await begun;
  expect(await rejection(session.send('And then?'))).toMatchObject({
    code: 'SESSION_CLOSED',
    message: expect.stringContaining('finishing with a summary'),
  });
  write();
  expect(await session.result()).toMatchObject({ status: 'completed', text: 'summary' });
  expect(stage.model.requests).toHaveLength(asked + 1);
  await expectSound(stage, session);
});

test('caps that are given to the reading of the budget are refused, with the method that sets them', async () => {
  const { stage, session } = await spend(threeTurns);
  await untilPhase(session, 'idle');
  // As a caller without a compiler has it.
  const caller = session as unknown as { budget: (caps: unknown) => Promise<unknown> };
  for (const caps of [{ turns: 1 }, { limits: { turns: 1 } }]) {
    expect(await rejection(caller.budget(caps))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('setBudget({ limits'),
      details: { field: 'budget' },
    });
  }
  expect((await session.budget()).limits).toEqual({});
  await expectSound(stage, session);
});

test('usage that the endpoint does not tell is charged as reserved', async () => {
  const { stage, session } = await spend(() => ({ text: 'hm', usage: 'omit' }));
  const { budget } = await untilPhase(session, 'idle');
  const { checkpoints } = await expectSound(stage, session);
  const reserved = checkpoints.find((state) => state.budget.reserved.tokens > 0)?.budget.reserved;
  expect(budget.spent.inputTokens + budget.spent.outputTokens).toBe(reserved?.tokens);
  expect(budget.spent.usd).toBe((reserved?.nanoUsd ?? 0) / 1e9);
  expect(reserved?.tokens).toBeGreaterThan(200);
});

test('a model call that was cancelled in flight is charged as reserved', async () => {
  const { stage, session } = await spend(({ lastUserText }) =>
    lastUserText === 'go'
      ? { fault: 'hang', afterChunks: 2 }
      : { text: 'second', usage: { inputTokens: 9, outputTokens: 1 } },
  );
  await stage.model.waitFor((requests) => requests.length === 1);
  await session.send({ text: 'never mind', mode: 'interrupt' });
  const { budget, lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('second');
  const { checkpoints } = await expectSound(stage, session);
  const reserved = checkpoints.find((state) => state.budget.reserved.tokens > 0)?.budget.reserved.tokens ?? 0;
  expect(budget.spent).toMatchObject({ inputTokens: reserved + 9, outputTokens: 1, turns: 1 });
});

test('the reserve covers what the endpoint counts, in every script and tongue', async () => {
  const texts = [
    'plain words',
    '漢字かな交じり文'.repeat(50),
    '🦀🚀'.repeat(100),
    '\n\t"\\'.repeat(200),
    'a'.repeat(5_000),
  ];
  // As many as the longest reply has.
  const maxOutputTokens = 1_250;
  const { stage, session } = await spend(
    ({ assistantCount }) => ({ text: texts[assistantCount % texts.length] ?? '' }),
    { maxOutputTokens },
  );
  for (const [i, text] of texts.entries()) {
    await session.send(text);
    await until(session, ({ queued, phase, turn }) => queued === 0 && phase === 'idle' && turn > i);
  }
  const { checkpoints } = await expectSound(stage, session);
  let reserved = 0;
  let spent = 0;
  for (const { budget } of checkpoints) {
    const now = budget.spent.inputTokens;
    if (now > spent) expect(now - spent).toBeLessThanOrEqual(reserved - maxOutputTokens);
    spent = now;
    reserved = budget.reserved.tokens;
  }
  expect(spent).toBeGreaterThan(0);
});

test('a cap on dollars for a model without a price is refused at the start, when the definition is at hand', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  const options = { name: 'free', model: stage.provider('m'), instructions: 'Work.' };
  const start = { id: stage.id(), message: 'go', budget: { usd: 1 } };
  expect(await rejection(stage.sessions.start(defineAgent(options), start))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message:
      'budget.usd: agent free has a model without a price, so there can be no usd cap. Set its price in defineAgent, or cap tokens',
  });
  const priced = defineAgent({ ...options, model: { model: stage.provider('m'), price: PRICE } });
  expect((await stage.sessions.start(priced, start)).id).toBe(start.id);
});

test('a cap on dollars for a model without a price is not kept in silence: the session waits for the price', async () => {
  const stage = await openStage(() => ({ text: 'ok', usage: { inputTokens: 10, outputTokens: 1 } }));
  const agentOf = (model: AgentOptions['model']): DefinedAgent =>
    defineAgent({ name: 'free', model, instructions: 'Work.', maxOutputTokens: 50 });
  const first = await stage.startWorker([agentOf(stage.provider('m'))]);
  const start = { id: stage.id(), message: 'go', budget: { usd: 1 } };
  const session = await stage.sessions.start('free', start);
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'budget',
    message:
      'usd: model scripted.chat:m has no price, so there can be no usd cap. Set its price in the definition of free',
    next: { action: 'resume', sessionId: session.id },
  });
  expect(stage.model.requests).toHaveLength(0);
  const uncapped = await stage.sessions.start('free', { id: stage.id(), message: 'go' });
  await untilPhase(uncapped, 'idle');
  expect(await rejection(uncapped.setBudget({ limits: { usd: 1 } }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/^limits.usd: model scripted.chat:m has no price/),
  });

  await first.stop();
  await stage.startWorker([agentOf({ model: stage.provider('m'), price: PRICE })]);
  await session.resume();
  expect((await untilPhase(session, 'idle')).budget.spent.usd).toBeCloseTo((10 * 3 + 15) / 1e6, 12);
  for (const each of [session, uncapped]) await expectSound(stage, each);
});
