/** The lab as its command: a story that holds, and one with a planted mistake, which must not. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { findBinaries, MissingBinaryError, readCompose } from '../../faults/stack/binaries.ts';

const MAIN = fileURLToPath(new URL('../../faults/main.ts', import.meta.url));
const STORY =
  '--only worker-kill@landed --keys ignored --kinds mutate --turns 1 --strike 1 --quiet --seed 7'.split(' ');

async function lab(
  env: Record<string, string> = {},
  story: readonly string[] = STORY,
): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...story], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, text };
}

test('a mutation that is verified is one effect, and the result file says so', async () => {
  const { code, text } = await lab();
  expect(text).toContain('worker-kill@landed, keys ignored: ok in');
  expect(code).toBe(0);
  const [, file = ''] = /Written to (\S+)/.exec(text) ?? [];
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
    seed: 7,
    rows: [{ point: 'worker-kill', kind: 'mutate', runs: 1, landed: 1, duplicates: 0, losses: 0 }],
  });
});

test('a verify that lies is a second effect: the lab fails, and prints the command that shows it again', async () => {
  const { code, text } = await lab({ LAB_LYING_VERIFY: '1' });
  expect(text).toContain('FAILED');
  expect(text).toContain('duplicate:');
  expect(text).toContain('not-linearizable:');
  expect(text).toContain(`again: npm run faults -- ${STORY.join(' ')}`);
  expect(code).toBe(1);
});

test('an effect that is given up, and said to be, fails the lab too', async () => {
  const story = STORY.map((word) => word.replace('landed', 'in-call'));
  const { code, text } = await lab({ LAB_GIVE_UP: '1' }, story);
  expect(text).toContain('not-done:');
  expect(code).toBe(1);
});

test('a report that is not what the sub-agent said fails the lab', async () => {
  const story = STORY.map((word) => word.replace('landed', 'background-told'));
  const { code, text } = await lab({ LAB_LYING_REPORT: '1' }, story);
  expect(text).toMatch(/loss: .* the report is .*Nothing after 1\..* is completed: Done after 1\./);
  expect(code).toBe(1);
});

const missing = await findBinaries(null).then(
  () => null,
  (error: unknown) => {
    if (error instanceof MissingBinaryError) return error.message;
    throw error;
  },
);

describe.skipIf(missing !== null)(`over PostgreSQL${missing === null ? '' : `, skipped: ${missing}`}`, () => {
  test('a database that is killed costs no effect, with two workers', async () => {
    const story =
      '--stack postgres --workers 2 --only database-kill@landed --keys ignored --kinds mutate,blind --turns 1 --strike 1 --quiet --seed 7';
    const { code, text } = await lab({}, story.split(' '));
    expect(text).toContain('database-kill@landed, keys ignored: ok in');
    expect(code).toBe(0);
  });
});

test('the stack has the server of docker-compose.yml', () => {
  expect(readCompose()).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    environment: { DB: 'postgres12', DEFAULT_NAMESPACE: 'default' },
  });
});
