/** What processes use of the machine, as the kernel counts it. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { canTell, cpuMs, othersShare, residentBytes } from '../../bench/peers/usage.ts';

const SPUN_MS = 400;
/** Takes that much of a processor, then says so and stays. */
const SPINS = `
  while (process.cpuUsage().user < ${SPUN_MS}_000) Math.sqrt(2);
  require('node:fs').writeFileSync(process.argv[2], String(process.pid));
  process.send?.(process.memoryUsage().rss);
  setInterval(() => {}, 1_000);`;

async function program(): Promise<{ file: string; mark: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'spins.cjs'), SPINS);
  return { file: join(folder, 'spins.cjs'), mark: join(folder, 'mark') };
}

test.skipIf(!canTell)('others are those that no process of ours has started', async () => {
  const { file, mark } = await program();
  const started = performance.now();
  const share = othersShare();
  // Its parent ends at once: nobody of ours is above it.
  const shell = spawn('/bin/sh', ['-c', '"$0" "$1" "$2" & :', process.execPath, file, mark], {
    stdio: 'ignore',
  });
  await once(shell, 'exit');
  const said = (): Promise<string> => readFile(mark, 'utf8').catch(() => '');
  await expect.poll(said).toMatch(/\d/);
  const pid = Number(await said());
  onTestFinished(() => void process.kill(pid, 'SIGKILL'));
  const others = share() ?? Number.NaN;
  const most = (performance.now() - started) * availableParallelism();
  expect(others * most).toBeGreaterThan(SPUN_MS * 0.9);
  expect(others).toBeLessThan(1.1);
});

test.skipIf(!canTell)(
  'of a process alone all memory counts, and of a tree what its children took',
  async () => {
    const { file, mark } = await program();
    const child: ChildProcess = fork(file, [mark], { execArgv: [] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [rss] = (await once(child, 'message')) as [number];
    expect(residentBytes([child.pid ?? 0]) / rss).toBeGreaterThan(0.9);
    expect(cpuMs([process.pid])).toBeGreaterThan(SPUN_MS * 0.9);
  },
);
