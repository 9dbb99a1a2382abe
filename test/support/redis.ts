/** A Redis of a test's own: the machine's, without a file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createClient } from 'redis';
import { onTestFinished } from 'vitest';
import { freePort } from '../../src/server/server-process.ts';
import { polled } from './polled.ts';

const PROGRAM = (process.env['PATH'] ?? '')
  .split(delimiter)
  .flatMap((folder) => ['redis-server', 'valkey-server'].map((name) => join(folder, name)))
  .find(isExecutable);
const HOW = 'Install redis-server (Debian: apt-get install redis-server)';

/** Whether tests skip what needs Redis: `test.skipIf(NO_REDIS)`. In CI they fail instead. */
export const NO_REDIS: boolean = PROGRAM === undefined && process.env['CI'] === undefined;
if (PROGRAM === undefined) console.warn(`There is no Redis, so its tests cannot run. ${HOW}`);

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A running Redis. */
export interface RedisServer {
  readonly url: string;
  /** SIGKILL: it loses everything. */
  kill(): Promise<void>;
  /** Starts it again, empty. */
  restart(): Promise<void>;
  /** SIGSTOP: it accepts connections and answers nothing. */
  freeze(): void;
  /** SIGCONT */
  wake(): void;
  /** One command's reply. */
  ask(...command: string[]): Promise<unknown>;
}

/** Starts a Redis for the running test. */
export async function startRedis(): Promise<RedisServer> {
  if (PROGRAM === undefined) throw new Error(`There is no Redis. ${HOW}`);
  const program = PROGRAM;
  const port = await freePort();
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  const start = async (): Promise<void> => {
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', tmpdir()];
    child = spawn(program, [...place, '--save', '', '--appendonly', 'no'], { stdio: 'ignore' });
    await polled(
      () => answers(port),
      () => 'Redis does not answer',
    );
  };
  await start();
  const url = `redis://127.0.0.1:${port}`;
  return {
    url,
    kill,
    restart: start,
    freeze: () => void child?.kill('SIGSTOP'),
    wake: () => void child?.kill('SIGCONT'),
    ask: async (...command) => {
      const client = createClient({ url, RESP: 2 });
      await client.connect();
      try {
        return await client.sendCommand(command);
      } finally {
        client.destroy();
      }
    },
  };
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
