/** The worker of an archive as its own process, over one file. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createArchiveWorker } from 'perdure/archive';
import type { Lane } from './lane.ts';

const SELF = fileURLToPath(import.meta.url);

export interface Archiver {
  readonly pid: number;
  readonly name: string;
  readonly path: string;
  stop(): Promise<void>;
}

/** Starts an archiver that exports all sessions of a lane's server. Resolves when it polls. */
export async function startArchiver({ server }: Lane, path: string): Promise<Archiver> {
  const name = `lab-${process.pid}-${Date.now()}`;
  const child = fork(SELF, [server.address, path, name], { execArgv: ['--import', 'tsx'] });
  const exited = once(child, 'exit');
  await Promise.race([
    once(child, 'message'),
    exited.then(() => {
      throw new Error('the worker of the archive ended before it was ready');
    }),
  ]);
  return {
    pid: child.pid ?? 0,
    name,
    path,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

// As a process: it ends with its parent.
if (process.argv[1] === SELF) {
  const [address = '', path = '', name = ''] = process.argv.slice(2);
  process.once('disconnect', () => process.exit(0));
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const worker = await createArchiveWorker({ address, path, name });
  const running = worker.run();
  process.send?.('ready');
  await running;
}
