/** Measured processes: plain Node, controlled by arguments, answering by messages. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The longest wait for a message. A process that has not sent it by then is stuck. */
const LIMIT_MS = 300_000;

/** The running processes. */
const running = new Set<Pick<Talk<never>, 'child' | 'kill'>>();
// A process may have been started while the others were ended.
process.on('exit', () => {
  for (const { child } of running) child.kill('SIGKILL');
});

/** SIGKILL to all measured processes that run. */
export async function endProcesses(): Promise<void> {
  await Promise.all([...running].map((each) => each.kill()));
}

type Of<SAID extends { event: string }, EVENT> = (string extends SAID['event']
  ? SAID
  : Extract<SAID, { event: EVENT }>) & { at: number };

/** A measured process, and what it has said. */
export class Talk<SAID extends { event: string }> {
  readonly child: ChildProcess;
  readonly #name: string;
  readonly #said: (SAID & { at: number })[] = [];
  /** Resolves with how the process ended. Never rejects. */
  readonly #ended: Promise<string>;

  constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.child = child;
    running.add(this);
    child.on('message', (message) => {
      this.#said.push({ ...(message as SAID), at: performance.now() });
      child.emit('said');
    });
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        running.delete(this);
        resolve(how);
      };
      child.once('exit', (code, signal) => end(`ended with ${signal ?? code}`));
      child.on('error', (error) => {
        // This event also comes for a message to a process that is gone.
        if (child.pid === undefined) end(`cannot be started: ${error.message}`);
      });
    });
  }

  /**
   * The first message that fits, even if it came earlier, and when it came.
   *
   * @throws Error when the process ends first, or does not send it within the time limit. Then the process is killed.
   */
  async said<EVENT extends SAID['event']>(
    event: EVENT,
    where: (message: Of<SAID, EVENT>) => boolean = () => true,
    limitMs: number = LIMIT_MS,
  ): Promise<Of<SAID, EVENT>> {
    const limit = AbortSignal.timeout(limitMs);
    for (;;) {
      for (const message of this.#said) {
        this.check?.(message);
        const found = message as Of<SAID, EVENT>;
        if (message.event === event && where(found)) return found;
      }
      const how = await Promise.race([
        this.#ended,
        once(this.child, 'said', { signal: limit }).then(
          () => undefined,
          () => (limit.aborted ? `has not said ${event} within ${limitMs / 1_000} s` : undefined),
        ),
      ]);
      if (how === undefined) continue;
      await this.kill();
      throw new Error(`${this.#name} ${how}${this.last()}`);
    }
  }

  /** Sends SIGKILL, which also ends a stopped process. Does nothing if the process has ended or never started. */
  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.#ended;
  }

  /** All its messages of one kind. */
  all<EVENT extends SAID['event']>(event: EVENT): Of<SAID, EVENT>[] {
    return this.#said.filter((message) => message.event === event) as Of<SAID, EVENT>[];
  }

  /** Throws if a message says that the awaited message will not come. */
  protected check?(message: SAID): void;

  /** Text to add to the error of a process that has ended. */
  protected last(): string {
    return '';
  }
}

/** A message of a process of `bench/processes`. Each kind of message has its own fields. */
export interface Said {
  event: string;
  /** The job of a turn. */
  of?: string;
  turn?: number;
  /** Tokens of the prompt of a turn, or of a summary (turn 0). */
  tokens?: number;
  cachedTokens?: number;
  rss?: number;
  port?: number;
  cached?: number;
  checkpoints?: number;
  /** Bytes of a heap: before the work, and the peak in each part of the work. */
  before?: number;
  peaks?: number[];
  /** The last checkpoint of each page. */
  lasts?: string[];
}

/** A process of `bench/processes`. */
export type Measured = Talk<Said>;

/** Starts a file of `bench/processes` by its name. */
export function startMeasured(
  name: string,
  args: readonly string[],
  execArgv: readonly string[] = [],
): Measured {
  const file = fileURLToPath(new URL(`../processes/${name}.js`, import.meta.url));
  return new Talk(
    name,
    fork(file, args, { execArgv: [...execArgv], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
  );
}

/** Inside a measured process: sends a message to the bench. */
export function say(message: Said): void {
  process.send?.(message);
}
