/** The lab as its command: a story that holds, and one with a planted mistake, which must not. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../faults/main.ts', import.meta.url));
const STORY =
  '--only worker-kill@landed --keys ignored --kinds mutate --turns 1 --strike 1 --quiet --seed 7'.split(' ');

async function lab(env: Record<string, string> = {}): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...STORY], {
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
