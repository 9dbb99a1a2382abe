/** A separate Restate server from the binary in the peer's packages, with its defaults: one node, a file store. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../src/server/server-process.ts';
import { until } from '../support/until.ts';

/** A running server. */
export interface RestateServer {
  readonly pid: number;
  readonly ingress: string;
  readonly admin: string;
  /** The port at which it will call the service. */
  readonly servicePort: number;
  /** The first cell of a query over its state. */
  ask(sql: string): Promise<number>;
  stop(): Promise<void>;
}

/** Starts it over files below `dir`. */
export async function startRestate(dir: string, packages: string): Promise<RestateServer> {
  const binary = join(
    packages,
    `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
  );
  await mkdir(dir, { recursive: true });
  const [ingress, admin, fabric, servicePort] = await ports();
  const log = openSync(join(dir, 'restate.log'), 'a');
  const child = spawn(binary, ['--no-logo', '--base-dir', join(dir, 'data'), '--node-name', 'bench'], {
    cwd: dir,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env['PATH'],
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_BIND_PORT: String(fabric),
      RESTATE_INGRESS__BIND_PORT: String(ingress),
      RESTATE_ADMIN__BIND_PORT: String(admin),
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LOG_FILTER: 'warn',
    },
  });
  const exited = once(child, 'exit');
  const failed = once(child, 'error').then(([error]) => {
    throw error as Error;
  });
  const adminUrl = `http://127.0.0.1:${admin}`;
  const healthy = async (url: string): Promise<boolean> =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  const up = until(
    async () =>
      (await healthy(`${adminUrl}/health`)) && (await healthy(`http://127.0.0.1:${ingress}/restate/health`)),
    { everyMs: 50, timeoutMs: 60_000 },
  );
  await Promise.race([
    up,
    failed,
    exited.then(([code]) => {
      throw new Error(`restate-server ended with ${code}; its log is ${join(dir, 'restate.log')}`);
    }),
  ]);
  return {
    pid: child.pid ?? 0,
    ingress: `http://127.0.0.1:${ingress}`,
    admin: adminUrl,
    servicePort,
    ask: async (sql) => {
      const response = await fetch(`${adminUrl}/query`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ query: sql }),
      });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      const { rows } = (await response.json()) as { rows: Record<string, number>[] };
      return Object.values(rows[0] ?? {})[0] ?? 0;
    },
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function ports(): Promise<[number, number, number, number]> {
  return [await freePort(), await freePort(), await freePort(), await freePort()];
}
