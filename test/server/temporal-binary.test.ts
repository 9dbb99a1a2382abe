import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cacheDir } from '../../src/server/cache-dir.ts';
import { createLock } from '../../src/server/file-lock.ts';
import { type BinaryAttempt, findTemporalBinary, TEMPORAL_CACHE_NAME } from '../../src/server/index.ts';
import { startProcess } from '../support/ready-process.ts';
import { refusal } from './support/refusal.ts';
import { scratch, script, temporalScript } from './support/scripts.ts';

const cacheHome = (root: string): string => join(root, 'perdure', TEMPORAL_CACHE_NAME);

/** Leaves a CLI in the folder of the build, notes the call, and prints packages as `go build -v` does. */
const goScript = (calls: string): string => `
echo "$*" >> ${calls}
echo "go: downloading go.temporal.io/server v1.29.1" >&2
echo "go.temporal.io/server/common" >&2
printf '#!/bin/sh\\n%s\\n' '${temporalScript()}' > temporal
/bin/chmod 755 temporal`;

async function machine(): Promise<{ bin: string; cache: string; env: Record<string, string> }> {
  const root = await scratch();
  const [bin, cache] = [join(root, 'bin'), join(root, 'cache')];
  return { bin, cache, env: { PATH: bin, XDG_CACHE_HOME: cache } };
}

async function failure(call: Promise<unknown>): Promise<{ message: string; attempts: BinaryAttempt[] }> {
  const { code, message, details } = await refusal(call);
  expect(code).toBe('SERVER_UNAVAILABLE');
  return { message, attempts: details['attempts'] as BinaryAttempt[] };
}

describe('the order of places', () => {
  it('takes the one on PATH before the one in the cache', async () => {
    const { bin, cache, env } = await machine();
    const onPath = await script(bin, 'temporal', temporalScript('1.30.0', '1.6.0'));
    await script(cacheHome(cache), 'temporal', temporalScript());
    expect(await findTemporalBinary({ env })).toEqual({
      path: onPath,
      source: 'path',
      version: 'temporal version 1.6.0 (Server 1.30.0, UI 2.42.1)',
    });
  });

  it('goes on along PATH when the first one does not run', async () => {
    const { bin, cache, env } = await machine();
    await script(bin, 'temporal', 'echo "cannot execute" >&2; exit 126');
    const second = await script(join(cache, 'other'), 'temporal', temporalScript());
    const found = await findTemporalBinary({ env: { ...env, PATH: `${bin}::${join(cache, 'other')}` } });
    expect(found).toMatchObject({ path: second, source: 'path' });
  });

  it.each([
    ['is broken', 'exit 1'],
    ['is another program', 'echo "temporal 3, the calendar"'],
    ['is too old', temporalScript('1.27.2', '1.3.0')],
  ])('takes the one in the cache when that on PATH %s', async (_, body) => {
    const { bin, cache, env } = await machine();
    await script(bin, 'temporal', body);
    const cached = await script(cacheHome(cache), 'temporal', temporalScript());
    expect(await findTemporalBinary({ env })).toMatchObject({ path: cached, source: 'cache' });
  });

  it('tries the download before it builds', async () => {
    const { bin, cache, env } = await machine();
    await script(bin, 'go', goScript(join(cache, 'calls')));
    const lines: string[] = [];
    const offline = { ...env, HTTPS_PROXY: 'http://127.0.0.1:1' };
    const found = await findTemporalBinary({ env: offline, onProgress: (line) => lines.push(line) });
    expect(found).toMatchObject({ source: 'build', path: join(cacheHome(cache), 'temporal') });
    expect(lines).toEqual([
      expect.stringMatching(/^downloading/),
      expect.stringMatching(/^a download: .* cannot be downloaded: connect ECONNREFUSED/),
      expect.stringMatching(/^building/),
    ]);
  });

  it('names every way it tried, why it failed, and what to do', async () => {
    const { bin, env } = await machine();
    await script(bin, 'temporal', 'echo "no such library" >&2; exit 127');
    const { message, attempts } = await failure(
      findTemporalBinary({ env: { ...env, HTTPS_PROXY: 'http://127.0.0.1:1' } }),
    );
    expect(attempts.map((attempt) => attempt.reason)).toEqual([
      '`--version` failed: no such library',
      'not there',
      expect.stringMatching(/^https:\/\/github\.com.* cannot be downloaded: connect ECONNREFUSED/),
      '`go` is not on PATH',
    ]);
    for (const { way, reason } of attempts) expect(message).toContain(`${way}: ${reason}`);
    expect(message).toMatch(/Next: install the Temporal CLI .* or set TEMPORAL_ADDRESS/);
  });
});

