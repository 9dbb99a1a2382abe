/** A Node process of ours that prints one JSON line when it is ready. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { programOf } from './built-file.ts';

/** A running process and what it said when it was ready. */
export interface ReadyProcess {
  readonly ready: { readonly url: string; readonly port: number; readonly pid: number };
  /** SIGKILL, and resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and resolves with the exit code. */
  terminate(): Promise<number | null>;
  /** Closes its stdin, and resolves with the exit code. */
  closeStdin(): Promise<number | null>;
}

/** Starts `file` (TypeScript) with `args` and resolves when it has printed its line; rejects when it ends before. */
export async function startProcess(file: string, args: readonly string[]): Promise<ReadyProcess> {
  const child = spawn(process.execPath, [...programOf(file), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  const line = once(createInterface(child.stdout), 'line') as Promise<[string]>;
  const [first] = await Promise.race([
    line,
    exited.then(([code]) => {
      throw new Error(`${file} ended with ${code} before it was ready:\n${stderr}`);
    }),
  ]);
  const end = async (act: (child: ChildProcess) => void): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) act(child);
    return (await exited)[0];
  };
  return {
    ready: JSON.parse(first) as ReadyProcess['ready'],
    kill: async () => void (await end(() => child.kill('SIGKILL'))),
    terminate: () => end(() => child.kill('SIGTERM')),
    closeStdin: () => end(() => child.stdin.end()),
  };
}
