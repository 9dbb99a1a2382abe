import { describe, expect, test } from 'vitest';
import type { Checkpoint, JsonObject, PutOptions, Session, SessionState } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { untilPhase } from '../support/stage.ts';
import { BY, ids, latestWith, planOf, rewrite } from './support/session-changes.ts';
import { idle, LOOK_UP, openSessionStage, type SessionStage } from './support/session-stage.ts';

const rewritten = (stage: SessionStage, session: Session): Promise<JsonObject> =>
  latestWith(stage, session, rewrite);

/** Puts a change that would be fine at rest, and expects that it is refused and that nothing is recorded. */
async function expectBusy(stage: SessionStage, session: Session): Promise<void> {
  const state = await rewritten(stage, session);
  const latest = async (): Promise<JsonObject | undefined> =>
    (await stage.saver.list(session.id, { limit: 1 }))[0]?.state;
  const before = await latest();
  expect(await rejection(stage.saver.put(session.id, state, BY))).toMatchObject({
    code: 'SESSION_BUSY',
    message: expect.stringMatching(/a turn is running/) as string,
  });
  // The server may keep the task of an update that was refused: a checkpoint in which nothing has changed.
  expect(await latest()).toEqual(before);
}

describe('a session', () => {
  test('takes a put as an edit of a session at rest', async () => {
    const stage = await openSessionStage([{ text: 'One.' }, { text: 'Two.' }]);
    const session = await idle(stage);
    const [latest] = await stage.saver.list(session.id, { limit: 1 });
    if (latest === undefined) throw new Error('no checkpoint');
    const state = structuredClone(latest.state) as unknown as SessionState;
    const answer = state.transcript[1]?.blocks[0];
    if (answer?.kind === 'text') answer.text = 'Better.';
    const put = (change: object, options: PutOptions = BY): Promise<Checkpoint> =>
      stage.saver.put(session.id, { ...(state as unknown as JsonObject), ...change }, options);

    const edited = await put({}, { parentId: latest.id, metadata: { by: 'ada', reason: 'kinder' } });
    expect(edited).toMatchObject({
      thread_id: session.id,
      parent_id: latest.id,
      state: {
        transcript: [{}, { blocks: [{ text: 'Better.' }] }],
        notices: [{ kind: 'edit', message: 'ada edited transcript: kinder' }],
      },
    });
    expect(await stage.saver.get(session.id)).toEqual(edited);
    // Looked at before, and put after: somebody else's edit would be lost.
    expect(await rejection(put({ scratchpadRoot: '/else' }, { ...BY, parentId: latest.id }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'parentId' },
    });
    expect(await rejection(put({}, { ...BY, parentId: 'nobody' }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'parentId' },
    });
    expect(await rejection(put({ turn: 7 }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { path: expect.stringMatching(/^\/(turn|notices)/) as string },
    });
    expect(await rejection(stage.saver.put(session.id, {}, BY))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('is edited with who and why, and no id or other word of a record', async () => {
    const stage = await openSessionStage([{ text: 'One.' }]);
    const session = await idle(stage);
    const state = await rewritten(stage, session);
    const before = await ids(stage, session);
    const refused: [options: PutOptions, field: string][] = [
      [{}, 'metadata.by'],
      [{ metadata: { reason: 'kinder' } }, 'metadata.by'],
      [{ metadata: { by: 'ada' } }, 'metadata.reason'],
      [{ metadata: { by: 5, reason: 'kinder' } }, 'metadata.by'],
      [{ metadata: { by: 'ada', reason: { in: 'full' } } }, 'metadata.reason'],
      [{ metadata: { by: 'ada', reason: ' \n' } }, 'metadata.reason'],
      [{ metadata: { by: 'a'.repeat(201), reason: 'kinder' } }, 'metadata.by'],
      [{ metadata: { by: 'ada', reason: 'r'.repeat(1_701) } }, 'metadata.reason'],
      [{ metadata: { by: 'ada', reason: 'kinder', Reason: 'slip' } }, 'metadata.Reason'],
      [{ ...BY, id: 'mine' }, 'id'],
    ];
    for (const [options, field] of refused) {
      expect(await rejection(stage.saver.put(session.id, state, options)), field).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(new RegExp(`^${field}: `)) as string,
        details: { field },
      });
    }
    expect(await ids(stage, session)).toEqual(before);
    const [by, reason] = ['a'.repeat(200), 'r'.repeat(1_700)];
    const whole = {
      ...(await latestWith(stage, session, planOf('new'))),
      transcript: [],
      scratchpadRoot: '/s',
    };
    expect(await stage.saver.put(session.id, whole, { metadata: { by, reason } })).toMatchObject({
      state: { notices: [{ message: `${by} edited transcript, plan, scratchpadRoot: ${reason}` }] },
    });
  });

  test('takes no step, and has no steps', async () => {
    const stage = await openSessionStage([{ text: 'One.' }]);
    const session = await idle(stage);
    expect(await rejection(stage.saver.putStep(session.id, 'key', 1))).toMatchObject({ code: 'CONFLICT' });
    expect(await stage.saver.listSteps(session.id)).toEqual([]);
    expect(await stage.saver.getStep(session.id, 'key')).toBeNull();
  });
});

describe('while a turn runs a put is refused', () => {
  test('and taken when the turn is over: as the model is asked, and paused half way', async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const stage = await openSessionStage(async ({ assistantCount }) => {
      if (assistantCount > 0) return { text: 'Seen.' };
      await released;
      return LOOK_UP;
    });
    const session = await stage.sessions.start('looker', { id: stage.id(), message: 'Look there.' });
    await expect
      .poll(async () => (await stage.saver.get(session.id))?.metadata['phase'], { timeout: 60_000 })
      .toBe('thinking');
    await expectBusy(stage, session);
    await session.pause({ by: 'ada' });
    await untilPhase(session, 'paused');
    await expectBusy(stage, session);
    release();
    // The reply is there, and its call is not issued: the turn is not over.
    await expect.poll(async () => (await session.state()).turn, { timeout: 60_000 }).toBe(1);
    expect(stage.looked).toEqual([]);
    await expectBusy(stage, session);

    await session.resume();
    await untilPhase(session, 'idle');
    const edited = await stage.saver.put(session.id, await rewritten(stage, session), BY);
    expect(edited.state['transcript']).toMatchObject([{ blocks: [{ text: 'Look kindly.' }] }, {}, {}, {}]);
    expect(stage.looked).toHaveLength(1);
    await expectFoldEqualsLive(stage.client, session);
  });

  test('as a call waits for a person', async () => {
    const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }], { needsApproval: true });
    const session = await stage.sessions.start('looker', { id: stage.id(), message: 'Look there.' });
    await untilPhase(session, 'approval');
    await expectBusy(stage, session);
    await decide(session, 'call_1_0', { decision: 'approve' });
    await untilPhase(session, 'idle');
    const edited = await stage.saver.put(session.id, await rewritten(stage, session), BY);
    expect(edited.state['notices']).toMatchObject([{ kind: 'edit' }]);
    expect(await expectFoldEqualsLive(stage.client, session)).toEqual(edited.state);
  });
});

