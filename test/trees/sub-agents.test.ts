import { expect, test } from 'vitest';
import * as z from 'zod';
import { agentTool, defineTool } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { agent, ask, childOf, hold, once, scripted } from '../support/tree.ts';

test('an agent answers another one from a session of its own, with the context of the tree', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'research', args: { task: 'Find whales.' } }], 'Whales.'),
      researcher: ({ lastUserText }) => ({ text: `found: ${lastUserText}` }),
    }),
  );
  const research = agentTool(agent(stage, 'researcher'));
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage, { context: { tenant: 'acme' } });
  await untilPhase(session, 'idle');

  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.calls).toMatchObject([
    { status: { kind: 'completed' }, result: { content: 'found: Find whales.', isError: false } },
  ]);
  const [child] = state.children ?? [];
  expect(child).toMatchObject({ agent: 'researcher', end: { status: 'completed', usage: { turns: 1 } } });
  const own = stage.sessions.get(child?.sessionId ?? '');
  expect(own.id.startsWith(`${session.id}/research.`)).toBe(true);
  expect(await own.result()).toMatchObject({ status: 'completed', text: 'found: Find whales.' });
  expect(await own.state()).toMatchObject({ context: { tenant: 'acme' }, mode: 'task' });
});

test('a sub-agent asks no worker what it is when the worker that starts it has the agent', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'research', args: { task: 'Find whales.' } }]),
      researcher: () => ({ text: 'ok' }),
    }),
  );
  const research = agentTool(agent(stage, 'researcher'));
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  const [child] = (await session.snapshot()).children ?? [];
  const own = stage.sessions.get(child?.sessionId ?? '');
  await expectFoldEqualsLive(stage.client, own);
  const { events } = await stage.client.workflow.getHandle(own.id).fetchHistory();
  const start = events?.[0]?.workflowExecutionStartedEventAttributes;
  const types = (events ?? []).flatMap(
    ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name ?? [],
  );
  expect(types).toEqual(['perdure.model', 'perdure.report']);
  // Its status stands there from its start, and changes once.
  const { PerdureAgent, PerdureStatus } = start?.searchAttributes?.indexedFields ?? {};
  expect([PerdureAgent, PerdureStatus].map((payload) => String(payload?.data))).toEqual([
    '"researcher"',
    '"active"',
  ]);
  expect(
    (events ?? []).filter(({ upsertWorkflowSearchAttributesEventAttributes: upsert }) => upsert),
  ).toHaveLength(1);
});

test('agents of one reply work side by side, and equal calls are one session', async () => {
  let working = 0;
  let most = 0;
  let asked = 0;
  const stage = await openStage(
    scripted({
      lead: once([
        { name: 'research', args: { task: 'Whales.' } },
        { name: 'research', args: { task: 'Whales.' } },
        { name: 'research', args: { task: 'Sharks.' } },
      ]),
      researcher: async ({ lastUserText, assistantCount }) => {
        if (assistantCount === 0) asked += 1;
        working += 1;
        most = Math.max(most, working);
        await expect.poll(() => most, { interval: 5 }).toBe(2);
        working -= 1;
        return { text: lastUserText };
      },
    }),
  );
  const research = agentTool(agent(stage, 'researcher'));
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');

  const { children, calls } = await expectFoldEqualsLive(stage.client, session);
  expect(children).toHaveLength(2);
  expect(asked).toBe(2);
  expect(calls.map(({ status }) => status.kind)).toEqual(['completed', 'completed', 'completed']);
  expect(calls[1]?.replayOf).toBe(calls[0]?.id);
});

test('an agent with an input of its own and an output schema gives a checked value', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'count', args: { what: 'whales' } }]),
      counter: ({ lastUserText }) => ({ text: lastUserText === 'Count the whales.' ? '{"n":7}' : '{"n":0}' }),
    }),
  );
  const counter = agent(stage, 'counter', {}, { output: z.object({ n: z.number() }) });
  const count = agentTool(counter, {
    input: z.object({ what: z.string() }),
    message: ({ what }) => `Count the ${what}.`,
  });
  await stage.startWorker([agent(stage, 'lead', { count })]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]?.result).toEqual({ content: { n: 7 }, isError: false });
});

