import { afterAll, beforeAll, expect, test } from 'vitest';
import { untilPhase } from '../support/stage.ts';
import { errorOf, wordsOf } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

test('pool: the command that a waiting session prints raises the cap, and the session continues', async () => {
  const pool = stage.id('tenant');
  const unset = await stage.perdure('pool', pool, '--json');
  expect(unset.code).toBe(3);
  expect(errorOf(unset)).toMatchObject({ code: 'POOL_NOT_FOUND' });
  expect((await stage.perdure('pool', pool, '--turns', '1')).stdout).toContain('turns      0 of 1');
  const id = stage.id('pooled');
  await stage.json('start', 'echo', 'hello', '--id', id, '--pool', pool);
  await untilPhase(stage.session(id), 'idle');
  await stage.json('send', id, 'again');
  await untilPhase(stage.session(id), 'waiting');
  const shown = await stage.perdure('show', id);
  expect(shown.stdout).toContain(`turns: pool ${pool} has 1 turns: 1 spent, 1 needed`);
  expect(shown.stdout).toContain(`  pool       ${pool}`);
  const [line = ''] = /perdure pool \S+ --turns \d+/.exec(shown.stdout) ?? [];
  expect((await stage.perdure('pool', pool)).stdout).toMatch(/waits {6}\S+: needs /);
  expect(await stage.perdure(...wordsOf(line))).toMatchObject({ code: 0 });
  await untilPhase(stage.session(id), 'idle');
  const free = await stage.perdure('pool', pool, '--turns', 'none');
  expect(free.stderr).toContain('limits: the pool needs a cap');
});
