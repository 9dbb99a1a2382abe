import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Checkpoint, TemporalSaver } from '../../src/index.ts';
import { startServer } from '../../src/server/index.ts';
import { createHarness } from '../../src/testing/index.ts';

test('a put that has returned survives a kill of the worker and of the server', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdure-saver-'));
  const server = await startServer({ dir });
  onTestFinished(async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const harness = await createHarness({
    script: [],
    agents: [],
    module: new URL('../support/effect-agents.ts', import.meta.url),
    server,
  });
  onTestFinished(() => harness.stop());
  const { client, taskQueue } = harness;
  const saver = new TemporalSaver(client, { taskQueue });
  const first = await harness.startWorkerProcess();
  const stored: Checkpoint[] = [];
  // Enough that a segment is among what is killed.
  for (let n = 0; n < 255; n++) stored.push(await saver.put('t', { n }));
  await saver.putStep('t', 'key', 'value');

  await Promise.all([first.crash(), server.kill()]);
  await server.restart();
  await harness.startWorkerProcess();

  const next = new TemporalSaver(client, { taskQueue });
  expect(await next.list('t', { limit: 300 })).toEqual(stored.toReversed());
  expect((await next.getStep('t', 'key'))?.value).toBe('value');
  const after = await saver.put('t', { n: 255 }, { parentId: stored[0]?.id });
  expect(await next.get('t')).toEqual(after);
});
