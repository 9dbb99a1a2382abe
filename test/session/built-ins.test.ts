/** Tools that the session answers itself: sleep, reminders, the scratchpad. */
import { expect, test } from 'vitest';
import {
  defineAgent,
  type JsonObject,
  type JsonValue,
  remindMe,
  type Session,
  type SessionState,
  type SessionView,
  scratchpad,
  sleepUntil,
  TemporalSaver,
} from '../../src/index.ts';
import { sessionCheckpoint } from '../../src/saver/records/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** A session whose model makes the calls that each message lists as JSON, one a turn. */
async function opened(runTurns = 100): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ lastUserText, stepInTurn }) => {
    const calls = lastUserText.startsWith('[') ? (JSON.parse(lastUserText) as [string, JsonObject][]) : [];
    const call = calls[stepInTurn];
    return call === undefined
      ? { text: `after ${lastUserText}`.slice(0, 200) }
      : { toolCalls: [{ name: call[0], args: call[1] }] };
  });
  const agent = defineAgent({
    name: 'clerk',
    model: stage.provider('m'),
    instructions: 'Do what the user lists.',
    tools: { sleep_until: sleepUntil(), remind_me: remindMe({ max: '1 day' }), ...scratchpad() },
    runTurns,
  });
  await stage.startWorker([agent]);
  return { stage, session: await stage.sessions.start('clerk', { id: stage.id(), message: 'hello' }) };
}

async function told(session: Session, ...calls: [string, JsonObject][]): Promise<JsonValue[]> {
  await untilPhase(session, 'idle');
  const { total } = await session.calls();
  await session.send(JSON.stringify(calls));
  await until(session, (view) => view.calls === total + calls.length && view.phase === 'idle');
  return (await session.calls()).items.slice(-calls.length).map(({ result }) => result?.content ?? null);
}

async function asleep(session: Session, seconds: number): Promise<SessionView> {
  await untilPhase(session, 'idle');
  await session.send(JSON.stringify([['sleep_until', { seconds, reason: 'the parcel' }]]));
  return until(session, ({ sleeping }) => sleeping.length === 1);
}

test('a call sleeps until its time, and says what it has waited for', async () => {
  const { stage, session } = await opened();
  expect(await told(session, ['sleep_until', { seconds: 2, reason: 'the parcel' }])).toEqual([
    expect.stringMatching(/^The time has come: it is .*Z\. You waited for: the parcel$/),
  ]);
  const [call] = (await session.calls()).items;
  expect(Date.parse(call?.completedAt ?? '') - Date.parse(call?.issuedAt ?? '')).toBeGreaterThanOrEqual(
    1_900,
  );
  await expectSound(stage, session);
});

test('a time in the past, one without a zone, and one in the year 9999 are answered at once', async () => {
  const { session } = await opened();
  const results = await told(
    session,
    ['sleep_until', { until: '2001-01-01T00:00:00Z', reason: 'x' }],
    ['sleep_until', { until: '9999-01-01T00:00:00Z', reason: 'x' }],
    ['sleep_until', { until: '2030-01-01T00:00:00', reason: 'x' }],
    ['sleep_until', { reason: 'x' }],
    ['remind_me', { seconds: 90_000, text: 'x' }],
  );
  expect(results).toEqual([
    expect.stringContaining('2001-01-01T00:00:00.000Z is in the past'),
    expect.stringContaining('The time is too far away: the latest is'),
    expect.stringContaining('write ISO 8601 with a zone'),
    expect.stringContaining('Give either until'),
    expect.stringContaining('The time is too far away: the latest is'),
  ]);
});

test('a person ends a sleep early, and an interrupting message does', async () => {
  const { stage, session } = await opened();
  const { sleeping, pending } = await asleep(session, 3_600);
  expect(pending).toEqual([]);
  const [call] = sleeping;
  if (call === undefined) throw new Error('no call sleeps');
  await session.decide(call, { decision: 'approve' }, { by: 'ada' });
  await untilPhase(session, 'idle');
  expect((await session.calls()).items.at(-1)?.result?.content).toMatch(/^ada ended the wait early/);
  await asleep(session, 3_600);
  await session.send({ text: 'stop', mode: 'interrupt' });
  await until(session, ({ phase, lastText }) => phase === 'idle' && lastText === 'after stop');
  await asleep(session, 3_600);
  await session.cancel();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  await expectSound(stage, session);
});

