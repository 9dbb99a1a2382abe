import { expect, test } from 'vitest';
import { agentTool, type Session, TemporalSaver } from '../../src/index.ts';
import { readSnapshot, runCheckpoint, sessionCheckpoint } from '../../src/saver/records/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { agent, ask, hold, once, scripted } from '../support/tree.ts';

/** Delegates once, and then says what it hears. */
const echo: Script = ({ assistantCount, lastUserText }) =>
  assistantCount === 0
    ? { toolCalls: [{ name: 'research', args: { task: 'Whales.' } }] }
    : { text: `heard: ${lastUserText}` };

/** Starts a lead whose researcher works in the background until somebody approves its call. */
async function startHolding(
  lead: Script = echo,
  { options = {}, more = {}, start = {} }: { options?: object; more?: object; start?: object } = {},
): Promise<{ stage: Stage; session: Session; child: Session }> {
  const stage = await openStage(
    scripted({ lead, researcher: once([{ name: 'hold', args: {} }], 'Found whales.') }),
  );
  const research = agentTool(agent(stage, 'researcher', { hold }), { background: true, ...options });
  await stage.startWorker([agent(stage, 'lead', { research }, more)]);
  const session = await ask(stage, start);
  await expect.poll(async () => (await session.snapshot()).children?.length).toBe(1);
  const { children = [] } = await session.snapshot();
  const child = stage.sessions.get(children[0]?.sessionId ?? '');
  await untilPhase(child, 'approval', 'closed');
  return { stage, session, child };
}

async function approve(session: Session): Promise<void> {
  for (const call of (await session.state()).pending)
    await session.decide(call, { decision: 'approve' }, { by: 'ann' });
}

/** The reports of all runs. */
async function reports(session: Session): Promise<string[]> {
  const { items } = await session.transcript();
  return items.flatMap(({ report }) => (report === undefined ? [] : [report.status]));
}

test('an agent in the background lets its caller go on, and its end wakes the caller once', async () => {
  const { stage, session, child } = await startHolding();
  await untilPhase(session, 'idle');
  const before = await session.snapshot();
  expect(before.calls[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: { session: child.id, agent: 'researcher', status: 'running' } },
  });
  expect(before.transcript.at(-1)?.role).toBe('assistant');
  const records = async () => {
    const checkpoint =
      (await new TemporalSaver(stage.client).get(session.id)) ?? expect.fail('no checkpoint');
    const run = readSnapshot(runCheckpoint(checkpoint).payload);
    return { run, agents: sessionCheckpoint(checkpoint).activeAgents.map(({ agentId }) => agentId) };
  };
  expect(await records()).toMatchObject({
    run: {
      subagent_executions: [{ session_id: child.id, status: 'running' }],
      background_tools_pending: [before.calls[0]?.id],
    },
    agents: ['lead', 'researcher'],
  });

  await approve(child);
  await expect.poll(() => reports(session)).toEqual(['completed']);
  await untilPhase(session, 'idle');
  const state = await expectFoldEqualsLive(stage.client, session);
  const [told, said] = state.transcript.slice(-2);
  const { id } = state.calls[0] ?? { id: '' };
  expect(told?.report).toEqual({
    agent: 'researcher',
    session_id: child.id,
    call_id: id,
    status: 'completed',
  });
  expect(JSON.stringify(said?.blocks)).toContain('It has completed. Its answer:\\n\\nFound whales.');
  expect(state.messagesTaken).toBe(1);
  expect(state.children?.[0]?.end?.usage?.turns).toBe(2);
  expect(await records()).toMatchObject({
    run: { subagent_executions: [{ status: 'completed' }], background_tools_pending: [] },
    agents: ['lead'],
  });
  expect(state.inFlight).toEqual([]);
});

test('a session at rest can be edited while its agent works in the background', async () => {
  const { stage, session, child } = await startHolding();
  await untilPhase(session, 'idle');
  const { total } = await session.transcript();
  const message = { id: 'correction', created_at: '2026-11-24T12:00:00.000Z' };
  const blocks = [{ kind: 'text' as const, text: 'Only whales.' }];
  const messages = [{ ...message, role: 'assistant' as const, blocks }];
  await session.edit({ transcript: { from: total, messages }, by: 'ann' });
  await approve(child);
  await expect.poll(() => reports(session)).toEqual(['completed']);
  await untilPhase(session, 'idle');
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.transcript.map(({ id }) => id)).toContain('correction');
});

test('a task waits for its agents, and a report that is lost is found by a look', async () => {
  const { stage, session, child } = await startHolding(echo, { start: { mode: 'task' } });
  await until(session, ({ lastText, phase }) => lastText !== '' && phase === 'acting');
  await stage.client.workflow.getHandle(child.id).terminate('by hand');
  // The session looks by itself after a minute, and at once when somebody resumes it.
  await session.resume();
  expect(await session.result()).toMatchObject({
    status: 'completed',
    text: expect.stringContaining('It ended without an answer: its session was terminated from outside'),
  });
  expect(await reports(session)).toEqual(['failed']);
});

test('the end of a task cancels its agents in the background where the tool says so', async () => {
  const { session, child } = await startHolding(echo, {
    options: { atEnd: 'cancel' },
    start: { mode: 'task' },
  });
  expect(await session.result()).toMatchObject({ status: 'completed', text: 'heard: Report.' });
  expect(await child.result()).toMatchObject({ status: 'cancelled' });
  expect(await reports(session)).toEqual([]);
  expect((await session.snapshot()).children).toMatchObject([{ end: { status: 'cancelled' } }]);
});

