import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHarness } from 'perdure/testing';
import { expect, onTestFinished, test } from 'vitest';

test.each(['after model', 'before addTask', 'after addTask'])(
  'a worker that is killed %s: the task is on the list, once',
  async (point) => {
    const folder = await mkdtemp(join(tmpdir(), 'tasks-'));
    const file = join(folder, 'tasks.jsonl');
    const harness = await createHarness({
      module: new URL('./agents.ts', import.meta.url),
      env: { TASKS_FILE: file },
      script: [
        { toolCalls: [{ name: 'addTask', args: { title: 'milk' } }] },
        { text: 'It is on your list.' },
      ],
    });
    onTestFinished(async () => {
      await harness.stop();
      await rm(folder, { recursive: true });
    });
    const worker = await harness.startWorkerProcess({ breakAt: [point] });
    const session = await harness.startSession('clerk', { message: 'Put milk on my list.' });
    await worker.reached(point);
    await worker.crash();

    await harness.startWorkerProcess();
    const { lastText } = await harness.until(session, 'idle');
    expect(lastText).toBe('It is on your list.');
    expect((await readFile(file, 'utf8')).trimEnd().split('\n')).toHaveLength(1);
  },
  60_000,
);
