/** A server of the stack as a child process that never outlives this one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** A killed database leaves processes that end a little later. Until then, it refuses to start. */
const STARTS = 40;

/** A server program, which can be restarted with the same arguments. */
export class Service {
  readonly #command: readonly [string, ...string[]];
  readonly #log: string;
  readonly #identity: Identity;
  #child: ChildProcess | null = null;
  #exited: Promise<unknown> = Promise.resolve();

  /** @param log a file to which the output of the program is appended. */
  constructor(command: readonly [string, ...string[]], log: string, identity: Identity = {}) {
    this.#command = command;
    this.#log = log;
    this.#identity = identity;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts the program and asks until it answers. If it ends before that, starts it again until the time is up. */
  async start(answers: () => Promise<void>, timeoutMs = 90_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    let last: unknown = null;
    for (let starts = 0; ; ) {
      if (this.#child === null || this.#child.exitCode !== null || this.#child.signalCode !== null) {
        await this.#spawn();
        starts += 1;
      }
      try {
        await answers();
        return;
      } catch (error) {
        last = error;
      }
      if (Date.now() > deadline || starts > STARTS) {
        const said = readFileSync(this.#log, 'utf8').slice(-2_000);
        await this.end('SIGKILL');
        throw new Error(`${this.#command[0]} does not answer: ${String(last)}\n${said}`);
      }
      await sleep(100);
    }
  }

  /** Ends it with a signal, and waits for its end. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.#child?.kill(signal);
    await this.#exited;
  }

  async #spawn(): Promise<void> {
    const [file, ...args] = this.#command;
    const log = openSync(this.#log, 'a');
    const child = spawn(file, args, { stdio: ['ignore', log, log], ...this.#identity });
    closeSync(log);
    this.#child = child;
    this.#exited = once(child, 'exit');
    await once(child, 'spawn');
    // A shell waits for the end of its input, which comes from us. It ends even when we are killed.
    const watchdog = spawn('/bin/sh', ['-c', 'read -r _; kill -KILL "$1"', 'watchdog', String(child.pid)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    child.once('exit', () => watchdog.kill('SIGKILL'));
  }
}

/** A free port that fits into the server's tables, which store a port as a signed 16-bit number. */
export async function freeSmallPort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
