/** A dev server that this process started and will stop. */

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { watchDatabase } from './broken-database.ts';
import { settle } from './probe.ts';
import { acquireServerLock, type RunningServer, type ServerLock } from './server-lock.ts';
import {
  DEFAULT_START_MS,
  DEV_SERVER_DYNAMIC_CONFIG,
  DEV_SERVER_SQLITE_PRAGMAS,
  type ServerHandle,
  type StartServerOptions,
} from './server-options.ts';
import { accepts, freePort, type ServerProcess, spawnServer } from './server-process.ts';
import { poll } from './wait.ts';

const HOST = '127.0.0.1';
const STOP_MS = 10_000;
const PORT_TRIES = 5;

/** See {@link ServerHandle}. Only `startServer` creates it, since it holds the lock of the database file. */
export class OwnedServer implements ServerHandle {
  readonly owned = true;
  readonly namespace: string;
  readonly #options: StartServerOptions;
  readonly #binary: string;
  readonly #dbFile: string | null;
  readonly #startTimeout: number;
  #lock: ServerLock | null;
  #logDir = '';
  #port = 0;
  #uiPort: number | null = null;
  #pid = 0;
  #process: ServerProcess | null = null;
  #endWatch: () => void = () => undefined;
  /** The restart in progress after the database broke. */
  #mending: Promise<void> | null = null;

  constructor(
    options: StartServerOptions,
    binary: string,
    store: { dbFile: string; lock: ServerLock } | null,
  ) {
    this.#options = options;
    this.#binary = binary;
    this.#dbFile = store?.dbFile ?? null;
    this.#lock = store?.lock ?? null;
    this.#startTimeout = options.startTimeoutMs ?? DEFAULT_START_MS;
    this.namespace = options.namespace ?? 'default';
  }

  get address(): string {
    return `${HOST}:${this.#port}`;
  }

  get uiUrl(): string | null {
    return this.#uiPort === null ? null : `http://${HOST}:${this.#uiPort}`;
  }

  get pid(): number {
    return this.#pid;
  }

  get logFile(): string {
    return join(this.#logDir, 'server.log');
  }

  async begin(): Promise<ServerHandle> {
    try {
      this.#logDir = this.#dbFile ? dirname(this.#dbFile) : await mkdtemp(join(tmpdir(), 'perdure-server-'));
      await this.#start(true);
      return this;
    } catch (error) {
      await this.#lock?.release();
      await this.#removeTemporaryLog();
      throw error;
    }
  }

  async ended(): Promise<void> {
    do await this.#process?.exited;
    while (
      await this.#mending?.then(
        () => true,
        () => false,
      )
    );
  }

