/** A deploy from the command line: workers with versions, what runs where, and moving sessions. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { VersionSummary } from '../../src/index.ts';
import { until, untilPhase } from '../support/stage.ts';
import { errorOf, type Running } from './support/perdure.ts';
import { AGENTS, type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
const workers: Running[] = [];
beforeAll(async () => {
  stage = await openStage();
});
afterAll(async () => {
  for (const { child } of workers) child.kill('SIGTERM');
  await Promise.all(workers.map(({ ended }) => ended));
  await stage.close();
});

async function startVersion(deployment: string, buildId: string): Promise<Running> {
  const worker = stage.start(['worker', AGENTS, '--pinned'], {
    env: { TEMPORAL_DEPLOYMENT_NAME: deployment, TEMPORAL_WORKER_BUILD_ID: buildId },
  });
  workers.push(worker);
  await worker.line(
    (line) => line.startsWith('ready:') && line.includes(`version ${buildId} of ${deployment}`),
  );
  return worker;
}

test('a deploy: a version becomes current, sessions are listed by version, moved, and go on there', async () => {
  const deployment = stage.id('desk');
  const current = (buildId: string): Promise<unknown> =>
    stage.json('versions', 'set-current', buildId, '--deployment', deployment);
  const old = await startVersion(deployment, 'one');
  await current('one');
  const ids = [stage.id('a'), stage.id('b')];
  for (const id of ids) {
    await stage.begin(id, 'echo', 'hello');
    await untilPhase(stage.session(id), 'idle');
  }
  const next = await startVersion(deployment, 'two');
  await current('two');
  const listed = async (): Promise<unknown[]> => {
    const { versions } = await stage.json<{ versions: VersionSummary[] }>('versions');
    const own = versions.filter((version) => version.deployment === deployment);
    return own.map(({ buildId, status, sessions }) => `${buildId} ${status} ${sessions}`);
  };
  await expect.poll(listed).toEqual(['two current 0', 'one draining 2']);
  const { stdout } = await stage.perdure('versions');
  const move = `perdure versions move --to two --deployment ${deployment} --all`;
  expect(stdout).toMatch(new RegExp(`${deployment} +one +draining +2 +1`));
  expect(stdout).toContain(`next: ${move}`);

  const [first = '', second = ''] = ids;
  const one = await stage.json('versions', 'move', first, '--to', 'two', '--deployment', deployment);
  expect(one).toMatchObject({ sessionId: first, moved: true, from: { buildId: 'one' } });
  const all = await stage.perdure('versions', 'move', '--to', 'two', '--deployment', deployment, '--all');
  expect(all.code).toBe(0);
  expect(all.stdout.trim().split('\n').sort()).toEqual([
    `${first} is on two already`,
    `moved ${second} from one to two`,
  ]);
  expect(all.stderr).toContain('1 moved, 1 were there, 0 did not move');
  old.child.kill('SIGTERM');
  await old.ended;
  for (const id of ids) {
    await stage.json('send', id, 'and now?');
    await until(stage.session(id), ({ lastText }) => lastText === 'you said: and now?');
  }

  const nobody = stage.id('nobody');
  const failed = await stage.perdure(
    '--json',
    'versions',
    'move',
    nobody,
    '--to',
    'two',
    '--deployment',
    deployment,
  );
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.stdout)).toMatchObject({
    sessionId: nobody,
    moved: false,
    error: { code: 'SESSION_NOT_FOUND', next: 'perdure ls' },
  });
  next.child.kill('SIGTERM');
  const { stderr } = await old.ended;
  expect(stderr).toContain(
    `no version of ${deployment} is current, so new sessions wait. Make this one current: perdure versions set-current one --deployment ${deployment}`,
  );
}, 180_000);

test.each([
  ['nothing', ['versions', 'move', '--to', 'two'], 'session: name one or more, or add --all'],
  [
    'both',
    ['versions', 'move', 'a', '--all', '--to', 'two'],
    'session: leave out the sessions, or leave out --all',
  ],
  [
    'an unknown version',
    ['versions', 'move', 'a', '--to', 'nowhere'],
    'build: no worker has registered version nowhere',
  ],
  ['--pinned alone', ['worker', AGENTS, '--pinned'], '--pinned needs --deployment <name>'],
])('%s: refused in words', async (_name, args, message) => {
  const ran = await stage.perdure('--json', ...args);
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(errorOf(ran).message).toContain(message);
});
