/** The demo's own processes: each says in one JSON line when it is ready, and none outlives the demo. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

/** A running process. */
export interface Running {
  readonly name: string;
  readonly pid: number;
  /** Where it answers, of those that serve something. */
  readonly url: string;
  /** SIGKILL, and resolves when it is gone. */
  kill(): Promise<void>;
}

/** Starts processes, notices when one ends that should not, and ends them all. */
export class Processes {
  readonly #dir: string;
  readonly #failed: (error: Error) => void;
  readonly #children = new Map<ChildProcess, { wanted: boolean }>();
  #stopped = false;

  /**
   * @param dir - where the processes' logs go.
   * @param failed - told of a process that ends by itself.
   */
  constructor(dir: string, failed: (error: Error) => void) {
    this.#dir = dir;
    this.#failed = failed;
    // Also when an error of ours that nobody caught ends this process.
    process.once('exit', () => this.#signal('SIGKILL'));
  }

  /** Starts a TypeScript module of this repository; rejects when it ends before it is ready. */
  async start(
    name: string,
    module: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Running> {
    if (this.#stopped) throw new Error('the demo has ended');
    const logFile = join(this.#dir, `${name.replaceAll(' ', '-')}.log`);
    const stderr = openSync(logFile, 'a');
    // One process, not the loader's two: a SIGKILL must hit the one that does the work. Its stdin ends with us.
    const child = spawn(process.execPath, ['--import', 'tsx', join(ROOT, module), ...args, '--with-stdin'], {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', stderr],
    });
    const state = { wanted: false };
    this.#children.set(child, state);
    const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
    const ended = exited.then(([code, signal]) => {
      this.#children.delete(child);
      return new Error(`${name} ended by itself (${signal ?? code}):\n${lastLines(logFile)}`);
    });
    closeSync(stderr);
    const { stdout } = child;
    if (stdout === null) throw new Error(`${name} has no output`);
    const [line] = await Promise.race([
      once(createInterface(stdout), 'line') as Promise<[string]>,
      ended.then((error) => Promise.reject(error)),
    ]);
    void ended.then((error) => {
      if (!state.wanted) this.#failed(error);
    });
    const ready = JSON.parse(line) as { pid: number; url?: string };
    return {
      name,
      pid: ready.pid,
      url: ready.url ?? '',
      kill: async () => {
        state.wanted = true;
        child.kill('SIGKILL');
        await ended;
      },
    };
  }

  /** Ends all of them and waits until they are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const gone = [...this.#children.keys()].map((child) => once(child, 'exit'));
    this.#signal('SIGKILL');
    await Promise.all(gone);
  }

  #signal(signal: NodeJS.Signals): void {
    for (const [child, state] of this.#children) {
      state.wanted = true;
      child.kill(signal);
    }
  }
}

function lastLines(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}
