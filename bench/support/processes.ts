/** Measured processes: plain Node, told by arguments, answering by messages. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What a measured process says; each kind knows which fields it sends. */
export interface Said {
  event: string;
  turn?: number;
  rss?: number;
  cached?: number;
  checkpoints?: number;
  /** Bytes of a heap: before the work, and at most in each of its parts. */
  before?: number;
  peaks?: number[];
  /** The last checkpoint of each page. */
  lasts?: string[];
}

/** A measured process. */
export interface Measured {
  readonly child: ChildProcess;
  /** The first message of that kind, also one that has come already, and when it came. */
  said(event: string, where?: (message: Said) => boolean): Promise<Said & { at: number }>;
  /** Asks a numbered question. */
  ask(question: number): void;
  /** SIGKILL, which also ends a stopped process. */
  kill(): Promise<void>;
}

/** Starts a file of `bench/processes` by its name. */
export function startMeasured(
  name: string,
  args: readonly string[],
  execArgv: readonly string[] = [],
): Measured {
  const file = fileURLToPath(new URL(`../processes/${name}.js`, import.meta.url));
  const child = fork(file, args, { execArgv: [...execArgv], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const messages: (Said & { at: number })[] = [];
  child.on('message', (message) => {
    messages.push({ ...(message as Said), at: performance.now() });
    child.emit('said');
  });
  const exited = once(child, 'exit');
  return {
    child,
    said: async (event, where = () => true) => {
      for (;;) {
        const found = messages.find((message) => message.event === event && where(message));
        if (found !== undefined) return found;
        await Promise.race([
          once(child, 'said'),
          exited.then(([code, signal]) => {
            throw new Error(`${name} ended with ${code ?? signal} before it said ${event}`);
          }),
        ]);
      }
    },
    ask: (question) => void child.send(question),
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Inside a measured process: says something to the one that measures. */
export function say(message: Said): void {
  process.send?.(message);
}
