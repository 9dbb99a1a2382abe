/** The harness as users have it: a story of a crash, told against a server that it starts itself. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  const impatient = await open({ patienceMs: 3_000 });
  await impatient.startWorker();
  const session = await impatient.startSession('clerk');
  await session.state();
  expect(await rejection(impatient.until(session, 'approval'))).toMatchObject({
    code: 'NO_WORKER',
    details: { view: { phase: 'idle' } },
  });
});
