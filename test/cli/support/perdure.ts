/** The command line as its users run it: a process, its output and its exit code. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
/** By its path: the working directory of a run need not know the loader. */
const LOADER = pathToFileURL(
  fileURLToPath(new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url)),
);

/** Where and with what a run happens. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** What is piped in. */
  readonly stdin?: string;
}

/** A run that has ended. */
export interface Ran {
  /** -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run that goes on. */
export interface Running {
  readonly child: ChildProcess;
  /** The next line of standard output for which `match` answers something; fails when the run ends before. */
  line<T>(match: (line: string) => T | undefined | false | null): Promise<T>;
  readonly ended: Promise<Ran>;
}

/** Starts `perdure` with some arguments. */
export function start(args: readonly string[], { env, cwd = ROOT, stdin }: RunOptions = {}): Running {
  const child = spawn(process.execPath, ['--import', LOADER.href, MAIN, ...args], {
    cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // The package by its name is the source, wherever a module of agents lies.
      TSX_TSCONFIG_PATH: `${ROOT}tsconfig.json`,
      USER: 'ada',
      FORCE_COLOR: undefined,
      NO_COLOR: undefined,
      TEMPORAL_ADDRESS: undefined,
      TEMPORAL_NAMESPACE: undefined,
      PERDURE_TASK_QUEUE: undefined,
      ...env,
    },
  });
  child.stdin.end(stdin ?? '');
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, ...output }));
  });
  return {
    child,
    ended,
    line: async (match) => {
      for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
        const found = match(next.value);
        if (found) return found;
      }
      const { code, stdout, stderr } = await ended;
      throw new Error(`it ended with ${code} before the line came:\n${stdout}\n${stderr}`);
    },
  };
}

/** Runs `perdure` to its end. */
export function run(args: readonly string[], options?: RunOptions): Promise<Ran> {
  return start(args, options).ended;
}

/** The objects in JSON lines. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** The error that a run with `--json` left behind. */
export function errorOf({ stderr }: Ran): {
  code: string;
  message: string;
  details: Record<string, unknown>;
  next: string;
} {
  const last = stderr.trimEnd().split('\n').at(-1) ?? '';
  return (JSON.parse(last) as { error: ReturnType<typeof errorOf> }).error;
}
