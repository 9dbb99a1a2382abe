import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../src/server/server-process.ts';
import { startScriptedModel } from '../../src/testing/index.ts';
import { ROOT } from '../structure/project.ts';
import { type Ran, type Running, run, start } from './support/perdure.ts';

const AGENTS = `
  import { defineAgent } from 'perdure';
  import { instructions } from './words.ts';
  export const kind = defineAgent({ name: 'kind', model: 'env:scripted', instructions });
`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-dev-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  await writeFile(join(folder, 'agents.ts'), AGENTS);
  await words('Be kind.');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const words = (text: string): Promise<void> =>
  writeFile(join(folder, 'words.ts'), `export const instructions: string = ${JSON.stringify(text)};\n`);

interface Event {
  type: string;
  pid: number;
  address: string;
  url: string;
  agents: string[];
  file: string;
  how: string;
  waits: boolean;
}

const next = (dev: Running, type: string): Promise<Event> =>
  dev.line((line) => {
    const event = JSON.parse(line) as Event;
    return event.type === type && event;
  });

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('dev runs a server and a worker, starts it again at each change and after its death, and ends with all of it', async () => {
  const model = await startScriptedModel({
    script: ({ messages }) => ({ text: messages[0]?.text ?? '' }),
  });
  const env = { OPENAI_BASE_URL: model.url };
  const dev = start(['dev', '--json', '--no-ui'], { cwd: folder, env });
  const perdure = (...args: string[]): Promise<Ran> => run(args, { cwd: folder, env });
  try {
    const { address } = await next(dev, 'server');
    const { origin, hash } = new URL((await next(dev, 'console')).url);
    const first = await next(dev, 'ready');
    const token = hash.replace('#token=', '');
    const inbox = await fetch(`${origin}/inbox`, { headers: { authorization: `Bearer ${token}` } });
    expect([inbox.status, (await fetch(`${origin}/console`)).status]).toEqual([200, 200]);
    expect(first).toMatchObject({ agents: ['kind'], address });

    // The server of this directory is found without being named, and sessions run on it.
    expect(await perdure('doctor')).toMatchObject({ code: 0, stdout: expect.stringContaining(address) });
    expect(await perdure('start', 'kind', 'hi', '--follow')).toMatchObject({ code: 0, stdout: 'Be kind.\n' });

    // A change of what the module imports.
    await words('Be brief.');
    expect((await next(dev, 'changed')).file).toBe(join(folder, 'words.ts'));
    const second = await next(dev, 'ready');
    expect(second.pid).not.toBe(first.pid);
    expect(isAlive(first.pid)).toBe(false);
    expect(await perdure('start', 'kind', 'hi', '--follow')).toMatchObject({
      code: 0,
      stdout: 'Be brief.\n',
    });

    // A mistake is told, and waits for its correction.
    await writeFile(join(folder, 'agents.ts'), 'export const = 1;\n');
    expect(await next(dev, 'ended')).toMatchObject({ how: 'code 1', waits: true });
    await writeFile(join(folder, 'agents.ts'), AGENTS.replaceAll('kind', 'good'));
    const third = await next(dev, 'ready');
    expect(third.agents).toEqual(['good']);

    // A death is no end.
    process.kill(third.pid, 'SIGKILL');
    expect(await next(dev, 'ended')).toMatchObject({ how: 'SIGKILL', waits: false });
    const fourth = await next(dev, 'ready');

    dev.child.kill('SIGINT');
    await next(dev, 'stopped');
    const ended = await dev.ended;
    expect(ended.code).toBe(0);
    expect(ended.stderr).toMatch(/"code":"INVALID_DEFINITION"|error INVALID_DEFINITION/);
    expect(isAlive(fourth.pid)).toBe(false);
    await expect(Connection.connect({ address, connectTimeout: 500 })).rejects.toThrow(/connect/i);
  } finally {
    dev.child.kill('SIGTERM');
    await dev.ended;
    await model.stop();
  }
});

test('dev says that its server has died and ends, and the next one goes on with the sessions', async () => {
  const model = await startScriptedModel({ script: () => ({ text: 'here' }) });
  const env = { OPENAI_BASE_URL: model.url };
  const dev = start(['dev', '--json', '--no-ui'], { cwd: folder, env });
  let again: Running | undefined;
  try {
    const { pid } = await next(dev, 'ready');
    const first = await run(['start', 'kind', 'hi', '--id', 's', '--follow'], { cwd: folder, env });
    expect(first).toMatchObject({ code: 0, stdout: 'here\n' });
    const lock = JSON.parse(await readFile(join(folder, '.perdure', 'temporal.db.lock'), 'utf8')) as Event;
    process.kill(lock.pid, 'SIGKILL');
    const { code, stderr } = await dev.ended;
    expect(stderr).toMatch(/SERVER_UNAVAILABLE.*The Temporal server of this terminal has ended/);
    expect(code).toBe(5);
    expect(isAlive(pid)).toBe(false);

    again = start(['dev', '--json', '--no-ui'], { cwd: folder, env });
    await next(again, 'ready');
    const second = await run(['send', 's', 'and now?', '--follow'], { cwd: folder, env });
    expect(second).toMatchObject({ code: 0, stdout: 'here\n' });
  } finally {
    for (const running of [dev, again]) {
      running?.child.kill('SIGTERM');
      await running?.ended;
    }
    await model.stop();
  }
});

test('dev serves at the port that it is given', async () => {
  const port = await freePort();
  const dev = start(['dev', '--json', '--no-ui', '--port', String(port)], {
    cwd: folder,
    env: { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' },
  });
  try {
    expect((await next(dev, 'server')).address).toBe(`127.0.0.1:${port}`);
    const connection = await Connection.connect({ address: `127.0.0.1:${port}` });
    await connection.close();
  } finally {
    dev.child.kill('SIGTERM');
    await dev.ended;
  }
});

test('dev takes its worker with it when it is killed', async () => {
  const dev = start(['dev', '--json', '--no-ui'], {
    cwd: folder,
    env: { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' },
  });
  const { pid } = await next(dev, 'ready');
  dev.child.kill('SIGKILL');
  await expect.poll(() => isAlive(pid), { timeout: 60_000, interval: 100 }).toBe(false);
});
