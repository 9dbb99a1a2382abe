import { expect, test } from 'vitest';
import * as z from 'zod';
import { changeLines, header } from '../../src/cli/render.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { type AgentOptions, defineAgent, defineTool, type Session } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide, resolve } from '../support/decide.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const read = (execute: () => unknown = () => 'read'): ReturnType<typeof defineTool> =>
  defineTool({ inputSchema: z.object({ id: z.string() }), effect: 'read', execute }) as never;

const agentOf = (stage: Stage, options: Partial<AgentOptions> = {}): ReturnType<typeof defineAgent> =>
  defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Be brief.', ...options });

const systemPrompts = (stage: Stage): (string | undefined)[] =>
  stage.model.requests.map(({ request }) => request.messages.find(({ role }) => role === 'system')?.text);

test('a worker without the agent: the session waits visibly, and goes on with a worker that has it', async () => {
  const stage = await openStage(() => ({ text: 'here' }));
  const other = await stage.startWorker([agentOf(stage, { name: 'other' })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'anybody?' });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'agent_unavailable',
    message: `this worker has no agent clerk. The session continues when a worker of task queue ${stage.taskQueue} has the agent`,
    next: { action: 'resume', sessionId: session.id },
  });
  expect(stage.model.requests).toHaveLength(0);
  // A message waits with it, and resuming too early waits again.
  await session.send('still waiting');
  await session.resume();
  await until(session, ({ phase, wait: again }) => phase === 'waiting' && again?.since !== wait?.since);
  // A look at a worker that still lacks the agent leaves the session where it is.
  await expect.poll(async () => (await session.snapshot()).away?.checks).toBe(1);

  await other.stop();
  await stage.startWorker([agentOf(stage)]);
  // Nobody resumes it: it looks for the agent by itself.
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'here', messages: 3, queued: 0 });
  await expectSound(stage, session);
});

test('an agent that its worker loses in mid-session waits before the next model call, and costs nothing', async () => {
  const stage = await openStage(() => ({ text: 'here' }));
  const first = await stage.startWorker([agentOf(stage)]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'one' });
  const before = await untilPhase(session, 'idle');
  await first.stop();
  const without = await stage.startWorker([agentOf(stage, { name: 'other' })]);
  await session.send('two');
  const waiting = await untilPhase(session, 'waiting');
  expect(waiting.wait).toMatchObject({ reason: 'agent_unavailable' });
  expect(waiting.budget.spent.inputTokens).toBe(before.budget.spent.inputTokens);
  await without.stop();
  await stage.startWorker([agentOf(stage)]);
  expect(await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle')).toMatchObject({
    lastText: 'here',
  });
  await expectSound(stage, session);
});

test.each(['cancel', 'pause'] as const)('a session that waits for its agent takes a %s', async (what) => {
  const stage = await openStage(() => ({ text: 'here' }));
  const other = await stage.startWorker([agentOf(stage, { name: 'other' })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'anybody?' });
  await untilPhase(session, 'waiting');
  if (what === 'cancel') {
    await session.cancel();
    expect(await session.result()).toMatchObject({ status: 'cancelled' });
  } else {
    await session.pause();
    await untilPhase(session, 'paused');
    await other.stop();
    await stage.startWorker([agentOf(stage)]);
    await session.resume();
    await untilPhase(session, 'idle');
  }
  await expectSound(stage, session);
});

test('new code that hits sessions in flight: a changed definition enters the session as a recorded result before the next model call', async () => {
  const stage = await openStage(({ tools }) => ({ text: `tools: ${tools.map(({ name }) => name).join()}` }));
  const first = await stage.startWorker([agentOf(stage)]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'one' });
  const before = await untilPhase(session, 'idle');
  await first.stop();

  await stage.startWorker([agentOf(stage, { instructions: 'Be verbose.', tools: { look: read() } })]);
  await session.send('two');
  const after = await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  expect(after.lastText).toBe('tools: look');
  expect(after.manifestDigest).not.toBe(before.manifestDigest);
  expect(after.notices).toMatchObject([
    {
      kind: 'manifest',
      message: `the definition of clerk changed: instructions, tool look added; digest ${before.manifestDigest} to ${after.manifestDigest}`,
    },
  ]);
  const change = { turn: 1, from: before.manifestDigest, to: after.manifestDigest, addedTools: ['look'] };
  expect(before.agentChanges).toEqual([]);
  expect(after.agentChanges).toMatchObject([{ ...change, changed: ['instructions'], removedTools: [] }]);
  expect(changeLines(after.agentChanges, new Terminal())).toContain('instructions, tool look added');
  expect(systemPrompts(stage)).toEqual(['Be brief.', 'Be verbose.']);
  const { checkpoints } = await expectSound(stage, session);
  expect(checkpoints.at(-1)?.manifest?.instructions).toBe('Be verbose.');
});

test('a changed cap of the definition does not undo what a person set', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  const first = await stage.startWorker([agentOf(stage, { budget: { turns: 1 } })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'one' });
  await untilPhase(session, 'idle');
  await session.setBudget({ limits: { turns: 5 } });
  await first.stop();
  await stage.startWorker([agentOf(stage, { budget: { turns: 2 }, instructions: 'New.' })]);
  await session.send('two');
  expect((await until(session, ({ turn }) => turn === 2)).budget.limits).toEqual({ turns: 5 });
  await expectSound(stage, session);
});