describe('the build', () => {
  it('keeps what it built for the next time', async () => {
    const { bin, cache, env } = await machine();
    const calls = join(bin, 'calls');
    await script(bin, 'go', goScript(calls));
    const options = { env, download: false };
    expect(await findTemporalBinary(options)).toMatchObject({ source: 'build' });
    expect(await findTemporalBinary(options)).toMatchObject({ source: 'cache' });
    expect(await readFile(calls, 'utf8')).toBe(
      'build -mod=mod -v -o temporal github.com/temporalio/cli/cmd/temporal\n',
    );
    expect(await readdir(cacheHome(cache))).toEqual(['temporal']);
    expect(await readdir(join(cache, 'perdure'))).toEqual([TEMPORAL_CACHE_NAME]);
  });

  it('builds once for all who look at the same time', async () => {
    const { bin, env } = await machine();
    const calls = join(bin, 'calls');
    await script(bin, 'go', goScript(calls));
    const found = await Promise.all([1, 2, 3].map(() => findTemporalBinary({ env, download: false })));
    expect(found.map(({ source }) => source).sort()).toEqual(['build', 'cache', 'cache']);
    expect((await readFile(calls, 'utf8')).trim().split('\n')).toHaveLength(1);
  });

  it('is not waited for by who may fetch nothing', async () => {
    const { cache, env } = await machine();
    await script(cacheHome(cache), 'other', '');
    const lock = await createLock(`${cacheHome(cache)}.lock`, {});
    onTestFinished(() => lock?.release());
    const { attempts } = await failure(findTemporalBinary({ env, download: false, build: false }));
    expect(attempts.map(({ reason }) => reason)).toEqual([
      'not there',
      'not there',
      'not allowed here (download: false)',
      'not allowed here (build: false)',
    ]);
  });

  it('leaves nothing when it fails half-way', async () => {
    const { bin, cache, env } = await machine();
    await script(bin, 'go', `echo half > temporal; echo "disk is full" >&2; exit 1`);
    const { message } = await failure(findTemporalBinary({ env, download: false }));
    expect(message).toContain('a Go build: the Go build ended with code 1: disk is full');
    expect(await readdir(cacheHome(cache))).toEqual([]);
  });

  it('does not keep a binary that does not run', async () => {
    const { bin, cache, env } = await machine();
    await script(bin, 'go', `echo half > temporal; /bin/chmod 755 temporal`);
    const { attempts } = await failure(findTemporalBinary({ env, download: false }));
    expect(attempts.at(-1)?.reason).toMatch(/`--version` failed/);
    expect(await readdir(cacheHome(cache))).toEqual([]);
  });

  it('is started anew after the process that built was killed', async () => {
    const { bin, cache, env } = await machine();
    await script(bin, 'go', `echo half > temporal; exec /bin/sleep 600`);
    const killed = fileURLToPath(new URL('./support/find-binary.ts', import.meta.url));
    const other = await startProcess(killed, [bin, cache]);
    await other.kill();
    expect(await readdir(join(cache, 'perdure'))).toContain(`${TEMPORAL_CACHE_NAME}.lock`);

    await script(bin, 'go', goScript(join(bin, 'calls')));
    expect(await findTemporalBinary({ env, download: false })).toMatchObject({ source: 'build' });
    expect(await readdir(cacheHome(cache))).toEqual(['temporal']);
  });

  it('gives Go a home when there is none', async () => {
    const { bin, cache } = await machine();
    const noted = join(bin, 'noted');
    await script(bin, 'go', `echo "$GOPATH|$GOCACHE|$GOFLAGS" > ${noted}; exit 1`);
    // Under the cache directory, so that nothing is left in the shared temporary one.
    await failure(
      findTemporalBinary({ env: { PATH: bin, XDG_CACHE_HOME: cache, GOFLAGS: '-x' }, download: false }),
    );
    const [goPath, goCache, goFlags] = (await readFile(noted, 'utf8')).trim().split('|');
    expect(goPath).toContain(cacheHome(cache));
    expect(goCache).toBe('');
    expect(goFlags).toBe('-x -modcacherw');
  });
});

describe('the cache directory', () => {
  it('is under the home directory when nothing else is said', async () => {
    const home = await scratch();
    const expected = process.platform === 'darwin' ? 'Library/Caches/perdure' : '.cache/perdure';
    expect(cacheDir({ HOME: home })).toBe(join(home, expected));
  });

  it.each([
    ['there is no home', {}],
    ['the home is empty text', { HOME: '' }],
    ['the home cannot be written to', { HOME: '/dev/null' }],
  ])('is a private one under the temporary directory when %s', async (_, env) => {
    const dir = cacheDir(env);
    expect(dir.startsWith(tmpdir())).toBe(true);
    expect((await stat(dir)).mode & 0o077).toBe(0);
  });

  it('goes from XDG_CACHE_HOME to the home directory when the former is a file', async () => {
    const home = await scratch();
    await writeFile(join(home, 'file'), '');
    expect(cacheDir({ XDG_CACHE_HOME: join(home, 'file'), HOME: home }).startsWith(home)).toBe(true);
  });
});
