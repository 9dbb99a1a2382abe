/** A session that goes on in a new run while it waits in the middle of a turn: what is open goes along. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineAgent,
  defineTool,
  type Session,
  type SessionState,
  TemporalSaver,
  wholeCheckpoint,
} from '../../src/index.ts';
import { tsToMs } from '../../src/temporal/sdk-time.ts';
import { decide, resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { runsOf } from './support/teller.ts';

const SETTLE_MS = 1_500;
const EXPIRES_MS = 2_500;
const TOOLS = ['look', 'approve', 'soon', 'lose', 'edit'] as const;

interface Clerk {
  stage: Stage;
  session: Session;
  /** What the tools have done. */
  done: string[];
}

/** A session whose run ends with each turn. A message is the list of the tools that the model calls, in one reply. */
async function openClerk(message: string): Promise<Clerk> {
  const stage = await openStage(({ lastUserText, stepInTurn }) =>
    stepInTurn === 0 && lastUserText.startsWith('call ')
      ? {
          toolCalls: lastUserText
            .slice(5)
            .split(' ')
            .map((name) => ({ name, args: { what: name } })),
        }
      : { text: `after ${lastUserText}` },
  );
  const done: string[] = [];
  const tool = (name: (typeof TOOLS)[number]) =>
    defineTool({
      inputSchema: z.object({ what: z.string().max(20) }),
      effect: name === 'look' ? 'read' : 'mutate',
      settle: SETTLE_MS,
      ...(name === 'approve' || name === 'edit' ? { needsApproval: true, approval: { expires: '1h' } } : {}),
      ...(name === 'soon' ? { needsApproval: true, approval: { expires: EXPIRES_MS } } : {}),
      execute: ({ what }) => {
        done.push(what);
        if (name === 'lose') throw new Error('the connection broke');
        return { did: what };
      },
    });
  const agent = defineAgent({
    name: 'clerk',
    model: stage.provider('m'),
    instructions: 'Call what the user names.',
    tools: Object.fromEntries(TOOLS.map((name) => [name, tool(name)])),
    runTurns: 1,
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message });
  return { stage, session, done };
}

/** Waits until the session has gone on in a new run in the middle of its turn. */
async function inNewRun({ stage, session }: Clerk): Promise<SessionState> {
  const first = (await runsOf(stage, session))[0];
  await expect.poll(async () => (await session.snapshot()).runId).not.toBe(first);
  await expect.poll(async () => (await session.snapshot()).inFlight.length).toBe(1);
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state).toMatchObject({ turn: 1, transcript: [{ role: 'assistant' }] });
  expect(state.batch).toHaveLength(state.calls.length);
  return state;
}

test('a session that waits for a person goes on in a new run with its approval, and executes the call once', async () => {
  const clerk = await openClerk('call look approve look');
  const { stage, session, done } = clerk;
  const asked: string[] = [];
  const reading = (async () => {
    for await (const part of session.stream({ since: 'start', until: 'closed' }))
      if (part.type === 'approval' || part.type === 'message')
        asked.push(`${part.type} ${'state' in part ? part.state : part.role}`);
  })();
  const before = (await untilPhase(session, 'approval')).pending;
  const state = await inNewRun(clerk);
  expect(state.calls.map(({ status }) => status.kind)).toEqual(['completed', 'approval', 'ready']);
  expect((await session.state()).pending).toEqual(before);
  expect((await session.call('call_1_1')).asked.message).toBe('call look approve look');
  await session.send('later');
  await decide(session, 'call_1_1', { decision: 'approve' }, { by: 'me' });
  const { messages, calls } = await until(session, ({ phase, queued }) => phase === 'idle' && queued === 0);

  expect(done).toEqual(['look', 'approve', 'look']);
  expect([messages, calls]).toEqual([5, 3]);
  const log = await session.calls({ limit: 100 });
  expect(log.items.map(({ id, decision }) => [id, decision?.by])).toEqual([
    ['call_1_0', undefined],
    ['call_1_1', 'me'],
    ['call_1_2', undefined],
  ]);
  const latest = await new TemporalSaver(stage.client).get(session.id);
  if (latest === null) return expect.fail('no checkpoint');
  const whole = (await wholeCheckpoint(stage.client, latest)).state as unknown as SessionState;
  expect(whole.transcript.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
    'assistant',
  ]);
  expect(new Set(whole.calls.map(({ id }) => id)).size).toBe(3);
  await session.cancel();
  await reading;
  expect(asked).toEqual([
    'message user',
    'message assistant',
    'approval asked',
    'approval decided',
    'message tool',
    'message user',
    'message assistant',
  ]);
});

/** How long the timers of the second run take, in milliseconds. */
async function timersInNewRun({ stage, session }: Clerk): Promise<number[]> {
  const [, runId] = await runsOf(stage, session);
  const { events } = await stage.client.workflow.getHandle(session.id, runId).fetchHistory();
  return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
    timer ? [tsToMs(timer.startToFireTimeout)] : [],
  );
}

