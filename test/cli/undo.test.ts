/** Commands of which a person needs one now and then: undo, wake, tree. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SessionState } from '../../src/index.ts';
import { untilPhase } from '../support/stage.ts';
import { errorOf } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

async function refunded(): Promise<string> {
  const id = stage.id('undo');
  await stage.begin(id, 'support', 'refund ch_1:100 ch_2:200');
  await untilPhase(stage.session(id), 'idle');
  return id;
}

test('cancel --undo shows what it would undo, and asks for a confirmation of it', async () => {
  const id = await refunded();
  const refused = await stage.perdure('cancel', id, '--undo', '--json');
  expect(refused.code).not.toBe(0);
  expect(errorOf(refused)).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect((await stage.session(id).state()).phase).toBe('idle');

  const { code, stderr } = await stage.perdure('cancel', id, '--undo', '--yes', '--by', 'ada');
  expect([code, stderr]).toEqual([0, expect.stringContaining('To be undone, in this order:')]);
  const lines = stderr.split('\n').filter((line) => line.includes('->'));
  expect(lines.map((line) => line.trim())).toEqual([
    'refund {"chargeId":"ch_2","cents":200} -> {"refunded":200}  [call_1_1]',
    'refund {"chargeId":"ch_1","cents":100} -> {"refunded":100}  [call_1_0]',
  ]);
  expect(await stage.session(id).result()).toMatchObject({ status: 'cancelled' });
  const { calls } = await stage.session(id).snapshot();
  expect(calls.map(({ id: call, decision }) => [call, decision?.by])).toEqual([
    ['call_1_0', undefined],
    ['call_1_1', undefined],
    ['undo_call_1_1', 'ada'],
    ['undo_call_1_0', 'ada'],
  ]);
});

test('cancel --undo --each asks for an approval of each, and --no-undo gives the rest up', async () => {
  const id = await refunded();
  await stage.json('cancel', id, '--undo', '--each');
  const { pending } = await untilPhase(stage.session(id), 'approval');
  const shown = await stage.perdure('show', id);
  expect(shown.stdout).toContain('undo_call_1_1  undoes call_1_1');
  expect(shown.stdout).not.toContain('perdure edit');
  await stage.json('approve', id, 'undo_call_1_1', '--digest', pending[0]?.argsDigest ?? '');
  await stage.json('cancel', id, '--no-undo');
  expect(await stage.session(id).result()).toMatchObject({ status: 'cancelled' });
  const { calls } = await stage.session(id).snapshot();
  expect(calls.find(({ id: call }) => call === 'call_1_0')?.compensatedBy).toBeUndefined();

  // It has ended. What is left can still be undone.
  await stage.json('cancel', id, '--undo', '--yes', '--by', 'ada');
  expect(await stage.session(id).result()).toMatchObject({ status: 'cancelled' });
  const after = await stage.session(id).snapshot();
  expect(after.calls.find(({ id: call }) => call === 'call_1_0')?.compensatedBy).toBeDefined();
});

test('checkpoints rewind --undo undoes what has happened since', async () => {
  const id = await refunded();
  const all = await stage.saver.list(id, { limit: 100 });
  const then = all.find(({ state }) => (state as unknown as SessionState).turn === 0);
  await stage.json('checkpoints', 'rewind', id, then?.id ?? '', '--undo', '--yes', '--message', 'hello');
  await untilPhase(stage.session(id), 'idle');
  const { carried, calls } = await stage.session(id).snapshot();
  expect(carried.filter(({ compensates }) => compensates === undefined).map((each) => each.undone)).toEqual([
    true,
    true,
  ]);
  expect(calls.filter(({ compensates, status }) => compensates && status.kind === 'completed')).toHaveLength(
    2,
  );
});

test('wake ends the wait of a call, and names those that wait', async () => {
  const id = stage.id('sleeper');
  await stage.begin(id, 'desk', 'sleep');
  await expect.poll(async () => (await stage.session(id).state()).sleeping.length).toBe(1);
  const unknown = await stage.perdure('wake', id, 'call_9_0', '--json');
  expect(errorOf(unknown)).toMatchObject({ code: 'UNKNOWN_CALL', details: { sleeping: ['call_1_0'] } });
  expect(await stage.json('wake', id, '--by', 'ada')).toMatchObject({ callId: 'call_1_0', by: 'ada' });
  await untilPhase(stage.session(id), 'idle');
});

test('tree shows a session with its sub-agents, and what waits in it', async () => {
  const id = stage.id('tree');
  await stage.begin(id, 'lead', 'delegate refund ch_1:9000');
  const waits = async (): Promise<string> => (await stage.perdure('tree', id)).stdout;
  await expect.poll(waits).toContain('lead > support waits: "refund call_1_0: approval"');
  const text = await waits();
  expect(text).toMatch(new RegExp(`^lead {2}\\S+.*${id}\n {2}support {2}.*${id}/support\\.`));
  expect(text).toContain('perdure approve');
});
