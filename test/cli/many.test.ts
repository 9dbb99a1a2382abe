/** Looking after many sessions: what they wait for, and letting all of them go on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { InboxItem } from '../../src/index.ts';
import { untilPhase } from '../support/stage.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
let logged = '';
beforeAll(async () => {
  stage = await openStage();
  const worker = await stage.startWorker();
  worker.child.stderr?.on('data', (text: string) => {
    logged += text;
  });
});
afterAll(() => stage.close());

test('ls shows what a session waits for and its task queue, and resume --all lets those of a filter go on', async () => {
  const tenant = `acme-${stage.taskQueue}`;
  const poor = [stage.id('poor'), stage.id('poor')];
  const asking = stage.id('asking');
  for (const id of poor)
    await stage.json(
      'start',
      'support',
      'order 1',
      '--id',
      id,
      '--context',
      JSON.stringify({ tenant }),
      '--turns',
      '1',
    );
  await stage.json(
    'start',
    'support',
    'refund ch_1:9000',
    '--id',
    asking,
    '--context',
    JSON.stringify({ tenant }),
  );
  for (const id of poor) await untilPhase(stage.session(id), 'waiting');
  await untilPhase(stage.session(asking), 'approval');
  const listed = async (): Promise<string> => (await stage.perdure('ls', '--tenant', tenant)).stdout;
  await expect.poll(listed).toMatch(/waiting: budget.*\n.*waiting: budget/);
  expect(await listed()).toContain('approval: refund');
  const shown = await stage.perdure('inbox', '--tenant', tenant);
  expect(shown.stdout).toMatch(
    new RegExp(
      `^${asking}  support  waits for approval\n  refund .*9000.*\n  The agent asks to run refund\\.`,
      'm',
    ),
  );
  expect(shown.stdout).toContain(`  perdure approve ${asking} call_1_0 --digest `);
  expect(shown.stdout).toContain(`  perdure budget ${poor[0]} --turns `);
  const items = (await stage.perdure('inbox', '--tenant', tenant, '--json')).stdout.trim().split('\n');
  expect(items.map((line) => (JSON.parse(line) as InboxItem).kind).sort()).toEqual([
    'approval',
    'budget',
    'budget',
  ]);
  const elsewhere = await stage.perdure('ls', '--tenant', tenant, '--task-queue', 'other');
  expect(elsewhere.stdout).toMatch(new RegExp(`  ${stage.taskQueue}  `));

  const before = await Promise.all(poor.map(async (id) => (await stage.session(id).state()).wait?.since));
  const none = await stage.perdure('resume', '--all', '--tenant', tenant, '--reason', 'loop');
  expect(none).toMatchObject({ code: 0, stdout: '' });
  const all = await stage.perdure('resume', '--all', '--tenant', tenant, '--reason', 'budget', '--yes');
  expect(all.stdout.trim().split('\n').sort()).toEqual(
    poor.map((id) => `asked ${id} to continue (budget)`).sort(),
  );
  // Without more budget each waits again.
  for (const [index, id] of poor.entries())
    await expect.poll(async () => (await stage.session(id).state()).wait?.since).not.toBe(before[index]);
});

test('the worker logs a lost call, an unknown effect and a wait', async () => {
  const lost = stage.id('lost');
  await stage.begin(lost, 'support', 'refund lost:100');
  await untilPhase(stage.session(lost), 'unknown_effect');
  const poor = stage.id('broke');
  await stage.json('start', 'support', 'order 1', '--id', poor, '--turns', '1');
  await untilPhase(stage.session(poor), 'waiting');
  for (const line of [
    `session ${lost} lost dispatch 1 of refund call_1_0: `,
    `session ${lost} the outcome of refund call_1_0 is unknown: `,
    `session ${poor} waits: budget: turns: `,
  ])
    await expect.poll(() => logged).toContain(line);
});

test('doctor knows at once that a worker of this machine has died', async () => {
  const id = stage.id('orphan');
  await stage.begin(id, 'support', 'refund ch_2:9000');
  await untilPhase(stage.session(id), 'approval');
  const doomed = stage.start([
    'worker',
    (await import('./support/stage.ts')).AGENTS,
    '--json',
    '--task-queue',
    `${stage.taskQueue}-2`,
  ]);
  await doomed.line((line) => line.includes('"ready"'));
  doomed.child.kill('SIGKILL');
  await doomed.ended;
  const examined = await stage.perdure('doctor', '--task-queue', `${stage.taskQueue}-2`);
  expect(examined.stdout).toMatch(/^problem +workers .*no worker polls .*; no longer alive: \d+@\S+$/m);
});
