/** The command line as its users run it: a process, its output and its exit code. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { SHORT_LIVED } from '../../support/short-lived.ts';
import { builtPackage } from './built.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Where and with what a run happens. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** What is piped in. */
  readonly stdin?: string;
  /** The most that it may write into a file, in blocks of 512 bytes. */
  readonly fileBlocks?: number;
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

function environment(env: RunOptions['env']): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // The package by its name is the built one, wherever a module of agents lies.
    TSX_TSCONFIG_PATH: builtPackage().tsconfig,
    USER: 'ada',
    FORCE_COLOR: undefined,
    NO_COLOR: undefined,
    TEMPORAL_ADDRESS: undefined,
    TEMPORAL_NAMESPACE: undefined,
    PERDURE_TASK_QUEUE: undefined,
    ...env,
  };
}

/** The program that runs `perdure` with some arguments, for others to start. */
export function commandOf(
  args: readonly string[],
  env: RunOptions['env'],
): { command: string; args: string[]; env: Record<string, string> } {
  const all = Object.entries(environment(env)).filter(([, value]) => value !== undefined);
  return {
    command: process.execPath,
    args: [...SHORT_LIVED, builtPackage().main, ...args],
    env: Object.fromEntries(all) as Record<string, string>,
  };
}

/** Starts `perdure` with some arguments. */
export function start(
  args: readonly string[],
  { env, cwd = ROOT, stdin, fileBlocks }: RunOptions = {},
): Running {
  const words = [process.execPath, ...SHORT_LIVED, builtPackage().main, ...args];
  // The shell's limit stays with what takes its place.
  if (fileBlocks !== undefined) words.unshift('/bin/sh', '-c', `ulimit -f ${fileBlocks} && exec "$@"`, 'sh');
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, {
    cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: environment(env),
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

/** Why nothing can be run at a terminal here, or `null`. */
export function noTerminal(): string | null {
  const { status, stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' });
  return status === 0 && stdout.includes('util-linux') ? null : 'there is no `script` of util-linux';
}

/**
 * Runs `perdure` at a terminal, and types once it asks.
 *
 * @param prompt - what the terminal shows last before it waits for a key.
 * @param keys - what is typed then, or what is done then and typed after it.
 * @returns the exit code, and as `stdout` all that the terminal showed.
 */
export async function typeInto(
  args: readonly string[],
  prompt: string,
  keys: string | (() => Promise<string>),
  { env }: RunOptions = {},
): Promise<Ran> {
  const words = [process.execPath, ...SHORT_LIVED, builtPackage().main, ...args];
  const line = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  // Its standard input stays open: at its end the terminal would be hung up.
  const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...environment(env), SHELL: '/bin/sh' },
  });
  let stdout = '';
  let ask = (): void => undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const asked = stdout.includes(prompt);
    stdout += text;
    if (!asked && stdout.includes(prompt)) ask();
  });
  const code = await new Promise<number>((resolve, reject) => {
    ask = () => {
      const typed = typeof keys === 'string' ? Promise.resolve(keys) : keys();
      typed.then((text) => child.stdin.write(text)).catch(reject);
    };
    child.once('error', reject);
    child.once('close', (status) => resolve(status ?? -1));
  });
  return { code, stdout, stderr: '' };
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

/** The arguments of a command of ours, as a shell reads them: what it would run besides shows as a failure. */
export function wordsOf(command: string): string[] {
  // Nothing else can be run.
  const script = `PATH=/nowhere\nperdure() { printf '%s\\0' "$@"; }\n${command}`;
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8' });
  if (status !== 0 || stderr !== '') throw new Error(`${command}\n${stderr}`);
  return stdout.split('\0').slice(0, -1);
}
