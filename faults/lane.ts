/** A lane of the lab: a Temporal server and a payments service, each a process of its own, for one run at a time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createPaymentsControl, type PaymentsControl } from '../examples/payments/control.ts';
import type { Row } from '../examples/payments/protocol.ts';
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../src/server/index.ts';
import { openStack } from './stack/index.ts';
import type { Postgres } from './stack/postgres.ts';
import type { Keys, StackName } from './story.ts';

const SERVICE = fileURLToPath(new URL('../examples/payments/server.ts', import.meta.url));

/** A Temporal server that can be killed and started again over its store. */
interface LabServer {
  readonly address: string;
  readonly namespace: string;
  readonly pid: number;
  /** Only for a server whose database is a process of its own. */
  readonly database?: Postgres;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface Lane {
  readonly keys: Keys;
  readonly server: LabServer;
  /** `host:port` of the payments service. */
  readonly payments: string;
  readonly control: PaymentsControl;
  /** A file that is removed with the lane. */
  file(name: string): string;
  /** The refunds on the disk of the service, oldest first. */
  ledger(): readonly Extract<Row, { kind: 'refund' }>[];
  close(): Promise<void>;
}

/** Opens a lane whose service honours or ignores idempotency keys. */
export async function openLane(keys: Keys, stack: StackName): Promise<Lane> {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-faults-'));
  const ledgerFile = join(folder, 'ledger.jsonl');
  const onProgress = (line: string): void => console.error(line);
  const server: LabServer =
    stack === 'postgres'
      ? await openStack(onProgress)
      : await startServer({
          dir: join(folder, 'temporal'),
          searchAttributes: SESSION_SEARCH_ATTRIBUTES,
          onProgress,
        });
  const service = await startService([
    '--ledger',
    ledgerFile,
    '--with-stdin',
    ...(keys === 'ignored' ? ['--ignore-keys'] : []),
  ]);
  return {
    keys,
    server,
    payments: service.url.replace('http://', ''),
    control: createPaymentsControl(service.url),
    file: (name) => join(folder, name),
    ledger: () =>
      existsSync(ledgerFile)
        ? readFileSync(ledgerFile, 'utf8')
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line) as Row)
            .filter((row) => row.kind === 'refund')
        : [],
    close: async () => {
      await service.stop();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startService(args: readonly string[]): Promise<{ url: string; stop: () => Promise<void> }> {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', SERVICE, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  if (child.stdout === null) throw new Error('the payments service has no output');
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited.then(() => {
      throw new Error('the payments service ended before it was ready');
    }),
  ])) as [string];
  const { url } = JSON.parse(line) as { url: string };
  return {
    url,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
