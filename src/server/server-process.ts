/** A dev server as a child process. It is detached from the terminal, logs to a file, and ends with this process. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname } from 'node:path';

/** A running (or ended) server process. */
export interface ServerProcess {
  readonly pid: number;
  /** How it ended ("code 1", "SIGKILL"), or null while it runs. */
  ended(): string | null;
  /** Resolves when it has ended. Never rejects. */
  readonly exited: Promise<void>;
  /** Sends a signal. Does nothing when the process has ended. */
  signal(signal: NodeJS.Signals): void;
  /** The last output of this process, at most 4 KiB. */
  logTail(): string;
}

const LOG_LIMIT_BYTES = 4 * 1024 * 1024;
const TAIL_BYTES = 4 * 1024;

/** Servers to end when our process exits normally. After SIGKILL or an unhandled signal the watchdog ends them. */
const running = new Map<ChildProcess, NodeJS.Signals>();
let exitHandlerInstalled = false;

/**
 * Starts the server in a process group of its own, so that Ctrl-C reaches us and not the server.
 *
 * @param temporary whether the store is in memory. Such a server is killed when our process exits, and its log
 * directory is removed. Other servers are stopped gracefully, so that they close their files.
 * @throws Error when the binary cannot be executed.
 */
export async function spawnServer(
  binary: string,
  args: readonly string[],
  logFile: string,
  temporary: boolean,
): Promise<ServerProcess> {
  const log = openSync(logFile, 'a', 0o600);
  let child: ChildProcess;
  let logStart: number;
  try {
    if (fstatSync(log).size > LOG_LIMIT_BYTES) ftruncateSync(log, 0);
    logStart = fstatSync(log).size;
    child = spawn(binary, args, { detached: true, stdio: ['ignore', log, log] });
  } finally {
    closeSync(log);
  }
  await once(child, 'spawn');
  const pid = child.pid as number;
  child.unref();
  running.set(child, temporary ? 'SIGKILL' : 'SIGTERM');
  if (!exitHandlerInstalled) {
    exitHandlerInstalled = true;
    process.on('exit', () => {
      for (const [server, signal] of running) server.kill(signal);
    });
  }
  const watchdog = spawnWatchdog(pid, temporary ? dirname(logFile) : '');

  let end: string | null = null;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      end = signal ?? `code ${code}`;
      running.delete(child);
      watchdog?.kill('SIGKILL');
      resolve();
    });
  });
  return {
    pid,
    exited,
    ended: () => end,
    signal: (signal) => void child.kill(signal),
    logTail: () => readTail(logFile, logStart),
  };
}

/**
 * A shell that reads a pipe of which we are the only writer. When our process ends for any reason, the read ends. The
 * shell then stops the server, kills it if needed, and removes its temporary directory.
 */
function spawnWatchdog(pid: number, temporaryDir: string): ChildProcess | null {
  if (process.platform === 'win32') return null;
  const script = `read -r _
    kill -s TERM "$1" 2>/dev/null
    ended=
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" 2>/dev/null || { ended=1; break; }; sleep 1; done
    [ -n "$ended" ] || kill -s KILL "$1" 2>/dev/null
    [ -z "$2" ] || rm -rf -- "$2"`;
  const child = spawn('/bin/sh', ['-c', script, 'perdure-watchdog', String(pid), temporaryDir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell there is no watchdog; the exit handler still works.
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  child.unref();
  // A child's pipe is a socket at run time; only the static type hides it.
  (child.stdin as unknown as { unref?: () => void }).unref?.();
  return child;
}

function readTail(file: string, from: number): string {
  let log: number;
  try {
    log = openSync(file, 'r');
  } catch {
    return '';
  }
  try {
    const size = fstatSync(log).size;
    const start = Math.max(from, size - TAIL_BYTES);
    const buffer = Buffer.alloc(Math.max(0, size - start));
    readSync(log, buffer, 0, buffer.length, start);
    return buffer.toString('utf8').trim();
  } finally {
    closeSync(log);
  }
}

/**
 * A free TCP port of the loopback interface.
 *
 * We open one connection and close it from the listening side. While it is in TIME_WAIT, the kernel does not hand the
 * port to a process that asks for any free port, but a server can bind it by number.
 */
export async function freePort(): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP port was assigned');
  const socket = connect(address.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'close');
  server.close();
  await once(server, 'close');
  return address.port;
}

/** Whether something accepts TCP connections there. */
export async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: 1_000 });
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('timeout', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