test('an agent that is cancelled, meets its cap, or lacks its context is an error result with the reason', async () => {
  const stage = await openStage(
    scripted({
      lead: once([
        { name: 'stopped', args: { task: 'Wait.' } },
        { name: 'poor', args: { task: 'Spend.' } },
        { name: 'picky', args: { task: 'Look.' } },
      ]),
      stopped: once([{ name: 'hold', args: {} }]),
      poor: once([{ name: 'look', args: {} }]),
      picky: () => ({ text: 'never' }),
    }),
  );
  const look = defineTool({ inputSchema: z.object({}), effect: 'read', execute: () => 1 });
  await stage.startWorker([
    agent(stage, 'lead', {
      stopped: agentTool(agent(stage, 'stopped', { hold })),
      poor: agentTool(agent(stage, 'poor', { look }, { budget: { turns: 1 } })),
      picky: agentTool(agent(stage, 'picky', {}, { context: z.object({ user: z.string() }) })),
    }),
  ]);
  const session = await ask(stage);
  await expect.poll(async () => (await session.snapshot()).children?.length).toBe(3);
  const { children = [] } = await session.snapshot();
  const stopped = stage.sessions.get(children[0]?.sessionId ?? '');
  await untilPhase(stopped, 'approval');
  await stopped.cancel({ by: 'ann', reason: 'not needed' });
  await untilPhase(session, 'idle');

  const { calls } = await expectFoldEqualsLive(stage.client, session);
  expect(calls.map(({ result }) => [result?.isError, result?.content])).toEqual([
    [true, 'stopped ended without an answer: not needed'],
    [true, expect.stringContaining('poor ended without an answer: budget: ')],
    [true, expect.stringContaining('picky ended without an answer: context_invalid: ')],
  ]);
});

test('an agent whose session is terminated is an error result', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'research', args: { task: 'Whales.' } }]),
      researcher: once([{ name: 'hold', args: {} }]),
    }),
  );
  const research = agentTool(agent(stage, 'researcher', { hold }));
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage);
  await expect.poll(async () => (await session.snapshot()).children?.length).toBe(1);
  const { children = [] } = await session.snapshot();
  const child = stage.client.workflow.getHandle(children[0]?.sessionId ?? '');
  await untilPhase(stage.sessions.get(child.workflowId), 'approval');
  await child.terminate('by hand');
  // The session looks by itself after a minute, and at once when somebody resumes it.
  await session.resume();
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]).toMatchObject({
    status: { kind: 'failed', certain: false },
    result: { content: 'researcher ended without an answer: its session was terminated from outside' },
  });
});

test('an agent cannot be its own sub-agent, and a loop over names is refused when it runs', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'other', args: { task: 'Go.' } }]),
      other: once([{ name: 'back', args: { task: 'Go back.' } }], 'It refused.'),
    }),
  );
  const back = agentTool('lead', { description: 'The lead.' });
  const other = agent(stage, 'other', { back });
  expect(() => agent(stage, 'lead', { other: agentTool(other) })).toThrow(
    'tools.other > back leads back to lead',
  );
  const byName = agentTool('other', { description: 'Another.' });
  await stage.startWorker([agent(stage, 'lead', { other: byName }), other]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  const { children = [] } = await session.snapshot();
  const [refused] = (await stage.sessions.get(children[0]?.sessionId ?? '').calls()).items;
  expect(refused).toMatchObject({
    status: { kind: 'skipped' },
    result: {
      isError: true,
      content: expect.stringContaining('lead is already at work above: lead > other'),
    },
  });
});

test('the definition of an agent as a tool is checked', () => {
  expect(() => agentTool('researcher')).toThrow('description is missing');
  expect(() => agentTool('researcher', { description: 'x', taskqueue: 'q' } as object)).toThrow('taskqueue');
  expect(() => agentTool(undefined as never)).toThrow('write agentTool(agent)');
});

test('what a sub-agent asks for is approved by nobody who has asked for it above: by no author, and by no editor', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'manage', args: { task: 'Pay.' } }]),
      manager: once([{ name: 'clerk', args: { task: 'Pay.' } }]),
      clerk: once([{ name: 'pay', args: {} }]),
    }),
  );
  const pay = defineTool({
    inputSchema: z.object({}),
    needsApproval: true,
    approval: { byAnother: true },
    execute: () => 'paid',
  });
  const clerk = agentTool(agent(stage, 'clerk', { pay }), { needsApproval: true });
  const manage = agentTool(agent(stage, 'manager', { clerk }));
  await stage.startWorker([agent(stage, 'lead', { manage })]);
  const session = await ask(stage, { message: { text: 'Pay.', by: 'ada' } });
  const manager = await childOf(stage, session);
  await untilPhase(manager, 'approval');
  await decide(manager, 'call_1_0', { decision: 'edit', args: { task: 'Pay more.' } }, { by: 'ben' });

  const paying = await childOf(stage, manager);
  await untilPhase(paying, 'approval');
  for (const by of ['ada', 'ben']) {
    expect(
      await rejection(decide(paying, 'call_1_0', { decision: 'approve' }, { by, verified: true })),
    ).toMatchObject({ code: 'FORBIDDEN', details: { reason: 'author' } });
  }
  await decide(paying, 'call_1_0', { decision: 'approve' }, { by: 'eve', verified: true });
  await untilPhase(session, 'idle');
  expect((await paying.calls()).items).toMatchObject([{ result: { content: 'paid' } }]);
  await expectFoldEqualsLive(stage.client, paying);
  await expectFoldEqualsLive(stage.client, manager);
});
