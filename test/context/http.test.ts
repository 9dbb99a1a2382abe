/** The context over HTTP. */
import { expect, onTestFinished, test } from 'vitest';
import { TemporalSaver } from '../../src/index.ts';
import { openApi } from '../http/support/api.ts';
import { openStage } from '../support/stage.ts';

test('a session is started with a context over HTTP, and a wrong one is refused with its field', async () => {
  const stage = await openStage(() => ({ text: 'Done.' }));
  const { taskQueue, client } = stage;
  const { call, close } = await openApi(new TemporalSaver(client, { taskQueue }), { taskQueue });
  onTestFinished(close);
  const id = stage.id();
  const context = { tenant: 'acme', userId: 'u-7' };
  const start = { agent: 'desk', id, context };
  expect(await call('POST /sessions', { json: start })).toMatchObject({ status: 201, body: { id } });
  expect(await call(`GET /sessions/${id}`)).toMatchObject({ status: 200, body: { context } });
  const wrong = await call('POST /sessions', { json: { ...start, context: { tenant: 7 } } });
  expect(wrong).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(wrong.body).toMatchObject({ error: { details: { field: 'context.tenant' } } });
  const { body } = await call('GET /openapi.json');
  expect(body).toMatchObject({
    components: {
      schemas: {
        StartInput: {
          properties: { context: { properties: { tenant: { type: 'string', maxLength: 200 } } } },
        },
      },
    },
  });
});
