/** The servers in which peers keep their state, all on this machine. Each starts when the first peer needs it. */
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { openStack, type Stack as TemporalStack } from '../../faults/stack/index.ts';
import type { Context } from '../support/context.ts';
import { storedBy } from '../support/stored.ts';
import type { PeerSpec } from './catalogue.ts';
import type { Installed } from './install.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { type RestateServer, startRestate } from './restate-server.ts';
import type { Settings } from './serve.ts';

/** Where a peer's state is. */
export interface Backing {
  settings: Partial<Settings>;
  /** The server's process; its children count too. */
  pids: number[];
  /** Bytes that the store holds. */
  stored(): Promise<number>;
  /** Bytes of a session as its server counts them, if it does. */
  counted(session: string): Promise<number | undefined>;
}

/** Starts each server once. */
export class Stack {
  readonly #context: Context;
  readonly versions: Record<string, string> = {};
  #postgres: Promise<Postgres> | undefined;
  #restate: Promise<RestateServer> | undefined;
  #client: Promise<Client> | undefined;
  #overPostgres: Promise<{ stack: TemporalStack; client: Client }> | undefined;

  constructor(context: Context) {
    this.#context = context;
  }

  /** @throws Error that says what is missing. */
  async backing(spec: PeerSpec, installed: Installed | undefined, dir: string): Promise<Backing> {
    switch (spec.store) {
      case 'temporal':
        return this.#temporal(spec);
      case 'temporal-postgres':
        return this.#temporalOverPostgres(spec);
      case 'postgres':
        return this.#database(spec.id.replaceAll('-', '_'));
      case 'sqlite':
        return {
          settings: {},
          pids: [],
          stored: () => sqliteBytes(join(dir, 'langgraph.db')),
          counted: async () => undefined,
        };
      case 'restate':
        return this.#journal(installed?.folder ?? '');
      default:
        return spec.store satisfies never;
    }
  }

  async #temporal({ id }: PeerSpec): Promise<Backing> {
    const server = await this.#context.server();
    const dir = await this.#context.serverDir();
    this.#client ??= (async () => {
      const connection = await Connection.connect({ address: server.address });
      this.#context.onClose(() => connection.close());
      return new Client({ connection });
    })();
    const client = await this.#client;
    return {
      settings: { temporal: server.address, taskQueue: `peer-${id}` },
      pids: [server.pid],
      stored: () => sqliteBytes(join(dir, 'temporal.db')),
      counted: async (workflowId) => (await storedBy(client, workflowId)).bytes,
    };
  }

  /** The stack of docker-compose.yml, from binaries. Both peers that are measured on it share it. */
  async #temporalOverPostgres({ id }: PeerSpec): Promise<Backing> {
    this.#overPostgres ??= (async () => {
      const stack = await openStack((line) => console.error(`  ${line}`));
      this.#context.onClose(() => stack.stop());
      const connection = await Connection.connect({ address: stack.address });
      this.#context.onClose(() => connection.close());
      return { stack, client: new Client({ connection }) };
    })();
    const { stack, client } = await this.#overPostgres;
    return {
      settings: { temporal: stack.address, taskQueue: `peer-${id}` },
      pids: [stack.pid, stack.database.pid],
      stored: async () => {
        await stack.database.query('temporal', 'checkpoint');
        const tables = 'select sum(pg_total_relation_size(relid)) from pg_stat_user_tables';
        const sizes = await Promise.all(
          ['temporal', 'temporal_visibility'].map((name) => stack.database.query(name, tables)),
        );
        return sizes.reduce((sum, [row]) => sum + Number(row?.[0]), 0);
      },
      counted: async (workflowId) => (await storedBy(client, workflowId)).bytes,
    };
  }

  async #database(name: string): Promise<Backing> {
    this.#postgres ??= (async () => {
      const postgres = await startPostgres(await this.#context.temporaryDir());
      this.#context.onClose(() => postgres.stop());
      this.versions['postgresql'] = postgres.version;
      return postgres;
    })();
    const postgres = await this.#postgres;
    await postgres.ask('postgres', `create database ${name}`);
    return {
      settings: { postgres: postgres.url(name) },
      pids: [postgres.pid],
      stored: async () => {
        await postgres.ask(name, 'checkpoint');
        const tables = `select sum(pg_total_relation_size(relid)) from pg_stat_user_tables`;
        return Number(await postgres.ask(name, tables));
      },
      counted: async () => undefined,
    };
  }

  async #journal(packages: string): Promise<Backing> {
    this.#restate ??= (async () => {
      const server = await startRestate(await this.#context.temporaryDir(), packages);
      this.#context.onClose(() => server.stop());
      return server;
    })();
    const server = await this.#restate;
    return {
      settings: { restateIngress: server.ingress, restateAdmin: server.admin, port: server.servicePort },
      pids: [server.pid],
      // Its files hold log and state twice, and are compacted later. The size of the journal is exact.
      stored: () => server.ask('select sum(raw_length) as bytes from sys_journal'),
      counted: async () => undefined,
    };
  }
}

/** Bytes of a workflow's history, as its server counts them. */
export async function historyBytes(client: Client, workflowId: string): Promise<number> {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  return Number(raw.workflowExecutionInfo?.historySizeBytes ?? Number.NaN);
}

/** Bytes of the pages in use, including those in the write-ahead log, from the pragmas' answers. */
export function bytesInUse(pragma: (name: string) => number): number {
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
}

/**
 * The bytes in use of a file that another process has open. Opening it twice in one process would end SQLite's locks.
 */
export async function sqliteBytes(path: string): Promise<number> {
  const { default: Database } = await import('libsql');
  const database = new Database(path, { timeout: 10_000 });
  try {
    return bytesInUse((name) =>
      Number(Object.values(database.prepare(`pragma ${name}`).get() as Record<string, number>)[0]),
    );
  } finally {
    database.close();
  }
}
