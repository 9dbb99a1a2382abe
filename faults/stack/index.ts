/**
 * A Temporal server over PostgreSQL, from binaries: the versions and settings of docker-compose.yml, without
 * containers. For the fault lab, the bench, and anybody who wants numbers of a server other than the dev server.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Connection, isGrpcServiceError } from '@temporalio/client';
import { stringify } from 'yaml';
import { ensureSearchAttributes, SESSION_SEARCH_ATTRIBUTES } from '../../src/server/index.ts';
import { type Binaries, findBinaries, readCompose } from './binaries.ts';
import { type Postgres, startPostgres, USER } from './postgres.ts';
import { freeSmallPort, Service } from './process.ts';
import { projectFile } from './project.ts';

const run = promisify(execFile);

const STORES = [
  { database: 'temporal', schema: 'postgresql/v12/temporal' },
  { database: 'temporal_visibility', schema: 'postgresql/v12/visibility' },
] as const;
/** The defaults of the server image in docker-compose.yml. */
const HISTORY_SHARDS = 4;
const CONNECTIONS = { default: 20, visibility: 10 };
const DYNAMIC_CONFIG = projectFile('deploy/dynamic-config.yaml');
/** The gRPC status of the same name. */
const ALREADY_EXISTS = 6;

/** A server over a database. Each can be killed and restarted by itself. */
export interface Stack {
  readonly address: string;
  readonly namespace: string;
  /** The process id of the Temporal server. */
  readonly pid: number;
  readonly database: Postgres;
  /** SIGKILL of the Temporal server. */
  kill(): Promise<void>;
  /** Starts it again over its database, at the same address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL and a Temporal server over it, in a folder that is removed with them.
 *
 * @throws MissingBinaryError with what to install.
 */
export async function openStack(onProgress: (line: string) => void = () => {}): Promise<Stack> {
  const binaries = await findBinaries(onProgress);
  const folder = mkdtempSync(join(tmpdir(), 'perdure-stack-'));
  // The database may run under another account.
  chmodSync(folder, 0o755);
  const database = await startPostgres(binaries, folder, await freeSmallPort());
  await setUp(binaries, database.port);
  const server = await prepare(binaries, folder, database.port);
  await server.start();
  return {
    address: server.address,
    namespace: server.namespace,
    get pid() {
      return server.service.pid;
    },
    database,
    kill: () => server.service.end('SIGKILL'),
    restart: server.start,
    stop: async () => {
      // SIGKILL, because a server takes long to leave a cluster of which it is the only member.
      await server.service.end('SIGKILL');
      await database.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Creates the databases and their tables with the server's own tool. */
async function setUp({ sql }: Binaries, port: number): Promise<void> {
  for (const { database, schema } of STORES) {
    const where = `--plugin postgres12 --ep 127.0.0.1 -p ${port} -u ${USER} --db ${database}`.split(' ');
    const tool = (...args: string[]): Promise<unknown> => run(sql, [...where, ...args]);
    await tool('create-database');
    await tool('setup-schema', '-v', '0.0');
    await tool('update-schema', '--schema-name', schema);
  }
}

async function prepare(
  { server }: Binaries,
  folder: string,
  port: number,
): Promise<{ address: string; namespace: string; service: Service; start: () => Promise<void> }> {
  const { environment } = readCompose();
  const namespace = environment['DEFAULT_NAMESPACE'] ?? 'default';
  const names = ['frontend', 'history', 'matching', 'worker'] as const;
  const services: Record<string, { rpc: Record<string, string | number> }> = {};
  for (const name of names) {
    services[name] = {
      rpc: { grpcPort: await freeSmallPort(), membershipPort: await freeSmallPort(), bindOnIP: '127.0.0.1' },
    };
  }
  const address = `127.0.0.1:${services['frontend']?.rpc['grpcPort']}`;
  mkdirSync(join(folder, 'config'));
  writeFileSync(
    join(folder, 'config', 'stack.yaml'),
    stringify(config(services, address, port, environment)),
  );
  const service = new Service(
    [server, '--root', folder, '--config', 'config', '--env', 'stack', '--allow-no-auth', 'start'],
    join(folder, 'server.log'),
  );
  const start = (): Promise<void> =>
    service.start(() => ready(address, namespace, environment['DEFAULT_NAMESPACE_RETENTION'] ?? '24h'));
  return { address, namespace, service, start };
}

function config(
  services: object,
  address: string,
  port: number,
  environment: Readonly<Record<string, string>>,
): object {
  const store = (databaseName: string, connections: number): object => ({
    sql: {
      pluginName: environment['DB'],
      databaseName,
      connectAddr: `127.0.0.1:${port}`,
      connectProtocol: 'tcp',
      user: USER,
      password: USER,
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: '1h',
    },
  });
  const [main, visibility] = STORES;
  return {
    log: { stdout: true, level: environment['LOG_LEVEL'] },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: Number(environment['NUM_HISTORY_SHARDS'] ?? HISTORY_SHARDS),
      datastores: {
        default: store(main.database, CONNECTIONS.default),
        visibility: store(visibility.database, CONNECTIONS.visibility),
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services,
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    dynamicConfigClient: { filepath: DYNAMIC_CONFIG, pollInterval: '60s' },
  };
}

/** Resolves when the server has the namespace and the search attributes, which it gets at its first start. */
async function ready(address: string, namespace: string, retention: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 2_000 });
  try {
    const hours = Number.parseInt(retention, 10);
    await connection.withDeadline(Date.now() + 10_000, async () => {
      try {
        await connection.workflowService.registerNamespace({
          namespace,
          workflowExecutionRetentionPeriod: { seconds: (hours * 3_600) as unknown as never },
        });
      } catch (error) {
        if (!(isGrpcServiceError(error) && Number(error.code) === ALREADY_EXISTS)) throw error;
      }
      await ensureSearchAttributes(connection, namespace, SESSION_SEARCH_ATTRIBUTES);
    });
  } finally {
    await connection.close();
  }
}