test('an approval expires in a later run at the time that it was asked for', async () => {
  const clerk = await openClerk('call soon');
  const { stage, session, done } = clerk;
  await untilPhase(session, 'idle');
  const [timer, ...others] = await timersInNewRun(clerk);
  expect(timer).toBeLessThan(EXPIRES_MS);
  expect(others).toEqual([]);

  const [call] = (await session.calls()).items;
  expect(call?.decision).toMatchObject({ decision: 'expired' });
  const { items: messages } = await session.transcript();
  const asked = messages.find(({ role }) => role === 'assistant')?.created_at ?? '';
  const askedFor = Date.parse(call?.completedAt ?? '') - Date.parse(asked);
  expect(askedFor).toBeGreaterThanOrEqual(EXPIRES_MS);
  expect(done).toEqual([]);
  await expectFoldEqualsLive(stage.client, session);
});

test('a lost call settles over runs, and is resolved once', async () => {
  const clerk = await openClerk('call lose');
  const { stage, session, done } = clerk;
  const { pending } = await untilPhase(session, 'unknown_effect');
  // The settle time began with the loss, not with the new run.
  const [timer, ...others] = await timersInNewRun(clerk);
  expect(timer).toBeLessThan(SETTLE_MS);
  expect(others).toEqual([]);
  expect(pending).toMatchObject([{ callId: 'call_1_0', dispatchNo: 1 }]);
  await resolve(session, 'call_1_0', { outcome: 'landed', output: 'it did' });
  await untilPhase(session, 'idle');

  expect(done).toEqual(['lose']);
  await expectFoldEqualsLive(stage.client, session);
  expect((await session.calls()).items).toMatchObject([{ id: 'call_1_0', resolutions: [{ dispatchNo: 1 }] }]);
});

test('an edit that meets the end of a run at any moment is made once, and its caller is told', async () => {
  const told = await Promise.all(
    [...Array(4).keys()].map(async (n) => {
      const { session, done } = await openClerk('call edit');
      const [call] = (await untilPhase(session, 'approval')).pending;
      await new Promise((resolve) => setTimeout(resolve, 25 * n));
      if (call === undefined) return expect.fail('nothing waits');
      const refused = await rejection(
        session.decide(call, { decision: 'edit', args: { what: 'x'.repeat(30) } }),
      );
      const again = await session.decide((await session.approvals())[0] ?? call, {
        decision: 'edit',
        args: { what: `new ${n}` },
      });
      await untilPhase(session, 'idle');
      return { refused, status: again.status, done };
    }),
  );
  for (const [n, { refused, status, done }] of told.entries()) {
    expect(refused).toMatchObject({ code: 'INVALID_TOOL_INPUT' });
    expect(['ready', 'running', 'completed']).toContain(status);
    expect(done).toEqual([`new ${n}`]);
  }
});

test('a state that a newer version has carried over waits for a worker of that version', async () => {
  const stage = await openStage(() => ({ text: 'hello' }));
  const agent = defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Wait.' });
  const newer = { workflowsPath: fileURLToPath(new URL('support/newer-workflows.ts', import.meta.url)) };
  const first = await stage.startWorker([agent], newer);
  const session = await stage.sessions.start('clerk', { id: stage.id() });
  const handle = stage.client.workflow.getHandle(session.id);
  const { runId } = await handle.describe();
  await expect.poll(async () => (await handle.describe()).runId).not.toBe(runId);
  await first.stop();

  const older = await stage.startWorker([agent]);
  await handle.signal('send', 'end');
  const failures = async (): Promise<string[]> =>
    ((await handle.fetchHistory()).events ?? []).flatMap(
      (event) => event.workflowTaskFailedEventAttributes?.failure?.message ?? [],
    );
  await expect.poll(failures).not.toEqual([]);
  expect((await failures())[0]).toContain('a newer version of perdure wrote the state of the run before');
  expect((await handle.describe()).status.name).toBe('RUNNING');
  await older.stop();
  await stage.startWorker([agent], newer);
  expect(await handle.result()).toEqual({ text: 'schema 2' });
});

test('a chain of reads goes on in new runs, and its model sees all of it', async () => {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn < 9 ? { toolCalls: [{ name: 'look', args: { at: stepInTurn } }] } : { text: 'seen' },
  );
  const looked: number[] = [];
  const look = defineTool({
    inputSchema: z.object({ at: z.number() }),
    effect: 'read',
    execute: ({ at }) => {
      looked.push(at);
      return { at };
    },
  });
  const agent = defineAgent({
    name: 'scout',
    model: stage.provider('m'),
    instructions: 'Look.',
    tools: { look },
    runTurns: 3,
    loopLimit: 20,
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('scout', { id: stage.id(), message: 'Look.' });
  const state = await untilPhase(session, 'idle').then(() => expectFoldEqualsLive(stage.client, session));

  expect(looked).toEqual([...Array(9).keys()]);
  expect(state.turn).toBe(10);
  // The first three turns leave the first run, before the third look.
  expect(await runsOf(stage, session)).toHaveLength(4);
  const { items } = await session.transcript({ limit: 100 });
  expect(items.map(({ role }) => role)).toEqual([
    'user',
    ...Array.from({ length: 9 }, () => ['assistant', 'tool']).flat(),
    'assistant',
  ]);
  // Each turn is one request, which holds all before it.
  expect(stage.model.requests.map(({ request }) => request?.messages.length)).toEqual(
    Array.from({ length: 10 }, (_, turn) => 2 + 2 * turn),
  );
});
