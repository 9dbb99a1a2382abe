/** Workers die at each step of a delegation: each sub-agent works once, and its answer arrives once. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createHarness, type Harness, type Script } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';

const STEPS = [
  'before attach middle',
  'after attach middle',
  'before attach leaf',
  'after attach leaf',
  'before write',
  'written',
  'before report',
  'after report',
];

async function openHarness(script: Script): Promise<{ harness: Harness; lines: () => Set<string> }> {
  const folder = mkdtempSync(join(tmpdir(), 'trees-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const ledger = join(folder, 'ledger');
  const harness = await createHarness({
    script,
    module: new URL('../support/tree-agents.ts', import.meta.url),
    server: inject('temporal'),
    env: { TREE_LEDGER: ledger },
  });
  onTestFinished(() => harness.stop());
  return { harness, lines: () => new Set(readFileSync(ledger, 'utf8').trim().split('\n')) };
}

/** Starts a worker that is held at the first step, and at others on the way, and kills it there. */
async function dieAt(harness: Harness, step: string, ...held: string[]): Promise<void> {
  const worker = await harness.startWorkerProcess({ breakAt: [step, ...held] });
  await worker.reached(step);
  await worker.crash();
}

test('a worker dies at each step of a tree of three levels, and each agent works once', async () => {
  const { harness, lines } = await openHarness(({ model, assistantCount, toolResults }) => {
    const below = { root: 'middle', middle: 'leaf' }[model];
    if (assistantCount > 0) return { text: `${model}: ${toolResults[0]?.text}` };
    return {
      toolCalls: [
        below === undefined
          ? { name: 'write', args: { line: 'one' } }
          : { name: below, args: { task: 'Write.' } },
      ],
    };
  });
  const session = await harness.startSession('root', { message: 'Go.' });
  for (const step of STEPS) await dieAt(harness, step);
  await harness.startWorkerProcess();
  await harness.until(session, 'idle');

  const { calls, children = [] } = await expectFoldEqualsLive(harness.client, session);
  expect(calls.map(({ result }) => result?.content)).toEqual(['middle: leaf: wrote one']);
  expect(children).toMatchObject([{ end: { status: 'completed' } }]);
  // The tool says that nothing was written, so it is written again, with the same key. No other call is made.
  expect(lines().size).toBe(1);
  const answers = harness.model.requests.map(({ request }) => `${request.model} ${request.digest}`);
  expect(new Set(answers).size).toBe(6);
});

test('a worker dies around the start, a new run and the report of an agent in the background, which reports once', async () => {
  const { harness, lines } = await openHarness(({ model, assistantCount, toolResults, lastUserText }) => {
    if (assistantCount > 0)
      return { text: model === 'leaf' ? `${toolResults[0]?.text}` : `heard: ${lastUserText}` };
    return {
      toolCalls: [
        model === 'leaf'
          ? { name: 'write', args: { line: 'one' } }
          : { name: 'helper', args: { task: 'Write.' } },
      ],
    };
  });
  const session = await harness.startSession('boss', { message: 'Go.', mode: 'task' });
  // Started, and not recorded. Then the caller goes on in a new run while the agent works.
  for (const step of ['after attach helper', 'before storePast', 'after storePast'])
    await dieAt(harness, step, 'before write');
  for (const step of ['before report', 'after report']) await dieAt(harness, step);
  await harness.startWorkerProcess();

  const { text } = await session.result();
  expect(text).toMatch(/^heard: Report of your background agent leaf, .*Its answer:\n\nwrote one$/s);
  expect(lines().size).toBe(1);
  const answers = harness.model.requests.map(({ request }) => `${request.model} ${request.digest}`);
  // On a busy machine the report is there before the boss asks for its second reply: one request less.
  expect([4, 5]).toContain(new Set(answers).size);
  await expectFoldEqualsLive(harness.client, session);
});
