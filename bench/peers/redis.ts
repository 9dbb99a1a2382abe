/** A separate Redis from the binary of this machine. It keeps nothing on disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { createClient } from 'redis';
import { freePort } from '../../src/server/server-process.ts';
import { onPath } from '../support/on-path.ts';

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

/** The path of Redis or Valkey, or nothing. */
export function findRedis(): string | undefined {
  return onPath(['redis-server', 'valkey-server']);
}

/** Starts a Redis. @throws Error that says what to install when there is none. */
export async function startRedis(): Promise<RedisServer> {
  const program = findRedis();
  if (program === undefined)
    throw new Error('There is no Redis. Install redis-server (Debian: apt-get install redis-server)');
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', tmpdir()];
    child = spawn(program, [...place, '--save', '', '--appendonly', 'no'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const { stdout } = child;
    for await (const line of stdout ?? []) if (/Ready to accept connections/.test(String(line))) break;
  };
  await start();
  return {
    url,
    kill: async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
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
