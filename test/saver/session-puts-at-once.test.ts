import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { type Checkpoint, isPerdureError, type PutOptions, TemporalSaver } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { untilPhase } from '../support/stage.ts';
import { BY, changed, ids, latestOf, latestWith, planOf, rewrite } from './support/session-changes.ts';
import { idle, openSessionStage, type SessionStage } from './support/session-stage.ts';

/** A saver of another process, which does something after its look at the session, right before its edit is sent. */
function otherSaver({ client, taskQueue }: SessionStage, beforeEdit: () => Promise<unknown>): TemporalSaver {
  const { connection } = client;
  const { namespace } = client.options;
  const interceptor: WorkflowClientInterceptor = {
    startUpdate: async (input, next) => {
      await beforeEdit();
      return next(input);
    },
  };
  return new TemporalSaver(new Client({ connection, namespace, interceptors: { workflow: [interceptor] } }), {
    taskQueue,
  });
}

const heard = ({ lastUserText }: { lastUserText: string }): { text: string } => ({
  text: `heard ${lastUserText}`,
});

describe('a put is told the record of its own edit', () => {
  test('when another client pauses and resumes between its look and its edit', async () => {
    const stage = await openSessionStage(heard);
    const session = await idle(stage);
    const before = await latestOf(stage, session);
    const saver = otherSaver(stage, async () => {
      await session.pause({ by: 'bob' });
      await untilPhase(session, 'paused');
      await session.resume({ by: 'bob' });
      await untilPhase(session, 'idle');
    });
    const edited = await saver.put(session.id, changed(before, rewrite), { ...BY, parentId: before.id });
    expect(edited.state).toMatchObject({
      transcript: [{ blocks: [{ text: 'Look kindly.' }] }, {}],
      pauses: [{ by: 'bob' }],
      notices: [{ kind: 'edit', message: 'ada edited transcript: kinder' }],
    });
    const all = await stage.saver.list(session.id, { limit: 1_000 });
    // What came between is between them.
    expect(all.findIndex(({ id }) => id === before.id)).toBeGreaterThan(1);
    expect(all.find(({ id }) => id === edited.parent_id)?.state['notices']).toEqual([]);
    expect(all).toContainEqual(edited);
    await expectFoldEqualsLive(stage.client, session);
  });

  test('when the session has gone on since it was read, with nothing that an edit can change', async () => {
    const stage = await openSessionStage(heard);
    const session = await idle(stage);
    const read = await latestOf(stage, session);
    await session.pause({ by: 'bob' });
    await untilPhase(session, 'paused');
    const state = changed(read, rewrite);
    // Without the parent, the pause would be what was changed.
    expect(await rejection(stage.saver.put(session.id, state, BY))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('/pause') as string,
      details: { field: 'state' },
    });
    const edited = await stage.saver.put(session.id, state, { ...BY, parentId: read.id });
    expect(edited).toMatchObject({
      metadata: { phase: 'paused' },
      state: { paused: { by: 'bob' }, transcript: [{ blocks: [{ text: 'Look kindly.' }] }, {}] },
    });
    expect(await stage.saver.get(session.id)).toEqual(edited);
  });

  test.each([
    ['the plan', planOf("bob's")],
    [
      'the scratchpad',
      (state) => {
        state.scratchpadRoot = '/scratch/bob';
      },
    ],
    ['the transcript', rewrite],
  ] satisfies [string, Parameters<typeof changed>[1]][])(
    'or refused, when %s is changed between its look and its edit',
    async (_name, change) => {
      const stage = await openSessionStage(heard);
      const session = await idle(stage);
      const before = await latestOf(stage, session);
      const bobs = await stage.saver.list(session.id, { limit: 1 });
      let wanted: Checkpoint | undefined;
      const saver = otherSaver(stage, async () => {
        wanted ??= await stage.saver.put(session.id, changed(bobs[0] as Checkpoint, change), {
          metadata: { by: 'bob', reason: 'first' },
        });
      });
      const mine = changed(before, planOf("ada's"));
      expect(await rejection(saver.put(session.id, mine, { ...BY, parentId: before.id }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: { field: 'parentId' },
      });
      expect(await stage.saver.get(session.id)).toEqual(wanted);
      // On what is there now it is made.
      const again = { ...BY, parentId: wanted?.id };
      const made = await saver.put(session.id, changed(wanted as Checkpoint, planOf("ada's")), again);
      expect(made.state).toMatchObject({ plan: [{ title: "ada's" }], notices: [{}, {}] });
    },
  );

  test('or refused as busy without a parent, when the plan is changed between', async () => {
    const stage = await openSessionStage(heard);
    const session = await idle(stage);
    const saver = otherSaver(stage, () => session.edit({ plan: [], scratchpadRoot: '/bob', by: 'bob' }));
    const mine = await latestWith(stage, session, planOf("ada's"));
    expect(await rejection(saver.put(session.id, mine, BY))).toMatchObject({
      code: 'SESSION_BUSY',
      details: { field: 'basis' },
    });
    expect(await session.plan()).toEqual([]);
  });
});

