import { expect, onTestFinished, test } from 'vitest';
import type { Checkpoint } from '../../src/index.ts';
import { changed, ids, latestOf, planOf, rewrite } from '../saver/support/session-changes.ts';
import { idle, openSessionStage } from '../saver/support/session-stage.ts';
import { openApi } from './support/api.ts';

test('a PUT of a checkpoint of a session edits it, once a parent, with who and why', async () => {
  const stage = await openSessionStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const { call, close } = await openApi(stage.saver, { taskQueue: stage.taskQueue });
  onTestFinished(close);
  const session = await idle(stage);
  const route = `PUT /threads/${session.id}/checkpoints`;
  const parent = await latestOf(stage, session);
  const metadata = { by: 'ada', reason: 'kinder' };
  const json = { state: changed(parent, rewrite), parent_id: parent.id, metadata };
  const before = await ids(stage, session);
  const refused: [json: object, field: string, headers?: Record<string, string>][] = [
    [{ ...json, metadata: undefined }, 'metadata.by'],
    [{ ...json, metadata: { ...metadata, by: 5 } }, 'metadata.by'],
    [{ ...json, metadata: { ...metadata, source: 'session' } }, 'metadata.source'],
    [{ ...json, parent_id: 'nobody' }, 'parent_id'],
    [{ ...json, state: { ...json.state, turn: 7 } }, 'state'],
    [{ ...json, id: 'mine' }, 'id'],
    [json, 'id', { 'idempotency-key': 'mine' }],
  ];
  for (const [body, field, headers = {}] of refused) {
    expect(await call(route, { json: body, headers }), field).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_ARGUMENT', details: { field } } },
    });
  }
  expect(await ids(stage, session)).toEqual(before);

  const edited = await call<Checkpoint>(route, { json });
  expect(edited).toMatchObject({
    status: 200,
    body: {
      thread_id: session.id,
      state: {
        transcript: [{ blocks: [{ text: 'Look kindly.' }] }, {}],
        notices: [{ message: 'ada edited transcript: kinder' }],
      },
    },
  });
  expect((await call(`GET /threads/${session.id}/latest`)).body).toEqual(edited.body);
  expect(await call(route, { json })).toMatchObject({ status: 200, body: edited.body });
  const stale = await call(route, { json: { ...json, state: changed(parent, planOf('late')) } });
  expect(stale.body).toMatchObject({
    error: { code: 'INVALID_ARGUMENT', details: { field: 'parent_id' } },
  });
  const made = await call<{ checkpointId: string }>(`POST /sessions/${session.id}/edit`, {
    json: { plan: [], ...metadata },
  });
  expect((await latestOf(stage, session)).id).toBe(made.body.checkpointId);

  await session.cancel({ by: 'ada' });
  await session.result();
  const closed = { state: (await latestOf(stage, session)).state, metadata };
  expect(await call(route, { json: closed })).toMatchObject({ status: 409, code: 'SESSION_CLOSED' });
});