test('the model asks how far its agents are, and stops one', async () => {
  const { stage, session, child } = await startHolding(({ lastUserText, toolResults, assistantCount }) => {
    if (assistantCount === 0) return { toolCalls: [{ name: 'research', args: { task: 'Whales.' } }] };
    const of = { session: /"session":"([^"]+)"/.exec(toolResults[0]?.text ?? '')?.[1] ?? '' };
    if (lastUserText === 'How far?' && toolResults.length === 1)
      return { toolCalls: [{ name: 'agent_status', args: {} }] };
    if (lastUserText === 'Stop.' && toolResults.length === 2)
      return {
        toolCalls: [
          { name: 'agent_stop', args: { ...of, reason: 'not needed' } },
          { name: 'agent_stop', args: { session: 'another' } },
        ],
      };
    return { text: lastUserText };
  });
  await untilPhase(session, 'idle');
  await session.send('How far?');
  await until(session, ({ lastText }) => lastText === 'How far?');
  await session.send('Stop.');
  await expect.poll(() => reports(session)).toEqual(['cancelled']);
  await untilPhase(session, 'idle');

  const { calls } = await expectFoldEqualsLive(stage.client, session);
  expect(calls.slice(1).map(({ result }) => result)).toMatchObject([
    {
      content: {
        agents: [
          {
            session: child.id,
            agent: 'researcher',
            status: 'running',
            phase: 'approval',
            waits_for_person: ['hold: approval'],
            used: { turns: 1 },
          },
        ],
      },
    },
    { content: expect.stringContaining('researcher is being stopped'), isError: false },
    { content: `another is not one of your agents. At work: ${child.id}.`, isError: true },
  ]);
  expect(await child.state()).toMatchObject({ status: { kind: 'cancelled', reason: 'not needed' } });
});

test('an interrupt leaves an agent in the background at work, and a cancellation ends it', async () => {
  const { stage, session, child } = await startHolding();
  await untilPhase(session, 'idle');
  await session.send({ text: 'Never mind.', mode: 'interrupt' });
  await until(session, ({ lastText }) => lastText === 'heard: Never mind.');
  expect(await child.state()).toMatchObject({ phase: 'approval' });
  await session.pause({ by: 'ann' });
  await untilPhase(child, 'paused');
  await session.cancel({ by: 'ann', reason: 'enough' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(await child.state()).toMatchObject({ status: { kind: 'cancelled', reason: 'enough' } });
  await expectFoldEqualsLive(stage.client, session);
});

test('a report comes after a rewind and a new run, and a fork is told that none will come', async () => {
  const { stage, session, child } = await startHolding(echo, { more: { runTurns: 2 } });
  await untilPhase(session, 'idle');
  const saver = new TemporalSaver(stage.client);
  const at = (await saver.get(session.id))?.id ?? expect.fail('no checkpoint');
  const fork = await stage.sessions.fork(
    { sessionId: session.id, checkpointId: at },
    { by: 'ann', reason: 'try' },
  );
  await until(fork, ({ lastText }) => lastText.includes(`It works for session ${session.id}`));
  expect(await reports(fork)).toEqual(['left']);

  // The call leaves the run, and the report comes to the next one.
  for (const text of ['One.', 'Two.', 'Three.']) {
    await session.send(text);
    await until(session, ({ lastText }) => lastText === `heard: ${text}`);
  }
  await expect.poll(async () => (await session.snapshot()).calls).toEqual([]);
  await approve(child);
  await expect.poll(() => reports(session)).toEqual(['completed']);
  await untilPhase(session, 'idle');

  // A report that the rewind leaves behind is found again.
  const again = await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: at },
    { by: 'ann', reason: 'again' },
  );
  await expect.poll(() => reports(again)).toEqual(['completed']);
  await untilPhase(again, 'idle');
  await expectFoldEqualsLive(stage.client, again);
  expect(stage.model.requests.filter(({ request }) => request.model === 'researcher')).toHaveLength(2);
});

test('more agents than may be at work are refused, and asking again after each report is a loop', async () => {
  const stage = await openStage(
    scripted({
      lead: ({ assistantCount }) =>
        assistantCount % 2 === 0
          ? { toolCalls: ['a', 'b'].map((task) => ({ name: 'research', args: { task } })) }
          : { text: 'Later.' },
      researcher: ({ lastUserText }) => ({ text: lastUserText }),
    }),
  );
  const research = agentTool(agent(stage, 'researcher'), {
    background: true,
    idempotency: { scope: 'call' },
  });
  const lead = agent(stage, 'lead', { research }, { subAgents: { open: 1 }, loopLimit: 3 });
  await stage.startWorker([lead]);
  const session = await ask(stage);
  await untilPhase(session, 'waiting');
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.wait).toMatchObject({ reason: 'loop' });
  expect(state.calls[1]?.result).toMatchObject({
    isError: true,
    content: expect.stringContaining('as many agents as allowed (1) are at work'),
  });
});

test('the definition of an agent in the background is checked', async () => {
  const given = { description: 'x' };
  expect(() => agentTool('a', { ...given, background: 'yes' } as object)).toThrow('background');
  expect(() => agentTool('a', { ...given, atEnd: 'cancel' })).toThrow('add background: true');
  expect(() => agentTool('a', { ...given, background: true, atEnd: 'never' } as object)).toThrow('atEnd');
});
