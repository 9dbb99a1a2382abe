/** What a session may go on from: a checkpoint of its own, and of nobody else; and who asks while it is taken back. */
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { expect, test } from 'vitest';
import { defineAgent, type Session, Sessions, TemporalSaver } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';

const WHY = { by: 'ada', reason: 'what if' } as const;

async function open(): Promise<{ stage: Stage; begin: (text: string) => Promise<Session> }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await stage.startWorker([defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Echo.' })]);
  const begin = async (text: string): Promise<Session> => {
    const session = await stage.sessions.start('echo', { id: stage.id(), message: text });
    await untilPhase(session, 'idle');
    return session;
  };
  return { stage, begin };
}

const latestOf = async (stage: Stage, { id }: Session): Promise<string> =>
  (await new TemporalSaver(stage.client).get(id))?.id ?? '';

test('a checkpoint of another session is refused, and the session that was to go on from it is not touched', async () => {
  const { stage, begin } = await open();
  const [a, b] = [await begin('a'), await begin('b')];
  const own = await latestOf(stage, b);
  const [runId = '', eventId = ''] = own.split(':');
  const others = [
    await latestOf(stage, a),
    // A run that nobody has, an event that is none yet, and one that is no completed task.
    `${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}:4`,
    `${runId}:${Number(eventId) + 1_000}`,
    `${runId}:1`,
  ];
  const before = await b.state();
  for (const checkpointId of others) {
    const from = { sessionId: b.id, checkpointId };
    const refused = { code: 'CHECKPOINT_NOT_FOUND', message: expect.stringContaining(b.id) };
    expect(await rejection(stage.sessions.rewind(from, { ...WHY, message: 'x' }))).toMatchObject(refused);
    expect(await rejection(stage.sessions.fork(from, { ...WHY, id: stage.id() }))).toMatchObject(refused);
  }
  expect((await b.state()).runId).toBe(before.runId);
  await b.send('still there');
  expect((await untilPhase(b, 'idle')).lastText).toBe('heard still there');
});

test('what a worker has loaded of one session is not another one’s', async () => {
  const { stage, begin } = await open();
  const session = await begin('a secret');
  const [runId = '', eventId = ''] = (await latestOf(stage, session)).split(':');
  const from = { sessionId: session.id, checkpointId: `${runId}:${eventId}` };
  await untilPhase(await stage.sessions.fork(from, { ...WHY, id: stage.id('fork') }), 'idle');
  // A foreign client names the same run of another session.
  const id = stage.id('foreign');
  const origin = { kind: 'fork', ...WHY, sessionId: stage.id('nobody'), runId, eventId: Number(eventId) };
  await stage.client.workflow.start('agentSession', {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'echo', origin }],
  });
  const view = await untilPhase(stage.sessions.get(id), 'waiting', 'idle');
  expect(view).toMatchObject({ wait: { reason: 'history_unreadable' }, messages: 0 });
});

test('whoever asks while a session is taken back is told that it goes on, and the later of two rewinds that it was beaten', async () => {
  const { stage, begin } = await open();
  const session = await begin('hello');
  const from = { sessionId: session.id, checkpointId: await latestOf(stage, session) };
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  let arrive = (): void => undefined;
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const { connection, options } = stage.client;
  const { namespace } = options;
  const workflow: WorkflowClientInterceptor = {
    startWithDetails: async (input, next) => {
      arrive();
      await passed;
      return next(input);
    },
  };
  const slow = new Client({ connection, namespace, interceptors: { workflow: [workflow] } });
  const rewinding = new Sessions(slow, { taskQueue: stage.taskQueue });
  const first = rewinding.rewind(from, { ...WHY, message: 'ada' });
  const settled = first.then(
    () => null,
    (error: unknown) => error,
  );
  await arrived;
  // The run has ended, and its successor has not begun.
  const busy = {
    code: 'SESSION_BUSY',
    message: expect.stringContaining(`being rewound to ${from.checkpointId}`),
  };
  expect(await rejection(session.send('meanwhile'))).toMatchObject(busy);
  expect(await rejection(session.pause({ by: 'bob' }))).toMatchObject(busy);
  expect(await rejection(session.setBudget({ limits: { turns: 9 } }))).toMatchObject(busy);

  await stage.sessions.rewind(from, { by: 'bob', reason: 'me first', message: 'bob' });
  pass();
  expect(await settled).toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('rewound by somebody else'),
  });
  expect((await untilPhase(session, 'idle')).lastText).toBe('heard bob');
  // Nobody has sealed the run that goes on.
  await session.send('goes on');
  expect((await untilPhase(session, 'idle')).lastText).toBe('heard goes on');
});

test('two rewinds at once: one goes on, and the other is told CONFLICT or SESSION_BUSY', async () => {
  const { stage, begin } = await open();
  const session = await begin('hello');
  const from = { sessionId: session.id, checkpointId: await latestOf(stage, session) };
  const asked = await Promise.allSettled(
    ['ann', 'bea', 'cid'].map((by) => stage.sessions.rewind(from, { by, reason: 'now', message: by })),
  );
  const refused = asked.flatMap((each) =>
    each.status === 'rejected' ? [each.reason as { code: string }] : [],
  );
  expect(refused).toHaveLength(2);
  for (const { code } of refused) expect(['CONFLICT', 'SESSION_BUSY']).toContain(code);
  const winner = ['ann', 'bea', 'cid'][asked.findIndex(({ status }) => status === 'fulfilled')];
  expect((await untilPhase(session, 'idle')).lastText).toBe(`heard ${winner}`);
  await session.send('goes on');
  expect((await untilPhase(session, 'idle')).lastText).toBe('heard goes on');
});