  async stop(): Promise<void> {
    await this.#mending?.catch(() => undefined);
    // An in-memory store is lost anyway, so there is no need for a graceful shutdown.
    if (this.#process) await this.#end(this.#process, this.#dbFile === null ? 'SIGKILL' : 'SIGTERM');
    await this.#removeTemporaryLog();
  }

  async kill(): Promise<void> {
    if (this.#process) await this.#end(this.#process, 'SIGKILL');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    if (this.#dbFile === null) {
      await mkdir(this.#logDir, { recursive: true });
    } else {
      this.#lock = await relock(this.#dbFile, this.#startTimeout);
    }
    await this.#start(false);
  }

  async #start(choosePorts: boolean): Promise<void> {
    const { port, ui } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      if (choosePorts) {
        this.#port = port ?? (await freePort());
        this.#uiPort = typeof ui === 'number' ? ui : ui ? await freePort() : null;
      }
      const server = await this.#spawn();
      try {
        await this.#untilReady(server);
        if (this.#dbFile) await ownFiles(this.#dbFile);
        await this.#lock?.publish({ ...this.#describe(), pid: server.pid });
        this.#process = server;
        this.#pid = server.pid;
        this.#endWatch = watchDatabase(this, () => void this.#mend());
        return;
      } catch (error) {
        const log = server.logTail();
        await this.#end(server, 'SIGKILL');
        // The server also picks ports itself, so a retry can help even when our ports are fixed.
        const ours = port !== undefined && log.includes(`port ${port}:`);
        if (ours || !/address already in use/i.test(log) || attempt === PORT_TRIES) throw error;
        // When an attempt fails, its process releases the lock.
        if (this.#dbFile) this.#lock = await relock(this.#dbFile, this.#startTimeout);
      }
    }
  }

  /** Restarts the server after its database broke. The database file is still sound. */
  async #mend(): Promise<void> {
    const tell = (line: string): void => this.#options.onProgress?.(line);
    const kept = this.#dbFile === null ? 'what it had in memory is lost' : 'nothing is lost';
    tell(`Temporal's SQLite answers each request with "interrupted (9)": starting it again, ${kept}`);
    this.#mending = this.kill().then(() => this.#startAgain());
    try {
      await this.#mending;
      tell('Temporal answers again');
    } catch (error) {
      tell(`Temporal was not started again: ${messageOf(error)}`);
    } finally {
      this.#mending = null;
    }
  }

  async #spawn(): Promise<ServerProcess> {
    try {
      const server = await spawnServer(this.#binary, this.#arguments(), this.logFile, this.#dbFile === null);
      const lock = this.#lock;
      // Release the lock also when the server ends by itself, so that the next one need not wait.
      void server.exited.then(() => lock?.release());
      return server;
    } catch (cause) {
      throw new PerdureError('SERVER_UNAVAILABLE', `${this.#binary} could not be run: ${messageOf(cause)}`, {
        details: { binary: this.#binary },
        cause,
      });
    }
  }

  #arguments(): string[] {
    const args = ['server', 'start-dev', '--ip', HOST, '--port', String(this.#port), '--log-level', 'warn'];
    args.push(...(this.#uiPort === null ? ['--headless'] : ['--ui-port', String(this.#uiPort)]));
    if (this.namespace !== 'default') args.push('--namespace', this.namespace);
    if (this.#dbFile) args.push('--db-filename', this.#dbFile);
    for (const [key, value] of Object.entries(DEV_SERVER_DYNAMIC_CONFIG)) {
      args.push('--dynamic-config-value', `${key}=${JSON.stringify(value)}`);
    }
    for (const [key, value] of Object.entries(DEV_SERVER_SQLITE_PRAGMAS))
      args.push('--sqlite-pragma', `${key}=${value}`);
    for (const [key, value] of Object.entries(this.#options.searchAttributes ?? {})) {
      args.push('--search-attribute', `${key}=${value}`);
    }
    return args;
  }

  async #untilReady(server: ServerProcess): Promise<void> {
    const limit = this.#startTimeout;
    let last: unknown;
    const ready = await poll(async () => {
      const end = server.ended();
      if (end !== null) throw this.#failedStart(`ended with ${end} while starting`, server, last);
      if (!(await accepts(HOST, this.#port))) return undefined;
      try {
        const settled = settle(this.address, this.namespace, this.#options.searchAttributes).then(() => true);
        // Another program may hold the port without answering; our server has then ended because of it.
        return await Promise.race([settled, server.exited.then(() => undefined)]);
      } catch (error) {
        last = error;
        return undefined;
      }
    }, limit);
    if (ready === undefined) throw this.#failedStart(`did not answer within ${limit / 1000} s`, server, last);
  }

  #failedStart(what: string, server: ServerProcess, cause: unknown): PerdureError {
    const log = server.logTail();
    const said = log === '' ? 'It wrote nothing.' : `The end of its log:\n${log}`;
    return new PerdureError(
      'SERVER_UNAVAILABLE',
      `The Temporal dev server (${this.#binary}) ${what}. ${said}`,
      {
        details: { ...this.#describe(), binary: this.#binary, log },
        cause,
      },
    );
  }

  #describe(): Omit<RunningServer, 'ownerPid' | 'pid'> {
    return { address: this.address, uiUrl: this.uiUrl, namespace: this.namespace, logFile: this.logFile };
  }

  async #end(server: ServerProcess, signal: NodeJS.Signals): Promise<void> {
    this.#endWatch();
    server.signal(signal);
    const ended = await poll(() => (server.ended() === null ? undefined : true), STOP_MS, 10);
    if (!ended) server.signal('SIGKILL');
    await server.exited;
    await this.#lock?.release();
    if (this.#process === server) this.#process = null;
  }

  async #removeTemporaryLog(): Promise<void> {
    if (this.#dbFile === null && this.#logDir !== '')
      await rm(this.#logDir, { recursive: true, force: true });
  }
}

async function relock(dbFile: string, timeoutMs: number): Promise<ServerLock> {
  const holder = await acquireServerLock(dbFile, timeoutMs);
  if (!('address' in holder)) return holder;
  throw new PerdureError('CONFLICT', `${dbFile} is now used by the server of process ${holder.ownerPid}.`, {
    details: { dbFile, ownerPid: holder.ownerPid, address: holder.address },
  });
}

/**
 * The server makes its files readable for everyone. Files that SQLite creates later get the mode of the database file.
 */
async function ownFiles(dbFile: string): Promise<void> {
  for (const name of [dbFile, `${dbFile}-wal`, `${dbFile}-shm`]) {
    await chmod(name, 0o600).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    });
  }
}