test('a suspended tool that can never resume: one that is gone when its call is dispatched waits as stuck, and runs when it is back', async () => {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'pay', args: { id: 'a' } }] },
      ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
    ]),
  );
  let paid = 0;
  const pay = defineTool({
    inputSchema: z.object({ id: z.string() }),
    needsApproval: true,
    execute: () => `paid ${++paid}`,
  });
  const first = await stage.startWorker([agentOf(stage, { tools: { pay } })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'pay a' });
  await untilPhase(session, 'approval');
  await first.stop();
  const without = await stage.startWorker([agentOf(stage)]);
  await decide(session, 'call_1_0', { decision: 'approve' });
  const stuck = await untilPhase(session, 'unknown_effect');
  expect(stuck.pending).toMatchObject([
    {
      callId: 'call_1_0',
      status: {
        kind: 'stuck',
        reason:
          'agent clerk has no tool pay on this worker. The call continues when a worker of task queue ' +
          `${stage.taskQueue} has the tool, or when somebody resolves it`,
      },
      next: { action: 'resume', sessionId: session.id },
    },
  ]);
  expect(header(stuck, new Terminal())).toContain('waits for a worker that has the tool pay');
  expect(paid).toBe(0);
  // A look at a worker that still lacks the tool leaves the call where it is.
  await until(session, ({ pending }) => {
    const status = pending[0]?.status;
    return status?.kind === 'stuck' && (status.checks ?? 0) > 0 && status.due === undefined;
  });
  await without.stop();
  await stage.startWorker([agentOf(stage, { tools: { pay } })]);
  // Nobody resumes it: it looks for the tool by itself.
  expect((await untilPhase(session, 'idle')).lastText).toBe('paid 1');
  await expectSound(stage, session);
});

test('a stuck call that a person settles instead goes on without the tool', async () => {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'look', args: { id: 'a' } }] },
      ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
    ]),
  );
  const approved = defineTool({
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    needsApproval: true,
    execute: () => 'x',
  });
  const first = await stage.startWorker([agentOf(stage, { tools: { look: approved } })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'look' });
  await untilPhase(session, 'approval');
  await first.stop();
  await stage.startWorker([agentOf(stage)]);
  await decide(session, 'call_1_0', { decision: 'approve' });
  await untilPhase(session, 'unknown_effect');
  await resolve(
    session,
    'call_1_0',
    { outcome: 'failed', reason: 'the tool is gone for good' },
    { by: 'ada' },
  );
  expect((await untilPhase(session, 'idle')).lastText).toBe('look failed: the tool is gone for good');
  await expectSound(stage, session);
});

test('a schema that changed under an approved call: the call is told to the model as invalid, and nothing happened', async () => {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'pay', args: { id: 'a' } }] },
      ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
    ]),
  );
  const paid: unknown[] = [];
  const payOf = (inputSchema: z.ZodType): ReturnType<typeof defineTool> =>
    defineTool({ inputSchema, needsApproval: true, execute: (input) => paid.push(input) });
  const first = await stage.startWorker([
    agentOf(stage, { tools: { pay: payOf(z.object({ id: z.string() })) } }),
  ]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'pay' });
  await untilPhase(session, 'approval');
  await first.stop();
  await stage.startWorker([
    agentOf(stage, { tools: { pay: payOf(z.object({ id: z.string(), cents: z.number() })) } }),
  ]);
  await decide(session, 'call_1_0', { decision: 'approve' });
  const { lastText } = await untilPhase(session, 'idle', 'unknown_effect');
  expect(lastText).toMatch(/^pay was not executed: Invalid arguments for pay: cents: /);
  expect(paid).toEqual([]);
  expect((await session.calls()).items).toMatchObject([{ status: { kind: 'failed', certain: true } }]);
  await expectSound(stage, session);
});

async function loop(): Promise<{ stage: Stage; session: Session; reads: () => number }> {
  const stage = await openStage(({ lastUserText }) =>
    lastUserText === 'stop it' ? { text: 'stopped' } : { toolCalls: [{ name: 'look', args: { id: 'a' } }] },
  );
  let reads = 0;
  await stage.startWorker([agentOf(stage, { tools: { look: read(() => ++reads) } })]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'look' });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'loop',
    message: 'the model asked for the same calls (look) 3 times in a row',
  });
  expect(reads).toBe(2);
  return { stage, session, reads: () => reads };
}

test('equal calls in a row stop for a person: after resume they may go on, and stop again', async () => {
  const { stage, session, reads } = await loop();
  await session.resume();
  await until(session, ({ turn, phase }) => turn > 3 && phase === 'waiting');
  expect(reads()).toBeGreaterThan(2);
  expect((await session.state()).wait?.reason).toBe('loop');
  await expectSound(stage, session);
});

test('whoever asks the same again may have the same calls made again', async () => {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn === 0 ? { toolCalls: [{ name: 'look', args: {} }] } : { text: 'as before' },
  );
  let reads = 0;
  const look = defineTool({ inputSchema: z.object({}), effect: 'read', execute: () => ++reads });
  const model = stage.provider('scripted');
  await stage.startWorker([defineAgent({ name: 'watcher', model, instructions: 'Look.', tools: { look } })]);
  const session = await stage.sessions.start('watcher', { id: stage.id() });
  for (let asked = 1; asked <= 5; asked++) {
    await session.send('status?');
    await until(session, ({ turn, phase }) => turn === 2 * asked && phase === 'idle');
  }
  expect(reads).toBe(5);
  await expectSound(stage, session);
});

test('equal calls in a row give way to a message', async () => {
  const { stage, session, reads } = await loop();
  await session.send('stop it');
  expect((await untilPhase(session, 'idle')).lastText).toBe('stopped');
  expect(reads()).toBe(2);
  expect((await session.calls()).items.at(-1)).toMatchObject({ status: { kind: 'skipped' } });
  await expectSound(stage, session);
});