test('a sleep and a reminder go along into a new run and through a rewind', async () => {
  const { stage, session } = await opened(1);
  await told(session, ['remind_me', { seconds: 3_600, text: 'call Bob' }]);
  const { sleeping, turn } = await asleep(session, 3_600);
  const inNewRun = ({ past }: SessionState): boolean => past?.turn === turn;
  await expect.poll(async () => inNewRun(await session.snapshot())).toBe(true);
  const { reminders, runId, ...view } = await session.state();
  expect(view.sleeping).toEqual(sleeping);
  expect(reminders).toMatchObject([{ text: 'call Bob' }]);
  const checkpoint = await new TemporalSaver(stage.client).get(session.id);
  if (checkpoint === null) throw new Error('no checkpoint');
  const taken = await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: checkpoint.id },
    { by: 'ada', reason: 'a test' },
  );
  const after = await until(taken, (view) => view.runId !== runId && view.sleeping.length === 1);
  expect(after.sleeping).toEqual(sleeping);
  expect(after.reminders).toEqual(reminders);
});

test('a reminder is a message to the session at its time, once, while it goes on', async () => {
  const { stage, session } = await opened();
  expect(
    await told(
      session,
      ['remind_me', { seconds: 3_600, text: 'later' }],
      ['remind_me', { seconds: 1, text: 'call Bob' }],
    ),
  ).toEqual([
    expect.stringContaining('You get the message at'),
    expect.stringContaining('You get the message'),
  ]);
  const view = await until(session, ({ lastText }) => lastText.startsWith('after Reminder'));
  expect(view.lastText).toMatch(/^after Reminder that you set at .*Z: call Bob$/);
  expect(view.reminders).toMatchObject([{ text: 'later' }]);
  const { items } = await session.transcript();
  expect(items.filter(({ id }) => id.startsWith('reminder_'))).toHaveLength(1);
  await session.edit({ plan: [], by: 'ada' });
  await session.cancel();
  await session.result();
  await expectSound(stage, session);
});

test('a rewind brings back a reminder whose time has passed, and the session gets it at once', async () => {
  const { stage, session } = await opened();
  await told(session, ['remind_me', { seconds: 1, text: 'call Bob' }]);
  const view = await until(session, ({ lastText }) => lastText.startsWith('after Reminder'));
  const checkpoints = await new TemporalSaver(stage.client).list(session.id, { limit: 100 });
  const before = checkpoints.find(({ state }) => 'reminders' in state);
  if (before === undefined) throw new Error('no checkpoint has the reminder');
  const rewound = await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: before.id },
    { by: 'ada', reason: 'a test' },
  );
  const after = await until(rewound, ({ runId, phase, reminders }) => {
    return runId !== view.runId && phase === 'idle' && reminders.length === 0;
  });
  expect(after.lastText).toBe(view.lastText);
  await expectSound(stage, session);
});

test('a scratchpad is in the state, and so in each checkpoint, in its record and over rewinds', async () => {
  const { stage, session } = await opened(1);
  await told(session, ['scratchpad_write', { path: 'notes/plan.md', text: 'one' }]);
  const saver = new TemporalSaver(stage.client);
  const before = await saver.get(session.id);
  if (before === null) throw new Error('no checkpoint');
  expect(
    await told(
      session,
      ['scratchpad_write', { path: 'notes/plan.md', text: ', two', append: true }],
      ['scratchpad_read', { path: 'notes/plan.md' }],
      ['scratchpad_list', {}],
      ['scratchpad_write', { path: '../secret', text: 'x' }],
      ['scratchpad_write', { path: 'big', text: 'x'.repeat(32_001) }],
      ['scratchpad_read', { path: 'none' }],
    ),
  ).toEqual([
    'notes/plan.md has 8 bytes.',
    'one, two',
    [{ path: 'notes/plan.md', bytes: 8 }],
    expect.stringContaining('path is "../secret"'),
    'big would have 32001 bytes, the limit is 32000. Shorten it.',
    'There is no file none. Files: notes/plan.md.',
  ]);
  const now = await saver.get(session.id);
  expect(now?.state['scratchpad']).toEqual({ 'notes/plan.md': 'one, two' });
  if (now === null) throw new Error('no checkpoint');
  const record = sessionCheckpoint(now, { transcriptReplayDepth: 0 });
  expect(record.activeAgents[0]?.expertiseSnapshot).toBe('# notes/plan.md\none, two');
  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: before.id },
    { by: 'ada', reason: 'a test', message: 'again' },
  );
  await until(session, ({ lastText }) => lastText === 'after again');
  expect((await session.snapshot()).scratchpad).toEqual({ 'notes/plan.md': 'one' });
  await told(session, ['scratchpad_write', { path: 'notes/plan.md' }]);
  expect((await session.state()).scratchpad).toEqual([]);
});
