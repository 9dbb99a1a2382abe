/** Schedules from the command line. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/stage.ts';
import { errorOf, type Ran } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

async function failed(ran: Promise<Ran>, code: number): Promise<unknown> {
  const result = await ran;
  expect(result.code).toBe(code);
  return errorOf(result);
}

test('a schedule is created, starts a session when told so, is listed, paused, resumed and deleted', async () => {
  const id = stage.id('nightly');
  const create = ['schedule', 'create', 'echo', 'good night', '--id', id, '--cron', '0 3 * * *'];
  const created = await stage.json(...create, '--timezone', 'Europe/Berlin', '--overlap', 'buffer-one');
  expect(created).toMatchObject({ schedule: id, agent: 'echo', next: expect.stringMatching(/T0[12]:00:00/) });
  expect(await failed(stage.perdure('--json', ...create), 4)).toMatchObject({ code: 'CONFLICT' });

  await stage.json('schedule', 'run', id);
  const listed = async (): Promise<string | undefined> =>
    (await stage.perdure('schedule')).stdout.split('\n').find((line) => line.includes(`${id} `));
  await expect.poll(listed).toMatch(new RegExp(`${id} +active +\\S+Z +${id}-\\S+Z`));
  const sessionId = (await listed())?.trim().split(/ +/).at(-1) ?? '';
  await until(stage.session(sessionId), ({ phase }) => phase === 'closed');

  await stage.json('schedule', 'pause', id);
  await expect.poll(listed).toMatch(/ paused +- /);
  await stage.json('schedule', 'resume', id);
  await stage.json('schedule', 'delete', id);
  expect(await failed(stage.perdure('--json', 'schedule', 'run', id), 2)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: `schedule: there is no schedule ${id}. List them: perdure schedule ls`,
  });
});

test.each([
  [['--cron', '0 3 * * *', '--every', '1h'], '--cron: give either --cron or --every'],
  [[], '--cron: give either --cron or --every'],
  [['--every', '1h', '--timezone', 'UTC'], '--timezone: needs --cron'],
  [['--cron', 'at night'], 'spec: '],
])('a time of %j is refused, and says what is wrong', async (options, message) => {
  const args = ['schedule', 'create', 'echo', 'x', '--id', stage.id('bad'), ...options];
  expect(await failed(stage.perdure('--json', ...args), 2)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(message),
  });
});
