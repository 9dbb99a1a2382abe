/** The worker of docs/production.md: a Temporal worker and a workflow of one's own, which runs a session as a step. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import { scriptedTurns } from '../../src/testing/index.ts';
import { builtPackage } from '../cli/support/built.ts';
import { openStage } from '../support/stage.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A project with the examples, and this package installed as a user installs it. */
function installProject(): string {
  const project = mkdtempSync(join(tmpdir(), 'perdure-own-worker-'));
  onTestFinished(() => rmSync(project, { recursive: true }));
  const modules = join(project, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  symlinkSync(dirname(dirname(dirname(builtPackage().main))), join(modules, 'perdure'));
  for (const name of ['quickstart', 'own-worker']) {
    cpSync(join(ROOT, 'examples', name), join(project, name), { recursive: true });
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  return project;
}

test('a workflow of your own runs a session on your own worker, and gets its answer', async () => {
  const project = installProject();
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'addTask', args: { title: 'milk' } }] },
      { text: 'Milk is on your list.' },
    ]),
  );
  const { address } = inject('temporal');
  const worker = spawn(process.execPath, ['--import', 'tsx', 'own-worker/worker.ts'], {
    cwd: project,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: address,
      PERDURE_TASK_QUEUE: stage.taskQueue,
      OPENAI_BASE_URL: stage.model.url,
      TASKS_FILE: join(project, 'tasks.jsonl'),
    },
  });
  const exited = once(worker, 'exit');
  onTestFinished(async () => {
    worker.kill('SIGTERM');
    await exited;
  });
  const ticket = stage.id('t');
  const ended = exited.then(([code]) => {
    throw new Error(`the worker ended with ${code}`);
  });
  ended.catch(() => {});
  const answered = stage.client.workflow.execute('handleTicket', {
    workflowId: stage.id('handle'),
    taskQueue: stage.taskQueue,
    args: [ticket, 'Put milk on my list.'],
  });
  expect(await Promise.race([answered, ended])).toBe('Milk is on your list.');
  const { items } = await stage.sessions.get(`ticket-${ticket}`).calls();
  expect(items).toMatchObject([{ name: 'addTask', status: { kind: 'completed' } }]);
});