test('a put on a paused session is what the model sees when it goes on', async () => {
  const stage = await openSessionStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const session = await idle(stage);
  await session.pause({ by: 'ada' });
  await session.send('And there.');
  await untilPhase(session, 'paused');
  const edited = await stage.saver.put(session.id, await rewritten(stage, session), BY);
  expect(edited).toMatchObject({
    metadata: { phase: 'paused' },
    state: {
      transcript: [{ blocks: [{ text: 'Look kindly.' }] }, {}],
      inbox: [{ text: 'And there.' }],
      notices: [{ kind: 'edit', message: 'ada edited transcript: kinder' }],
    },
  });
  expect(await stage.saver.get(session.id)).toEqual(edited);
  expect(stage.model.requests).toHaveLength(1);
  await session.resume();
  await untilPhase(session, 'idle');
  const texts = stage.model.requests.at(-1)?.request.messages.map(({ text }) => text);
  expect(texts).toEqual(['Look.', 'Look kindly.', 'heard Look there.', 'And there.']);
  await expectFoldEqualsLive(stage.client, session);
});

test('a put on a closed session is refused, however it was closed, also with no worker', async () => {
  const stage = await openSessionStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const task = await stage.sessions.start('looker', { id: stage.id(), message: 'Do.', mode: 'task' });
  await task.result();
  const cancelled = await idle(stage);
  await cancelled.cancel({ by: 'ada', reason: 'enough' });
  await cancelled.result();
  const terminated = await idle(stage);
  await stage.client.workflow.getHandle(terminated.id).terminate('by hand');
  const refused = async (): Promise<void> => {
    for (const session of [task, cancelled, terminated]) {
      const before = await stage.saver.list(session.id, { limit: 1_000 });
      expect(before.length).toBeGreaterThan(1);
      for (const state of [await rewritten(stage, session), before[0]?.state ?? {}]) {
        expect(await rejection(stage.saver.put(session.id, state, BY))).toMatchObject({
          code: 'SESSION_CLOSED',
          message: expect.stringContaining(session.id) as string,
        });
      }
      expect(await stage.saver.list(session.id, { limit: 1_000 })).toEqual(before);
    }
  };
  await refused();
  await stage.worker.stop();
  await refused();
});

