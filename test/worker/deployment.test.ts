/** The version of a worker: named by the user, or made from the workflow code. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { defineAgent, type SessionWorkerOptions } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type RunningWorker } from '../support/stage.ts';

async function started(options: Partial<SessionWorkerOptions>): Promise<RunningWorker> {
  const stage = await openStage(() => ({ text: 'ok' }));
  const agent = defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Be brief.' });
  return stage.startWorker([agent], options);
}

test('without a build id, the version is that of the package and of the workflow code; sessions upgrade by themselves', async () => {
  const [one, other] = await Promise.all([
    started({ deployment: { name: 'own-names' } }),
    started({ deployment: { name: 'own-names', behavior: 'PINNED' } }),
  ]);
  const { workerDeploymentOptions: options } = one.worker.options;
  expect(options).toMatchObject({
    version: {
      deploymentName: 'own-names',
      buildId: expect.stringMatching(/^\d+\.\d+\.\d+\S*-[0-9a-f]{8}$/),
    },
    useWorkerVersioning: true,
    defaultVersioningBehavior: 'AUTO_UPGRADE',
  });
  expect(other.worker.options.workerDeploymentOptions).toMatchObject({
    version: options?.version,
    defaultVersioningBehavior: 'PINNED',
  });
});

const workflowsPath = fileURLToPath(new URL('support/greeting.ts', import.meta.url));
const version = { deploymentName: 'a', buildId: 'b' };

test.each<[string, Partial<SessionWorkerOptions>, string, RegExp]>([
  [
    'workflows that are bundled later, without a build id',
    { deployment: { name: 'desk' }, workflowsPath },
    'INVALID_DEFINITION',
    /^deployment\.buildId: is missing\. With workflowsPath/,
  ],
  [
    'a name that the server refuses',
    { deployment: { name: 'desk.eu' } },
    'INVALID_ARGUMENT',
    /^deployment\.name: must not be empty and must not contain a dot/,
  ],
  [
    'an empty build id',
    { deployment: { name: 'desk', buildId: '' } },
    'INVALID_ARGUMENT',
    /^deployment\.buildId: must not be empty/,
  ],
  [
    'two kinds of options',
    { deployment: { name: 'desk' }, workerDeploymentOptions: { version, useWorkerVersioning: false } },
    'INVALID_DEFINITION',
    /^deployment: leave out deployment or workerDeploymentOptions/,
  ],
])('%s: the worker does not start, and says what to change', async (_name, options, code, message) => {
  expect(await rejection(started(options))).toMatchObject({ code, message: expect.stringMatching(message) });
});
