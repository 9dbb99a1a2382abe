/** A worker process that a test can kill, freeze and wake. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { PerdureError } from '../../contract/errors.ts';
import { ownModule } from '../../worker/own-modules.ts';
import type { Release, WorkerNews } from './breakpoints.ts';
import type { WorkerConfig } from './worker-main.ts';

/** A running worker process. */
export interface WorkerProcess {
  readonly pid: number;
  /**
   * Resolves when the worker is held at a breakpoint, or has been already. Each visit is reported once, in
   * order. Rejects with `NO_WORKER` when the process ends first, with `INVALID_ARGUMENT` for a point that `breakAt`
   * does not name. `detail` of `after <tool>` is the result as JSON.
   */
  reached(point: string): Promise<{ readonly detail: string }>;
  /** Releases everything that is held at this breakpoint now. A frozen worker continues when it is woken. */
  release(point: string): void;
  /** SIGKILL: the worker dies at once. Resolves when the process is gone. */
  crash(): Promise<void>;
  /** SIGSTOP: the worker stops and does not notice. */
  freeze(): void;
  /** SIGCONT: the worker continues as if no time had passed. */
  wake(): void;
  /**
   * SIGTERM: the worker finishes its calls in flight and exits. A call that is held at a breakpoint continues after the
   * worker's `shutdownGraceTime` (default: 10 seconds). A call that never ends is ended by force after
   * `shutdownForceTime` (default: 20 seconds). Resolves when the process is gone.
   */
  stop(): Promise<void>;
}

/** A module that runs as a worker process, and Node's options for it. */
export interface WorkerProgram {
  readonly main: string;
  readonly execArgv: readonly string[];
}

/** The program for modules of agents that may be TypeScript. */
function fromTypeScript(): WorkerProgram {
  const loader = createRequire(import.meta.url).resolve('tsx');
  return {
    main: ownModule('testing/harness/worker-main'),
    execArgv: ['--import', pathToFileURL(loader).href],
  };
}

/** Worker processes to kill when this process exits: a frozen one could not notice the end of its parent. */
const living = new Set<ChildProcess>();
const killAll = (): void => {
  for (const child of living) child.kill('SIGKILL');
};

/**
 * Starts a worker process. Resolves when it polls, rejects when it ends before that.
 *
 * @param onFork - called at once with a function that ends the process, also while it starts.
 * @param program - what the process runs.
 */
export async function startWorkerProcess(
  config: WorkerConfig,
  env: Readonly<Record<string, string>>,
  onFork: (crash: () => Promise<void>) => void,
  { main, execArgv }: WorkerProgram = fromTypeScript(),
): Promise<WorkerProcess> {
  const child = fork(main, [JSON.stringify(config)], {
    execArgv: [...execArgv],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-20_000);
  });
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  living.add(child);
  child.once('exit', () => living.delete(child));
  process.off('exit', killAll).on('exit', killAll);
  const crash = (): Promise<void> => end(child, exited, 'SIGKILL');
  onFork(crash);
  const visits = new Visits();
  const ready = new Promise<void>((resolve) => {
    child.on('message', (news: WorkerNews) => {
      if (news.kind === 'ready') resolve();
      else visits.arrive(news);
    });
  });
  const ended = exited.then(([code, signal]): never => {
    const error = new PerdureError(
      'NO_WORKER',
      `The worker process ended with ${signal ?? `code ${code}`}.${stderr === '' ? '' : `\n${stderr}`}`,
    );
    visits.fail(error);
    throw error;
  });
  ended.catch(() => {});
  await Promise.race([ready, ended]);
  return {
    pid: child.pid ?? 0,
    reached: async (point) => {
      if (!config.breakAt.includes(point)) throw unknownPoint(point, config.breakAt);
      return visits.next(point);
    },
    release: (point) => {
      for (const visit of visits.leave(point)) {
        // An error means that the process is gone.
        child.send({ kind: 'release', point, visit } satisfies Release, () => {});
      }
    },
    crash,
    freeze: () => void child.kill('SIGSTOP'),
    wake: () => void child.kill('SIGCONT'),
    stop: async () => {
      child.kill('SIGCONT');
      await end(child, exited, 'SIGTERM');
    },
  };
}

async function end(child: ChildProcess, exited: Promise<unknown>, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  await exited;
}

function unknownPoint(point: string, breakAt: readonly string[]): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    `point: this worker does not stop at "${point}". Its breakAt is ${JSON.stringify(breakAt)}`,
  );
}

type Visit = Extract<WorkerNews, { kind: 'reached' }>;

/** Visits of breakpoints that no test has asked for yet, and the tests that wait for one. */
class Visits {
  readonly #untold: Visit[] = [];
  readonly #held: Visit[] = [];
  readonly #waiting: { point: string; tell: (visit: Visit) => void; fail: (error: unknown) => void }[] = [];
  #failure: Error | undefined;

  arrive(visit: Visit): void {
    this.#held.push(visit);
    const index = this.#waiting.findIndex(({ point }) => point === visit.point);
    if (index < 0) this.#untold.push(visit);
    else this.#waiting.splice(index, 1)[0]?.tell(visit);
  }

  next(point: string): Promise<Visit> {
    const index = this.#untold.findIndex((visit) => visit.point === point);
    const [visit] = index < 0 ? [] : this.#untold.splice(index, 1);
    if (visit !== undefined) return Promise.resolve(visit);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((tell, fail) => this.#waiting.push({ point, tell, fail }));
  }

  leave(point: string): number[] {
    const leaving = this.#held.filter((visit) => visit.point === point);
    for (const visit of leaving) this.#held.splice(this.#held.indexOf(visit), 1);
    return leaving.map(({ visit }) => visit);
  }

  fail(error: Error): void {
    this.#failure = error;
    for (const { fail } of this.#waiting.splice(0)) fail(error);
  }
}
