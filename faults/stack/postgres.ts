/** A PostgreSQL of its own: a new cluster in a folder, as durable as one that is installed. */
import { execFile } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Binaries, readCompose } from './binaries.ts';
import { type Identity, Service } from './process.ts';

const run = promisify(execFile);

export const USER = 'temporal';

export interface Postgres {
  readonly port: number;
  readonly pid: number;
  /** Its log file. */
  readonly log: string;
  /** The rows of a query, each cell as text. */
  query(database: string, sql: string): Promise<string[][]>;
  /** SIGKILL of the postmaster; its backends follow. */
  kill(): Promise<void>;
  /** Starts it again over its files, where it recovers from its log. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Creates a cluster and starts it. PostgreSQL refuses to run as root: then it runs under an account that owns nothing
 * else.
 */
export async function startPostgres(binaries: Binaries, folder: string, port: number): Promise<Postgres> {
  const data = join(folder, 'data');
  const identity = await unprivileged();
  mkdirSync(data, { recursive: true });
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(data, identity.uid, identity.gid);
  const init = ['-D', data, '-U', USER, '--auth', 'trust', '--encoding', 'UTF8', '--no-locale'];
  await run(binaries.initdb, init, { ...identity, cwd: '/' });
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='];
  const log = join(folder, 'postgres.log');
  const service = new Service(
    [binaries.postgres, '-D', data, ...readCompose().postgres, ...settings.flatMap((each) => ['-c', each])],
    log,
    identity,
  );
  const query = async (database: string, sql: string): Promise<string[][]> => {
    const to = ['-h', '127.0.0.1', '-p', String(port), '-U', USER, '-d', database];
    const { stdout } = await run(binaries.psql, [...to, '-X', '-A', '-t', '-F', '\t', '-c', sql]);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t'));
  };
  const start = (): Promise<void> => service.start(async () => void (await query('postgres', 'select 1')));
  await start();
  return {
    port,
    log,
    get pid() {
      return service.pid;
    },
    query,
    kill: () => service.end('SIGKILL'),
    restart: start,
    // Nobody reads its files again, so it need not shut down cleanly.
    stop: () => service.end('SIGQUIT'),
  };
}

async function unprivileged(): Promise<Identity> {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all(
        ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
      );
      if (uid !== undefined && gid !== undefined) return { uid, gid };
    } catch {
      // There is no such account here.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither an account `postgres` nor `nobody`');
}
