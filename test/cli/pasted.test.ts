/** A printed next command can always be pasted. */
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

/** The commands that `show` prints for a session, each as its words. */
async function printed(id: string): Promise<string[][]> {
  const { stdout } = await stage.perdure('show', id);
  return [...stdout.matchAll(/^ +(?:next|or): (perdure .*)$/gm)].map(([, line = '']) => wordsOf(line));
}

test('each way to resolve a call is a command of its own, and does what it says', async () => {
  const id = stage.id("it's lost");
  await stage.begin(id, 'support', 'refund lost:100');
  await untilPhase(stage.session(id), 'unknown_effect');
  const commands = await printed(id);
  const digest: unknown = expect.stringMatching(/^[0-9a-f]{12}$/);
  expect(commands).toEqual(
    ['landed', 'absent', 'failed'].map((outcome) => [
      'resolve',
      id,
      'call_1_0',
      outcome,
      '--digest',
      digest,
      '--dispatch',
      '1',
    ]),
  );
  expect(await stage.json(...(commands[0] ?? []))).toMatchObject({ outcome: 'landed', status: 'completed' });
});

test('a used-up budget names a cap that lets the session go on, and the way to let it finish', async () => {
  const id = stage.id('poor');
  await stage.json('start', 'support', 'order 1', '--id', id, '--turns', '1');
  await untilPhase(stage.session(id), 'waiting');
  const commands = await printed(id);
  expect(commands).toEqual([
    ['budget', id, '--turns', '4'],
    ['budget', id, '--finish'],
  ]);
  await stage.perdure(...(commands[0] ?? []));
  expect(await untilPhase(stage.session(id), 'idle')).toMatchObject({ lastText: 'done: order 1' });
});

test('what only a person knows is a placeholder that is refused as a value', async () => {
  const id = stage.id('placeholder');
  await stage.begin(id, 'support', 'refund ch_1:9000');
  await untilPhase(stage.session(id), 'approval');
  const commands = await printed(id);
  expect(commands.map(([verb]) => verb)).toEqual(['approve', 'reject', 'edit', 'respond']);
  for (const words of commands.slice(2)) {
    const ran = await stage.perdure(...words, '--json');
    expect(errorOf(ran)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('replace <json>'),
    });
  }
  expect((await stage.session(id).state()).phase).toBe('approval');
  expect(await stage.json(...(commands[0] ?? []))).toMatchObject({ decision: 'approve' });
});
