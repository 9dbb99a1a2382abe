/** `perdure values`: stored values are written out, counted and removed. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { DirectoryValues, Sessions } from '../../src/index.ts';
import { Values } from '../../src/values/index.ts';
import { untilPhase } from '../support/stage.ts';
import { errorOf, run } from './support/perdure.ts';
import { AGENTS, openStage } from './support/stage.ts';

test('a worker takes its store from PERDURE_VALUES, and values are got and pruned', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const stage = await openStage();
  onTestFinished(() => stage.close());
  const { address, namespace } = inject('temporal');
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  const client = new Client({ connection, namespace });
  const values = new DirectoryValues(join(folder, 'values'));
  const env = { ...stage.env, PERDURE_VALUES: join(folder, 'values') };
  const worker = stage.start(['worker', AGENTS, '--json'], { env });
  onTestFinished(async () => {
    worker.child.kill('SIGTERM');
    await worker.ended;
  });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue, values });
  const id = stage.id('file');
  const parts = [{ type: 'image', image: Buffer.from('89504e470d0a1a0a', 'hex') }] as const;
  const session = await sessions.start('echo', { id, message: { text: 'Look.', parts } });
  await untilPhase(session, 'idle');
  expect((await session.state()).lastText).toContain('you said');
  const [block] = (await session.transcript()).items[0]?.blocks ?? [];
  const digest = block?.kind === 'file' ? (block.value?.digest ?? '') : '';

  const output = join(folder, 'image.png');
  const got = await run(['values', 'get', id, digest, '--output', output], { env });
  expect([got.code, got.stdout]).toEqual([0, `wrote 8 bytes of image/png to ${output}\n`]);
  expect(readFileSync(output).toString('hex')).toBe('89504e470d0a1a0a');
  const shown = await run(['show', id], { env });
  expect(shown.stdout).toContain(`[file: image/png, 8 bytes, ${digest}]`);

  await new Values(values, client).put({ bytes: Buffer.from('lost'), mediaType: 'text/plain' }, 'gone');
  const counted = await run(['values', 'prune', '--older-than', '0s'], { env });
  expect([counted.code, counted.stderr]).toEqual([0, '']);
  expect(counted.stdout).toMatch(
    /nobody refers to +1 values, \d+ bytes\n {2}next: perdure values prune --remove\n$/,
  );
  const removed = await run(['values', 'prune', '--older-than', '0s', '--remove', '--json'], { env });
  expect(JSON.parse(removed.stdout)).toMatchObject({
    removed: true,
    referred: { values: 1 },
    unreferred: { values: 1 },
  });
  const gone = await run(['values', 'get', 'gone', digest, '--json'], { env });
  expect([gone.code, errorOf(gone).code]).toEqual([3, 'VALUE_NOT_FOUND']);
  const storeless = await run(['values', 'prune', '--json'], { env: stage.env });
  expect(errorOf(storeless)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('set PERDURE_VALUES'),
  });
});