test('of puts of two savers on one parent one is made, also in one workflow task, and the other is refused', async () => {
  const stage = await openSessionStage(heard);
  const session = await idle(stage);
  await stage.worker.stop();
  // With no worker both wait for the next one, whose first task brings both.
  for (let i = 0; i < 3; i++) {
    const parent = await latestOf(stage, session);
    let sent = 0;
    const put = (name: string): Promise<Checkpoint> =>
      otherSaver(stage, () => Promise.resolve(sent++)).put(session.id, changed(parent, planOf(name)), {
        parentId: parent.id,
        metadata: { by: name, reason: 'at once' },
      });
    const puts = Promise.allSettled([put(`x${i}`), put(`y${i}`)]);
    await expect.poll(() => sent, { timeout: 60_000 }).toBe(2);
    const worker = await stage.startWorker([stage.agent]);
    const outcomes = await puts;
    const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    expect(made).toHaveLength(1);
    expect(refused).toMatchObject([{ code: 'INVALID_ARGUMENT', details: { field: 'parentId' } }]);
    expect(made[0]?.state).toMatchObject({ plan: await session.plan() });
    const { notices } = await expectFoldEqualsLive(stage.client, session);
    expect(notices).toHaveLength(i + 1);
    await worker.stop();
  }
});

describe('the same put again on the same parent', () => {
  test('is the record of the first: at once, later, when the session has gone on, and when it is closed', async () => {
    const stage = await openSessionStage(heard);
    const session = await idle(stage);
    const parent = await latestOf(stage, session);
    const put = (options: PutOptions = {}): Promise<Checkpoint> =>
      new TemporalSaver(stage.client, { taskQueue: stage.taskQueue }).put(
        session.id,
        changed(parent, planOf("ada's")),
        { ...BY, parentId: parent.id, ...options },
      );
    const [first, atOnce] = await Promise.all([put(), put()]);
    expect(atOnce).toEqual(first);
    const all = await ids(stage, session);
    expect(await put()).toEqual(first);
    expect(await ids(stage, session)).toEqual(all);
    await session.send('And there.');
    await untilPhase(session, 'idle');
    expect(await put()).toEqual(first);
    // Another who, or another why, is another put, and its parent is of the past.
    for (const metadata of [
      { by: 'bob', reason: 'kinder' },
      { by: 'ada', reason: 'truer' },
    ]) {
      expect(await rejection(put({ metadata }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: { field: 'parentId' },
      });
    }
    expect((await expectFoldEqualsLive(stage.client, session)).notices).toHaveLength(1);
    await session.cancel({ by: 'ada' });
    await session.result();
    expect(await put()).toEqual(first);
  });

  test('is looked at anew after a refusal, and makes an edit back and forth each time', async () => {
    const stage = await openSessionStage(heard);
    const session = await idle(stage);
    const titles: string[] = [];
    for (const title of ['one', 'two', 'one', 'two']) {
      const parent = await latestOf(stage, session);
      const made = await stage.saver.put(session.id, changed(parent, planOf(title)), BY);
      titles.push((made.state['plan'] as { title: string }[])[0]?.title ?? '');
    }
    expect(titles).toEqual(['one', 'two', 'one', 'two']);

    // Of a transcript that no provider takes nothing stays: when it is one, the same parent still takes it.
    const parent = await latestOf(stage, session);
    const orphan = (state: JsonObject): JsonObject => ({
      ...state,
      transcript: [{ id: 'm', role: 'tool', created_at: parent.created_at, blocks: [] }, { id: 'm' }],
    });
    const options = { ...BY, parentId: parent.id };
    for (let i = 0; i < 2; i++) {
      const refused = await rejection(stage.saver.put(session.id, orphan(parent.state), options));
      expect(isPerdureError(refused, 'INVALID_ARGUMENT')).toBe(true);
    }
    const made = await stage.saver.put(session.id, changed(parent, rewrite), options);
    expect(made.state).toMatchObject({ transcript: [{ blocks: [{ text: 'Look kindly.' }] }, {}] });
  });
});
