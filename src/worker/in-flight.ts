/**
 * A journal of a worker's activities in flight. The worker that starts after a death fails them at once, so that
 * recovery takes as long as a start, not as a heartbeat.
 *
 * The proof of death is a socket that the kernel closes with the process. A frozen or slow process keeps its socket,
 * and so its activities. Heartbeats detect deaths on other hosts.
 */

import { createHash, randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ActivityInterceptorsFactory, NativeConnection } from '@temporalio/worker';
import { LOST } from '../contract/failure.ts';
import { ACTIVITY } from '../contract/names.ts';
import { ownDirectory } from './own-directory.ts';

/** An activity in flight, or one that has just ended. */
interface Held {
  token: string;
  workflowId: string;
  runId: string;
  /** Its tool has not begun, or its model has not been asked. */
  unbegun?: boolean;
  endedAt?: number;
}

/** How long an ended activity is kept: its completion may not have reached the server. */
const KEEP_ENDED_MS = 10_000;
const COMPACT_BYTES = 256_000;
/** The gRPC statuses NOT_FOUND and INVALID_ARGUMENT: the server does not know the call. */
const GONE: ReadonlySet<unknown> = new Set([5, 3]);

/** The workers that share journals: one user, one task queue, one kernel. */
export interface JournalScope {
  /** The server's id of the namespace: each server on a host has a `default`. */
  namespaceId: string;
  taskQueue: string;
  /** Default: a directory of this user in the system's temporary directory. */
  directory?: string;
}

/** Makes the directory of a scope's journals. @throws Error when others can write to it */
export async function journalDirectory({ namespaceId, taskQueue, directory }: JournalScope): Promise<string> {
  const root = directory ?? join(tmpdir(), `perdure-${process.getuid?.() ?? 0}`);
  // Anybody who can write here could fail our calls.
  if (!ownDirectory(root)) throw new Error(`${root} can be written by other users`);
  const scope = createHash('sha256')
    .update(`${namespaceId}\n${taskQueue}\n${kernel()}`)
    .digest('hex')
    .slice(0, 16);
  await mkdir(join(root, scope), { recursive: true, mode: 0o700 });
  return join(root, scope);
}

/** Identifies the kernel: processes on the same kernel see the same sockets. */
function kernel(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
  } catch {
    return hostname();
  }
}

function socketPath(directory: string, name: string): string {
  return process.platform === 'win32'
    ? `\\\\.\\pipe\\perdure-${createHash('sha256').update(directory).digest('hex').slice(0, 8)}-${name}`
    : join(directory, `${name}.sock`);
}

/** The journal of this process. */
export class InFlightJournal {
  readonly #directory: string;
  readonly #name: string;
  readonly #socket: Server;
  readonly #held = new Map<string, Held>();
  /** `null` after a failed write: recovery then waits for heartbeats. */
  #file: number | null;
  #bytes = 0;
  #compactAt = COMPACT_BYTES;
  /** Ends that are written with the next activity. A successor can also learn them from the server. */
  #later = '';

  private constructor(directory: string, name: string, socket: Server) {
    this.#directory = directory;
    this.#name = name;
    this.#socket = socket;
    this.#file = openSync(this.#path, 'a', 0o600);
  }

