/** The harness as users have it: a story of a crash, told against a server that it starts itself. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { createHarness, type Harness, type HarnessOptions } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { clerk } from './harness-agents.ts';

const MODULE = new URL('./harness-agents.ts', import.meta.url);
const script: HarnessOptions['script'] = [
  { toolCalls: [{ name: 'append', args: { line: 'one pen' } }] },
  { text: 'It is written down.' },
];

let ledger: string;

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'harness-'));
  ledger = join(folder, 'ledger.txt');
  process.env['LEDGER'] = ledger;
  return () => rmSync(folder, { recursive: true });
});

async function open(options: Partial<HarnessOptions> = {}): Promise<Harness> {
  const harness = await createHarness({
    script,
    module: MODULE,
    agents: [clerk],
    server: inject('temporal'),
    ...options,
  });
  onTestFinished(() => harness.stop());
  return harness;
}

const lines = (): string[] => readFileSync(ledger, 'utf8').trimEnd().split('\n');

test('a worker crashes after the effect, on a server of the harness`s own: it is found, and not done again', async () => {
  const harness = await createHarness({ script, module: MODULE, env: { LEDGER: ledger } });
  onTestFinished(() => harness.stop());
  const worker = await harness.startWorkerProcess({ breakAt: ['after append'] });
  const session = await harness.startSession('clerk', { message: 'Write down one pen.' });
  const { detail } = await worker.reached('after append');
  expect(JSON.parse(detail)).toMatchObject({ output: { appended: 'one pen' } });
  await worker.crash();
  await harness.startWorkerProcess();
  const view = await harness.until(session, 'idle');
  expect(view.lastText).toBe('It is written down.');
  expect(lines()).toHaveLength(1);
  // The scripted model stands in for the agent's own, at the agent's price.
  expect(view.models).toEqual(['scripted.chat:openai:gpt-5']);
  expect(view.budget.spent.usd).toBeGreaterThan(0);
});

test('a worker is held before and after a read, and before the request that follows', async () => {
  const harness = await open({
    script: [{ toolCalls: [{ name: 'find', args: { line: 'one pen' } }] }, { text: 'It is there.' }],
  });
  const points = ['before model', 'model request', 'after model', 'before find', 'after find'];
  const worker = await harness.startWorkerProcess({ breakAt: points });
  const session = await harness.startSession('clerk', { message: 'Find one pen.' });
  for (const point of points.slice(0, 3).concat('before model', 'before find')) {
    await worker.reached(point);
    worker.release(point);
  }
  const { detail } = await worker.reached('after find');
  expect(JSON.parse(detail)).toEqual({ kind: 'output', output: { found: 'one pen' } });
  expect(harness.model.requests).toHaveLength(1);
  worker.release('after find');
  await worker.reached('model request');
  expect(harness.model.requests).toHaveLength(1);
  worker.release('model request');
  await worker.reached('after model');
  worker.release('after model');
  expect((await harness.until(session, 'idle')).lastText).toBe('It is there.');
});

test('a worker in the test`s own process runs the same story', async () => {
  const harness = await open();
  const worker = await harness.startWorker();
  const session = await harness.startSession('clerk', { message: 'Write down one pen.', mode: 'task' });
  expect(await session.result()).toMatchObject({ status: 'completed', text: 'It is written down.' });
  expect(lines()).toHaveLength(1);
  await worker.stop();
});

test('a worker that is held goes on when it is released, and ends its calls when it is stopped', async () => {
  const harness = await open();
  const worker = await harness.startWorkerProcess({ breakAt: ['before append'] });
  const session = await harness.startSession('clerk', { message: 'Write down one pen.' });
  await worker.reached('before append');
  worker.release('before append');
  await harness.until(session, ({ lastText }) => lastText === 'It is written down.');
  await worker.stop();
  expect(await rejection(worker.reached('before append'))).toMatchObject({ code: 'NO_WORKER' });
});

test('a worker that is stopped while a call is held ends it past its time of grace, and goes', async () => {
  const harness = await open();
  const worker = await harness.startWorkerProcess({ breakAt: ['after append'], env: { IMPATIENT: '1' } });
  const session = await harness.startSession('clerk', { message: 'Write down one pen.' });
  await worker.reached('after append');
  await worker.stop();
  await harness.startWorkerProcess();
  await harness.until(session, ({ lastText }) => lastText === 'It is written down.');
  expect(lines()).toHaveLength(1);
});

test('a tool of a CommonJS module, with a copy of the kit of its own, can be held', async () => {
  const file = (path: string): string => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)));
  const module = join(dirname(ledger), 'agents.cjs');
  writeFileSync(
    module,
    `const { defineAgent, defineTool } = require(${file('../../src/index.ts')});
    const { breakpoint } = require(${file('../../src/testing/index.ts')});
    const { z } = require(${JSON.stringify(createRequire(import.meta.url).resolve('zod'))});
    const append = defineTool({
      effect: 'read',
      inputSchema: z.object({ line: z.string() }),
      execute: async ({ line }) => {
        await breakpoint('inside', line);
        return {};
      },
    });
    const model = { model: 'openai:gpt-5', price: { inputPerMillion: 1, outputPerMillion: 2 } };
    exports.clerk = defineAgent({ name: 'clerk', model, instructions: 'Look.', tools: { append } });`,
  );
  const harness = await open({ module });
  const worker = await harness.startWorkerProcess({ breakAt: ['inside'] });
  const session = await harness.startSession('clerk', { message: 'Look.' });
  const ended = harness.until(session, 'idle').then(() => ({ detail: 'not held' }));
  expect(await Promise.race([worker.reached('inside'), ended])).toMatchObject({ detail: 'one pen' });
  worker.release('inside');
  await ended;
});

test('a worker that is gone takes a release, one that starts ends with its harness, a point that nobody named is refused', async () => {
  const harness = await open();
  const worker = await harness.startWorkerProcess({ breakAt: ['before append'] });
  expect(await rejection(worker.reached('before apend'))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('before append'),
  });
  await harness.startSession('clerk', { message: 'Write down one pen.' });
  await worker.reached('before append');
  await worker.crash();
  worker.release('before append');
  const starting = rejection(harness.startWorkerProcess());
  await harness.stop();
  expect(await starting).toMatchObject({
    code: 'NO_WORKER',
    message: expect.stringContaining('SIGKILL'),
  });
});

test('what is missing is said: a module, agents in it, a worker, an end', async () => {
  const bare = await createHarness({ script, server: inject('temporal') });
  onTestFinished(() => bare.stop());
  expect(await rejection(bare.startWorkerProcess())).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('module'),
  });
  const empty = await open({ module: new URL('../support/rejection.ts', import.meta.url) });
  expect(await rejection(empty.startWorkerProcess())).toMatchObject({
    code: 'NO_WORKER',
    message: expect.stringContaining('exports no agent'),
  });
  const impatient = await open({ timeoutMs: 3_000 });
  await impatient.startWorker();
  const session = await impatient.startSession('clerk');
  await session.state();
  expect(await rejection(impatient.until(session, 'approval'))).toMatchObject({
    code: 'NO_WORKER',
    details: { view: { phase: 'idle' } },
  });
});
