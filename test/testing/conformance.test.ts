/** The conformance kit catches savers that are wrong, and runs under other runners than this one. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import {
  type Checkpoint,
  type CheckpointSaver,
  isPerdureError,
  MemorySaver,
  PerdureError,
} from '../../src/index.ts';
import { checkpointSaverConformance, type SaverUnderTest } from '../../src/testing/index.ts';

/** Runs the kit, and returns the names of the tests that have failed. */
async function failures(create: SaverUnderTest['create']): Promise<string[]> {
  const tests: [name: string, body: () => Promise<void>][] = [];
  const runner = {
    describe: (_: string, body: () => void) => body(),
    it: (name: string, body: () => Promise<void>) => tests.push([name, body]),
  };
  checkpointSaverConformance({ name: 'a saver', create }, runner);
  const failed: string[] = [];
  for (const [name, body] of tests) await body().catch(() => failed.push(name));
  return failed;
}

/** It says that something is no JSON, and of what is near the top not where. */
class Vague extends MemorySaver {
  override put(...args: Parameters<CheckpointSaver['put']>): Promise<Checkpoint> {
    return super.put(...args).catch((error: unknown) => {
      if (!isPerdureError(error, 'NOT_JSON') || !/^\w+\.\w+$/.test(String(error.details['path'])))
        throw error;
      throw new PerdureError('NOT_JSON', 'state or metadata: a value is not plain JSON');
    });
  }
}

/** It takes the one with the latest time for the latest. */
class ByTime extends MemorySaver {
  override async get(...args: Parameters<CheckpointSaver['get']>): Promise<Checkpoint | null> {
    const found = await super.get(...args);
    if (found === null || args[1]?.checkpointId !== undefined) return found;
    const all = await super.list(args[0], { limit: 1_000 });
    return all.toSorted((a, b) => b.created_at.localeCompare(a.created_at))[0] ?? null;
  }
}

test('a saver that is right passes', async () => {
  expect(await failures((clock) => new MemorySaver(clock))).toEqual([]);
});

test('a saver that does not say where the state is no JSON fails', async () => {
  expect(await failures((clock) => new Vague(clock))).toEqual([
    'refuses what is not plain JSON, with its path, and stores nothing',
  ]);
});

test('a saver that orders by time fails', async () => {
  expect(await failures((clock) => new ByTime(clock))).toContain(
    'agrees with list on the latest when the clock stands still or steps back',
  );
});

test.each(['beforeAll', 'afterAll'])('a runner without the %s that a saver has is refused', (hook) => {
  const subject: SaverUnderTest = { name: 'MySaver', create: () => new MemorySaver(), [hook]: () => {} };
  const declare = (): void =>
    checkpointSaverConformance(subject, { describe: () => expect.fail('declared'), it: () => {} });
  expect(declare).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
});

test('it runs under node:test, with its hooks', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
  const path = join(folder, 'saver.test.mjs');
  await writeFile(
    path,
    `import { after, before, describe, it } from 'node:test';
    import { MemorySaver } from ${file('../../src/index.ts')};
    import { checkpointSaverConformance } from ${file('../../src/testing/index.ts')};
    const open = [];
    checkpointSaverConformance(
      {
        name: 'MySaver',
        create: (clock) => open[0](clock),
        beforeAll: () => void open.push((clock) => new MemorySaver(clock)),
        afterAll: () => console.log('# closed', open.length),
      },
      { describe, it, beforeAll: before, afterAll: after },
    );`,
  );
  const tsx = fileURLToPath(import.meta.resolve('tsx'));
  const args = ['--import', tsx, '--test', '--test-reporter', 'tap', path];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(stdout).toMatch(/^# pass [1-9]\d*$/m);
  expect(stdout).toContain('closed 1');
});
