/** What a tree of agents may be, where its parts run, and whose effects are undone. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { header } from '../../src/cli/render.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { childId } from '../../src/contract/tree.ts';
import { agentTool, defineTool, type Session, TemporalSaver } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { polled } from '../support/polled.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { agent, ask, hold, once, scripted } from '../support/tree.ts';

const approveAll = async (session: Session): Promise<void> => {
  await untilPhase(session, 'approval');
  for (const call of await session.approvals()) await session.decide(call, { decision: 'approve' });
};

test('an agent of another task queue is given by its name, and works there', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'research', args: { task: 'Whales.' } }]),
      researcher: ({ lastUserText }) => ({ text: `found: ${lastUserText}` }),
    }),
  );
  const taskQueue = `${stage.taskQueue}-research`;
  const research = agentTool('researcher', { description: 'Looks things up.', taskQueue });
  await stage.startWorker([agent(stage, 'lead', { research })]);
  await stage.startWorker([agent(stage, 'researcher')], { taskQueue });
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  const { calls, children = [] } = await expectFoldEqualsLive(stage.client, session);
  expect(calls[0]?.result).toEqual({ content: 'found: Whales.', isError: false });
  const child = await stage.client.workflow.getHandle(children[0]?.sessionId ?? '').describe();
  expect(child.taskQueue).toBe(taskQueue);
});

test('a sub-agent on a task queue without a worker is shown by its parent, and goes on once a worker is there', async () => {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'research', args: { task: 'Whales.' } }]),
      researcher: ({ lastUserText }) => ({ text: `found: ${lastUserText}` }),
    }),
  );
  const taskQueue = `${stage.taskQueue}-research`;
  const research = agentTool('researcher', { description: 'Looks things up.', taskQueue });
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage);
  const { pending } = await untilPhase(session, 'unknown_effect');
  const reason = `researcher waits for a worker: none polls task queue ${taskQueue}. Start one there, or cancel`;
  expect(pending).toMatchObject([
    {
      tool: 'research',
      status: { kind: 'awaiting', person: { kind: 'stuck', reason, taskQueue } },
      next: { action: 'resume', sessionId: session.id },
    },
  ]);
  expect((await session.state()).notices).toMatchObject([
    { kind: 'no_worker', message: `call_1_0 research: ${reason}` },
  ]);
  expect(header(await session.state(), new Terminal())).toContain(
    `waits for a worker on task queue ${taskQueue}`,
  );
  await polled(
    async () =>
      (await stage.sessions.inbox({ agent: 'lead', limit: 1_000 })).items.some(
        (item) => item.sessionId === session.id && item.kind === 'stuck' && item.reason === reason,
      ),
    () => 'it is not in the inbox',
  );
  await stage.startWorker([agent(stage, 'researcher')], { taskQueue });
  await untilPhase(session, 'idle');
  const { calls } = await expectFoldEqualsLive(stage.client, session);
  expect(calls[0]?.result).toEqual({ content: 'found: Whales.', isError: false });
});

test('a session has no more open sub-agents than its agent says, and a tree is no deeper', async () => {
  let working = 0;
  let most = 0;
  const stage = await openStage(
    scripted({
      lead: once(['One.', 'Two.', 'Three.'].map((task) => ({ name: 'middle', args: { task } }))),
      middle: async (request) => {
        if (request.assistantCount === 0) most = Math.max(most, ++working);
        else working -= 1;
        return once([{ name: 'leaf', args: { task: 'Go.' } }])(request);
      },
    }),
  );
  const leaf = agentTool(agent(stage, 'leaf'));
  const middle = agentTool(agent(stage, 'middle', { leaf }, { subAgents: { depth: 1 } }));
  await stage.startWorker([agent(stage, 'lead', { middle }, { subAgents: { open: 1 } })]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  const { calls, children = [] } = await expectFoldEqualsLive(stage.client, session);
  expect(calls.map(({ status }) => status.kind)).toEqual(['completed', 'completed', 'completed']);
  expect(most).toBe(1);
  const [refused] = (await stage.sessions.get(children[0]?.sessionId ?? '').calls()).items;
  expect(refused).toMatchObject({
    status: { kind: 'skipped' },
    result: { isError: true, content: expect.stringContaining('lead > middle is as deep as agents may go') },
  });
});

test('a call whose session would have a taken id, or one that is too long, is an error result', async () => {
  const stage = await openStage(
    scripted({ lead: once([{ name: 'research', args: { task: 'Whales.' } }]), researcher: once([]) }),
  );
  const research = agentTool(agent(stage, 'researcher'), { needsApproval: true });
  await stage.startWorker([agent(stage, 'lead', { research })]);
  const session = await ask(stage);
  await untilPhase(session, 'approval');
  const [call] = (await session.calls()).items;
  const id = childId(session.id, 'research', call?.idempotencyKey ?? '');
  await stage.sessions.start('researcher', { id });
  await approveAll(session);
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]?.result).toEqual({
    content: expect.stringContaining(
      `the id ${id} is taken by a workflow that is not the sub-agent of this call`,
    ),
    isError: true,
  });

  const long = await ask(stage, { id: stage.id().padEnd(195, 'x') });
  await approveAll(long);
  await untilPhase(long, 'idle');
  expect((await long.calls()).items[0]).toMatchObject({
    status: { kind: 'skipped' },
    result: { content: expect.stringContaining('would have more than 200 characters'), isError: true },
  });
});

test('the runs of a session roll over before and after its sub-agent works, and a fork takes nothing from it', async () => {
  const stage = await openStage(
    scripted({
      lead: ({ assistantCount }) =>
        assistantCount === 2
          ? { text: 'Done.' }
          : { toolCalls: [{ name: 'middle', args: { task: `${assistantCount}` } }] },
      middle: once([{ name: 'hold', args: {} }]),
    }),
  );
  const middle = agentTool(agent(stage, 'middle', { hold }));
  await stage.startWorker([agent(stage, 'lead', { middle }, { runTurns: 1 })]);
  const session = await ask(stage);
  const worker = async (): Promise<Session> => {
    await expect.poll(async () => (await session.tree()).open.length).toBe(1);
    return stage.sessions.get((await session.tree()).open[0]?.sessionId ?? '');
  };
  const first = await worker();
  await approveAll(first);
  await first.result();
  await until(session, ({ turn }) => turn === 2);
  const second = await worker();
  expect(second.id).not.toBe(first.id);

  const checkpointId = (await new TemporalSaver(stage.client).get(session.id))?.id ?? '';
  const from = { sessionId: session.id, checkpointId };
  const fork = await stage.sessions.fork(from, { id: stage.id('fork'), by: 'ann', reason: 'try' });
  expect((await untilPhase(fork, 'unknown_effect')).pending).toMatchObject([{ tool: 'middle' }]);

  await approveAll(second);
  expect((await untilPhase(session, 'idle')).lastText).toBe('Done.');
  expect((await session.tree()).nodes[0]?.usage?.turns).toBe(7);
  await untilPhase(fork, 'unknown_effect');
});

test('an undo lists the effects of sub-agents for a person, and says what to type', async () => {
  const booked: string[] = [];
  let asked = 0;
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'travel', args: { task: 'Book.' } }]),
      booker: () => (asked++ === 0 ? { toolCalls: [{ name: 'book', args: {} }] } : { text: 'Done.' }),
    }),
  );
  const book = defineTool({
    inputSchema: z.object({}),
    settle: 0,
    execute: () => `ref ${booked.push('flight')}`,
    compensate: { execute: () => String(booked.pop()), needsApproval: false },
  });
  const travel = agentTool(agent(stage, 'booker', { book }));
  await stage.startWorker([agent(stage, 'lead', { travel })]);
  const session = await ask(stage);
  await untilPhase(session, 'idle');
  const child = (await session.tree()).nodes[1]?.sessionId ?? '';
  const { steps } = await session.undoPlan();
  expect(steps).toMatchObject([
    {
      tool: 'travel',
      by: 'person',
      child,
      reason: expect.stringContaining(`perdure cancel ${child} --undo`),
    },
    {
      tool: 'book',
      by: 'person',
      session: child,
      reason: expect.stringContaining(`cancel ${child} --undo`),
      output: 'ref 1',
    },
  ]);
  await session.cancel({ undo: true });
  await session.result();
  expect(booked).toEqual(['flight']);

  const plan = await stage.sessions.get(child).undoPlan();
  const again = await stage.sessions.undo(child, { undo: { digest: plan.digest }, by: 'ann' });
  expect(await again.result()).toMatchObject({ status: 'cancelled' });
  expect(asked).toBe(2);
  expect(booked).toEqual([]);
});