  /** Opens a journal in a directory of journals. */
  static async open(directory: string): Promise<InFlightJournal> {
    const name = `${process.pid}-${randomBytes(4).toString('hex')}`;
    const socket = createServer((connection) => connection.destroy());
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.listen(socketPath(directory, name), resolve);
    });
    socket.unref();
    return new InFlightJournal(directory, name, socket);
  }

  /** Writes each activity before it runs. */
  readonly interceptor: ActivityInterceptorsFactory = ({ info }) => ({
    inbound: {
      execute: async (input, next) => {
        if (this.#file === null || info.workflowExecution === undefined) return next(input);
        const held: Held = { token: info.base64TaskToken, ...info.workflowExecution };
        // Earlier attempts may have asked the model, so only the first one certainly has not.
        const asks = info.activityType === ACTIVITY.model || info.activityType === ACTIVITY.aside;
        const isFirst = asks && info.attempt === 1;
        if (info.activityType === ACTIVITY.tool || isFirst) held.unbegun = true;
        this.#held.set(held.token, held);
        this.#write(held);
        try {
          return await next(input);
        } finally {
          held.endedAt = Date.now();
          this.#later += line(held);
        }
      },
    },
  });

  /** Records that the tool of a mutation begins, or that a model is asked. */
  began(token: string): void {
    const held = this.#held.get(token);
    if (held === undefined) return;
    held.unbegun = false;
    this.#write(held);
  }

  /** Removes the journal: the worker has ended its activities. */
  async close(): Promise<void> {
    this.#end();
    await new Promise((resolve) => this.#socket.close(resolve));
    // Other workers' journals may be in the directory.
    await rmdir(this.#directory).catch(() => {});
  }

  /** Stops writing, and removes the file. */
  #end(): void {
    if (this.#file === null) return;
    closeSync(this.#file);
    this.#file = null;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // A successor then asks the server about calls that have ended.
    }
  }

  get #path(): string {
    return join(this.#directory, `${this.#name}.jsonl`);
  }

  #write(held: Held): void {
    try {
      if (this.#file !== null) this.#append(this.#file, held);
    } catch {
      // A full disk, or a removed directory: the call is more important than its journal.
      this.#end();
    }
  }

  #append(file: number, held: Held): void {
    const text = this.#later + line(held);
    this.#later = '';
    this.#bytes += text.length;
    if (this.#bytes < this.#compactAt) {
      // Not synced: the text only has to outlive the process.
      appendFileSync(file, text);
      return;
    }
    this.#compact(file);
  }

  #compact(file: number): void {
    const now = Date.now();
    for (const [token, { endedAt }] of this.#held) {
      if (endedAt !== undefined && now - endedAt > KEEP_ENDED_MS) this.#held.delete(token);
    }
    const text = [...this.#held.values()].map(line).join('');
    const draft = `${this.#path}.new`;
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, this.#path);
    this.#file = openSync(this.#path, 'a', 0o600);
    closeSync(file);
    this.#bytes = text.length;
    // Otherwise a busy worker would rewrite all of its recent calls with each call.
    this.#compactAt = Math.max(COMPACT_BYTES, 2 * text.length);
  }
}

function line(held: Held): string {
  return `${JSON.stringify(held)}\n`;
}

/**
 * Fails the calls that dead predecessors on this kernel had in flight, and returns their workflows to the common queue.
 * A failed mutation is *unknown*, as after a lost heartbeat. Other calls are attempted again. Two successors at once do
 * no harm.
 *
 * @throws errors of the server or the disk. The journal then stays for the next successor.
 */
export async function recoverPredecessors(
  connection: NativeConnection,
  namespace: string,
  directory: string,
): Promise<void> {
  for (const file of await readdir(directory)) {
    if (!file.endsWith('.jsonl')) continue;
    const socket = socketPath(directory, file.slice(0, -'.jsonl'.length));
    if (!(await isDead(socket))) continue;
    const text = await readFile(join(directory, file), 'utf8').catch(() => null);
    // Another successor has recovered this journal.
    if (text === null) continue;
    await recover(connection, namespace, readHeld(text));
    await rm(join(directory, file), { force: true });
    await rm(socket, { force: true });
  }
}

/**
 * The sticky queue must be reset before a session's next workflow task is scheduled. So ended activities are failed
 * first, and open ones last. Where the server no longer knew an open call, the queue is reset again.
 */
async function recover(
  connection: NativeConnection,
  namespace: string,
  held: readonly Held[],
): Promise<void> {
  const giveUpAll = (some: readonly Held[]): Promise<boolean[]> =>
    Promise.all(some.map((activity) => giveUp(connection, namespace, activity)));
  const unstickAll = async (some: readonly Held[]): Promise<void> => {
    const runs = new Map(some.map(({ workflowId, runId }) => [runId, { workflowId, runId }]));
    await Promise.all([...runs.values()].map((execution) => unstick(connection, namespace, execution)));
  };
  await giveUpAll(held.filter(({ endedAt }) => endedAt !== undefined));
  await unstickAll(held);
  const open = held.filter(({ endedAt }) => endedAt === undefined);
  const failed = await giveUpAll(open);
  await unstickAll(open.filter((_, i) => failed[i] === false));
}

/** Whether nobody listens on a socket. A missing socket is no proof, except for a named pipe of Windows. */
function isDead(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === (process.platform === 'win32' ? 'ENOENT' : 'ECONNREFUSED')),
    );
  });
}

function readHeld(text: string): Held[] {
  const held = new Map<string, Held>();
  let last = 0;
  for (const line of text.split('\n')) {
    try {
      const entry = JSON.parse(line) as Held;
      held.set(entry.token, entry);
      last = Math.max(last, entry.endedAt ?? 0);
    } catch {
      // The last line of a process that was killed while it wrote.
    }
  }
  return [...held.values()].filter(({ endedAt }) => endedAt === undefined || last - endedAt < KEEP_ENDED_MS);
}

/** Returns whether the activity was still open. */
async function giveUp(
  connection: NativeConnection,
  namespace: string,
  { token, unbegun }: Held,
): Promise<boolean> {
  try {
    await connection.workflowService.respondActivityTaskFailed({
      namespace,
      taskToken: Buffer.from(token, 'base64'),
      identity: `successor ${process.pid}@${hostname()}`,
      failure: {
        message: 'the worker that had this call has died',
        source: 'perdure',
        applicationFailureInfo: {
          type: unbegun === true ? LOST.unbegun : LOST.worker,
          nextRetryDelay: { nanos: 1_000_000 },
        },
      },
    });
    return true;
  } catch (error) {
    // The completion of the activity has arrived, or the server has given the activity up.
    if (GONE.has((error as { code?: unknown }).code)) return false;
    throw error;
  }
}

async function unstick(
  connection: NativeConnection,
  namespace: string,
  execution: { workflowId: string; runId: string },
): Promise<void> {
  try {
    await connection.workflowService.resetStickyTaskQueue({ namespace, execution });
  } catch {
    // The workflow is closed. Otherwise the sticky queue's time-out of a second does the same.
  }
}
