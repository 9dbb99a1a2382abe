/** Workers die at each step of a delegation over three levels: each sub-agent works once, and its answer arrives once. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createHarness } from '../../src/testing/index.ts';
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

test('a worker dies at each step of a tree of three levels, and each agent works once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trees-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const ledger = join(folder, 'ledger');
  const harness = await createHarness({
    script: ({ model, assistantCount, toolResults }) => {
      const below = { root: 'middle', middle: 'leaf' }[model];
      if (assistantCount > 0) return { text: `${model}: ${toolResults[0]?.text}` };
      return {
        toolCalls: [
          below === undefined
            ? { name: 'write', args: { line: 'one' } }
            : { name: below, args: { task: 'Write.' } },
        ],
      };
    },
    module: new URL('../support/tree-agents.ts', import.meta.url),
    server: inject('temporal'),
    env: { TREE_LEDGER: ledger },
  });
  onTestFinished(() => harness.stop());
  const session = await harness.startSession('root', { message: 'Go.' });
  for (const step of STEPS) {
    const worker = await harness.startWorkerProcess({ breakAt: [step] });
    await worker.reached(step);
    await worker.crash();
  }
  await harness.startWorkerProcess();
  await harness.until(session, 'idle');

  const { calls, children = [] } = await expectFoldEqualsLive(harness.client, session);
  expect(calls.map(({ result }) => result?.content)).toEqual(['middle: leaf: wrote one']);
  expect(children).toMatchObject([{ end: { status: 'completed' } }]);
  // The tool says that nothing was written, so it is written again, with the same key. No other call is made.
  expect(new Set(readFileSync(ledger, 'utf8').trim().split('\n')).size).toBe(1);
  const answers = harness.model.requests.map(({ request }) => `${request.model} ${request.digest}`);
  expect(new Set(answers).size).toBe(6);
});
