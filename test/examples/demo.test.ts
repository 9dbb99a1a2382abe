/** The demo as people run it: a process, with the real server, workers and services. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { scriptedTurns, startScriptedModel } from '../../src/testing/index.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A demo is eight processes, and other tests run beside it. */
const LONG = { timeout: 300_000 };

interface Demo {
  readonly child: ChildProcess;
  /** Everything that it has written so far. */
  text(): string;
  /** Resolves when what it has written matches. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  readonly exitCode: Promise<number | null>;
}

function startDemo(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Demo {
  const clean = {
    ...process.env,
    FORCE_COLOR: undefined,
    OPENAI_API_KEY: undefined,
    OPENAI_BASE_URL: undefined,
  };
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/demo/main.ts', ...args], {
    cwd: ROOT,
    env: { ...clean, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const closed = once(child, 'close') as Promise<[number | null]>;
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      written += piece;
    });
  }
  return {
    child,
    text: () => written,
    exitCode: closed.then(([code]) => code),
    until: async (pattern) => {
      for (;;) {
        const found = pattern.exec(written);
        if (found !== null) return found;
        const ended = await Promise.race([
          once(child.stdout, 'data').then(() => false),
          closed.then(() => true),
        ]);
        if (ended && !pattern.test(written)) throw new Error(`it ended without ${pattern}:\n${written}`);
      }
    },
  };
}

/** No process of a demo is left. */
function expectEnded(text: string): void {
  const started = [...text.matchAll(/ {2}([\w ]+): pid (\d+)/g)];
  expect(started.map(([, name = '']) => name.trim())).toEqual(
    expect.arrayContaining(['Temporal server', 'payments service', 'worker 1']),
  );
  for (const [told, , pid] of started) expect(() => process.kill(Number(pid), 0), told).toThrow('ESRCH');
}

/** Nothing of a demo is left: neither its processes nor its data. */
function expectGone(text: string): void {
  expectEnded(text);
  const dir = /data in (\S+)/.exec(text)?.[1] ?? '';
  expect(dir).toMatch(/^\.perdure\/demo-/);
  expect(existsSync(join(ROOT, dir)), dir).toBe(false);
}

/** The directory that a demo has left to look into, which goes with the test. */
function leftBehind(text: string): string {
  expectEnded(text);
  const [, dir = ''] = /logs are in (\S+)/.exec(text) ?? [];
  expect(dir).toMatch(/^\.perdure\/demo-/);
  onTestFinished(() => rmSync(join(ROOT, dir), { recursive: true }));
  return join(ROOT, dir);
}

test(
  'a refund survives the death of its worker: one row, found by verify; two demos at once keep apart',
  LONG,
  async () => {
    const stale = { OPENAI_API_KEY: 'stale', OPENAI_BASE_URL: 'http://127.0.0.1:1' };
    const demos = [startDemo(), startDemo(['--scripted'], stale)];
    for (const demo of demos) {
      expect(await demo.exitCode, demo.text()).toBe(0);
      const text = demo.text();
      expect(text).not.toMatch(/real model/);
      expect(text).toMatch(/waits for a person/);
      expect(text).toMatch(/worker 1 \(pid \d+\) got SIGKILL/);
      expect(text).toMatch(/refund: lost \(.*waiting 1 s, then asking verify/);
      expect(text).toMatch(/the agent: "I have refunded 129\.00 for order 1002; the receipt is re_1\."/);
      expect(text.match(/^ {2}re_\d/gm)).toEqual(['  re_1']);
      expect(text).toMatch(/call_2_0 +1 +[\d:.]+ +landed/);
      expect(text.match(/^ {2}[0-9a-f-]{36}:\d+ /gm)?.length).toBeGreaterThan(5);
      expect(text.match(/^ {2}ok /gm)).toHaveLength(6);
      expect(text).not.toMatch(/FAIL/);
      expect(text).not.toContain('\u001b');
      expectGone(text);
    }
  },
);

test('a model that makes another refund makes it fail: two rows are not one', LONG, async () => {
  const args = { chargeId: 'ch_1002', cents: 12_900, reason: 'broken' };
  const model = await startScriptedModel({
    script: scriptedTurns([
      { toolCalls: [{ name: 'refund', args }] },
      { toolCalls: [{ name: 'refund', args: { ...args, cents: 100 } }] },
      { text: 'Refunded, and a little more.' },
    ]),
  });
  onTestFinished(() => model.stop());
  const demo = startDemo([], { OPENAI_BASE_URL: model.url });
  expect(await demo.exitCode).toBe(1);
  expect(demo.text()).toMatch(
    /OPENAI_BASE_URL is set: a real model [\s\S]*--scripted[\s\S]*Temporal server: starting/,
  );
  expect(demo.text()).toMatch(/FAIL {2}the ledger has one row for this refund \(it has 2\)/);
  expect(demo.text()).toMatch(/did not keep its promise/);
  const ledger = readFileSync(join(leftBehind(demo.text()), 'ledger.jsonl'), 'utf8');
  expect(ledger.trimEnd().split('\n')).toHaveLength(2);
});

test('a model that does not refund is said so', LONG, async () => {
  const model = await startScriptedModel({ script: scriptedTurns([{ text: 'I would rather not.' }]) });
  onTestFinished(() => model.stop());
  const demo = startDemo([], { OPENAI_BASE_URL: model.url });
  expect(await demo.exitCode).toBe(1);
  expect(demo.text()).toMatch(/did not ask for a refund over the limit: it answered "I would rather not\."/);
  expect(readdirSync(leftBehind(demo.text()))).toContain('worker-1.log');
});

test('a model that goes on and on is stopped by the budget', LONG, async () => {
  const model = await startScriptedModel({
    script: ({ assistantCount }) => ({
      toolCalls: [{ name: 'order', args: { id: String(1_001 + (assistantCount % 3)) } }],
    }),
  });
  onTestFinished(() => model.stop());
  const demo = startDemo([], { OPENAI_BASE_URL: model.url });
  expect(await demo.exitCode).toBe(1);
  expect(demo.text()).toMatch(/did not ask for a refund over the limit: it waits \(budget/);
  expect(model.requests.length).toBeLessThanOrEqual(8);
  leftBehind(demo.text());
});

test('the approval is a person: the command that it prints, typed in another terminal', LONG, async () => {
  const demo = startDemo(['--manual']);
  const [, command = ''] = await demo.until(/^ {4}(npx .* approve .*)$[\s\S]*waiting for you/m);
  // A terminal that is set up for another server.
  const env = { ...process.env, TEMPORAL_NAMESPACE: 'elsewhere', TEMPORAL_API_KEY: 'of-elsewhere' };
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: ROOT, env });
  expect(stdout).toMatch(/call_2_0/);
  expect(await demo.exitCode, demo.text()).toBe(0);
  expect(demo.text()).toMatch(/approve, by /);
  expect(demo.text().match(/^ {2}ok /gm)).toHaveLength(6);
  expectGone(demo.text());
});

test('a person who rejects: nothing is refunded, and it says so', LONG, async () => {
  const demo = startDemo(['--manual']);
  const [, command = ''] = await demo.until(/^ {4}(npx .* reject .*)$[\s\S]*waiting for you/m);
  await promisify(execFile)('sh', ['-c', command], { cwd: ROOT });
  expect(await demo.exitCode, demo.text()).toBe(0);
  expect(demo.text()).toMatch(
    /the agent: "Order 1002 was not refunded: A person rejected this call of refund\."[\s\S]*ok {4}nothing was refunded: the ledger has 0 rows/,
  );
  expectGone(demo.text());
});

test('kept at the end, everything is there until it is ended', LONG, async () => {
  const demo = startDemo(['--keep']);
  await demo.until(/keeps running until Ctrl-C/);
  const [, url = ''] = /^ {4}(http:\S+\/history)$/m.exec(demo.text()) ?? [];
  const page = await fetch(url);
  expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/<!doctype html>/i)]);
  demo.child.kill('SIGINT');
  expect(await demo.exitCode).toBe(0);
  expectGone(demo.text());
});

test('kept at the end, a part that dies is told of', LONG, async () => {
  const demo = startDemo(['--keep']);
  await demo.until(/keeps running until Ctrl-C/);
  const [, pid] = /payments service: pid (\d+)/.exec(demo.text()) ?? [];
  process.kill(Number(pid), 'SIGKILL');
  expect(await demo.exitCode).toBe(1);
  expect(demo.text()).toMatch(/payments ended by itself \(SIGKILL\)/);
  leftBehind(demo.text());
});

test('ended in the middle, it clears up', LONG, async () => {
  const demo = startDemo(['--manual']);
  await demo.until(/waiting for you/);
  demo.child.kill('SIGTERM');
  expect(await demo.exitCode).toBe(130);
  expectGone(demo.text());
});
