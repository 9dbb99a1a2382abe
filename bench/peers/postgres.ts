/** A separate PostgreSQL from the binaries of this machine, with its default settings. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../src/server/server-process.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const DISTRIBUTIONS = ['/usr/lib/postgresql', '/usr/local/pgsql', '/opt/homebrew/opt/postgresql@17'];

/** A running cluster. */
export interface Postgres {
  readonly pid: number;
  readonly version: string;
  url(database: string): string;
  /** The first cell of a query's result. */
  ask(database: string, sql: string): Promise<string>;
  /** Ends it at once, like a failure of its machine. */
  stop(): Promise<void>;
  /** Starts it again where it was. */
  restart(): Promise<void>;
}

/** The directory of its programs, or nothing. */
export function findPrograms(): string | undefined {
  const packaged = DISTRIBUTIONS.flatMap((base) => {
    if (!existsSync(base)) return [];
    const versions = readdirSync(base).filter((name) => /^\d+$/.test(name));
    return [base, ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(base, version))];
  }).map((home) => join(home, 'bin'));
  return [...(process.env['PATH'] ?? '').split(delimiter), ...packaged].find((bin) =>
    ['initdb', 'postgres', 'psql'].every((name) => existsSync(join(bin, name))),
  );
}

/** PostgreSQL refuses to run as root: then it runs as the account that its package made, or as nobody. */
async function identity(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const ids = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, name]))).catch(() => undefined);
    if (ids !== undefined) return { uid: Number(ids[0]?.stdout), gid: Number(ids[1]?.stdout) };
  }
  throw new Error('PostgreSQL does not run as root, and there is neither an account postgres nor nobody');
}

/**
 * Makes a cluster below `dir` and starts it.
 *
 * @throws Error that says what to install when there are no binaries.
 */
export async function startPostgres(dir: string): Promise<Postgres> {
  const bin = findPrograms();
  if (bin === undefined)
    throw new Error('needs PostgreSQL: initdb, postgres and psql on PATH or in /usr/lib/postgresql');
  const data = join(dir, 'data');
  const as = await identity();
  await mkdir(data, { recursive: true });
  if (as !== undefined) {
    await chmod(dir, 0o755);
    await chown(data, as.uid, as.gid);
  }
  await run(join(bin, 'initdb'), ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--no-locale'], {
    ...as,
    cwd: '/',
  });
  const port = await freePort();
  const log = openSync(join(dir, 'postgres.log'), 'a');
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='];
  const launch = (): { child: ChildProcess; exited: Promise<unknown> } => {
    const child = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((each) => ['-c', each])], {
      ...as,
      cwd: '/',
      stdio: ['ignore', log, log],
    });
    return { child, exited: once(child, 'exit') };
  };
  const ask = async (database: string, sql: string): Promise<string> => {
    const to = ['-h', '127.0.0.1', '-p', String(port), '-U', 'bench', '-d', database, '-XAtq', '-c', sql];
    return (await run(join(bin, 'psql'), to)).stdout.trim();
  };
  const untilUp = (): Promise<string> =>
    until(() => ask('postgres', 'show server_version').catch(() => undefined), {
      everyMs: 100,
      timeoutMs: 30_000,
    });
  let running = launch();
  const version = await untilUp();
  return {
    get pid() {
      return running.child.pid ?? 0;
    },
    version,
    url: (database) => `postgresql://bench@127.0.0.1:${port}/${database}`,
    ask,
    stop: async () => {
      running.child.kill('SIGQUIT');
      await running.exited;
    },
    restart: async () => {
      running = launch();
      await untilUp();
    },
  };
}