describe('a put of the plan and the scratchpad', () => {
  const PLAN = [
    { id: 's1', title: 'Look', postconditions: ['seen'], evidence: [], status: 'in_progress' as const },
    { id: 's2', title: 'Tell', postconditions: [], evidence: [], status: 'pending' as const },
  ];

  test('changes them together with the transcript, and what runs next has them', async () => {
    const stage = await openSessionStage(({ lastUserText, stepInTurn }) =>
      lastUserText === 'Look.' && stepInTurn === 0 ? LOOK_UP : { text: 'Seen.' },
    );
    const session = await idle(stage);
    expect(await session.plan()).toEqual([]);
    const planned = await latestWith(stage, session, (state) => {
      state.plan = PLAN;
    });
    const first = await stage.saver.put(session.id, planned, BY);
    expect(first.state).toMatchObject({
      plan: PLAN,
      scratchpadRoot: null,
      notices: [{ message: 'ada edited plan: kinder' }],
    });
    expect(await session.plan()).toEqual(PLAN);

    const all = await latestWith(stage, session, (state) => {
      state.plan = PLAN.slice(1);
      state.scratchpadRoot = '/scratch/1';
      state.transcript = [];
    });
    const second = await stage.saver.put(session.id, all, BY);
    expect(second).toMatchObject({
      parent_id: first.id,
      state: { plan: PLAN.slice(1), scratchpadRoot: '/scratch/1', transcript: [], position: { count: 0 } },
    });
    expect((second.state['notices'] as object[])[1]).toMatchObject({
      message: 'ada edited transcript, plan, scratchpadRoot: kinder',
    });
    expect(await stage.saver.get(session.id)).toEqual(second);
    await session.send('Look.');
    await untilPhase(session, 'idle');
    expect(stage.looked).toEqual([{ at: 'here', scratchpadRoot: '/scratch/1' }]);
    expect((await expectFoldEqualsLive(stage.client, session)).plan).toEqual(PLAN.slice(1));
  });

  test('is refused where it is none, and nothing is recorded', async () => {
    const stage = await openSessionStage([{ text: 'One.' }]);
    const session = await idle(stage);
    const rooted = await latestWith(stage, session, (state) => {
      state.scratchpadRoot = '/scratch/1';
    });
    const { state } = await stage.saver.put(session.id, rooted, BY);
    const before = await ids(stage, session);
    const without = (field: string): JsonObject =>
      Object.fromEntries(Object.entries(state).filter(([key]) => key !== field));
    const refused: [JsonObject, field: string][] = [
      [{ ...state, plan: 5 }, 'plan'],
      [{ ...state, plan: [{ ...PLAN[0], status: 'soon' }] }, 'plan'],
      [without('plan'), 'plan'],
      // There is no going back to none: tools may have written there.
      [{ ...state, scratchpadRoot: null }, 'scratchpadRoot'],
      [{ ...state, scratchpadRoot: 5 }, 'scratchpadRoot'],
      [without('scratchpadRoot'), 'scratchpadRoot'],
      [{ ...state, transcript: 'One.' }, 'transcript'],
      [{ ...state, transcript: [...(state['transcript'] as JsonObject[]), { role: 'user' }] }, 'transcript'],
      [{ ...state, transcript: [null] }, 'transcript'],
      [without('transcript'), 'transcript'],
    ];
    for (const [put, field] of refused) {
      expect(await rejection(stage.saver.put(session.id, put, BY)), JSON.stringify(put[field])).toMatchObject(
        {
          code: 'INVALID_ARGUMENT',
          message: expect.stringContaining(field) as string,
        },
      );
    }
    expect(await ids(stage, session)).toEqual(before);
    // As it was read it may be handed back: an edit of nothing.
    expect((await stage.saver.put(session.id, state, BY)).state['scratchpadRoot']).toBe('/scratch/1');
  });
});
