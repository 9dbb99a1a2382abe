/** The server drops an update that was in a workflow task of a lost worker: it was not done, and is sent again. */
import { Client, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { expect, test } from 'vitest';
import { defineAgent, Sessions } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('it is sent again until a worker looks at it, and taken once', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await stage.startWorker([defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Echo.' })]);
  const session = await stage.sessions.start('echo', { id: stage.id() });
  await untilPhase(session, 'idle');

  let dropped = 0;
  const client = new Client({
    connection: stage.client.connection,
    namespace: stage.client.options.namespace,
    interceptors: {
      workflow: [
        {
          // The server's own words, for it cannot be brought to say them at will.
          startUpdate: (input, next) => {
            if (dropped === 2) return next(input);
            dropped += 1;
            const cause = ApplicationFailure.nonRetryable(
              "Workflow Update is rejected because it wasn't processed by worker.",
              'UnprocessedUpdate',
            );
            throw new WorkflowUpdateFailedError('Workflow Update failed', cause);
          },
        },
      ],
    },
  });
  await new Sessions(client, { taskQueue: stage.taskQueue }).get(session.id).send({ id: 'm', text: 'hello' });
  expect(dropped).toBe(2);
  await untilPhase(session, 'idle');
  const { items } = await session.transcript();
  expect(items.map(({ role }) => role)).toEqual(['user', 'assistant']);
});
