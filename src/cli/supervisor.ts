/** Keeps one worker process running, and restarts it when a file changes or it dies. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ownModule } from '../worker/own-modules.ts';
import { FileWatch } from './file-watch.ts';
import type { WorkerReport } from './worker-report.ts';

export type SupervisorEvent =
  | Extract<WorkerReport, { type: 'ready' }>
  | { type: 'changed'; file: string }
  /** `waits`: it failed to start, and starts again when a file changes. */
  | { type: 'ended'; how: string; waits: boolean };

export interface SupervisorOptions {
  /** The arguments after `perdure`. */
  args: readonly string[];
  module: string;
  /** Where the worker's standard output goes. With `--json`, ours is for JSON. */
  stdout: 'inherit' | number;
  onEvent: (event: SupervisorEvent) => void;
}

/** How long a worker may take to end before it is killed: longer than its calls may take. */
const END_MS = 25_000;

/** Runs one worker at a time, until `stop` is aborted and the last one has ended. */
export async function supervise(options: SupervisorOptions, stop: AbortSignal): Promise<void> {
  let change = new AbortController();
  const watch = new FileWatch((file) => {
    options.onEvent({ type: 'changed', file });
    change.abort();
  });
  watch.add(options.module);
  try {
    while (!stop.aborted) {
      change = new AbortController();
      const wanted = AbortSignal.any([stop, change.signal]);
      const worker = startWorker(options, watch);
      await Promise.race([worker.ended, aborted(wanted)]);
      if (wanted.aborted) {
        await endWorker(worker);
        continue;
      }
      const waits = !worker.wasReady;
      options.onEvent({ type: 'ended', how: await worker.ended, waits });
      if (waits) await aborted(wanted);
    }
  } finally {
    watch.close();
  }
}

interface RunningWorker {
  child: ChildProcess;
  /** Resolves with the reason of its end. */
  ended: Promise<string>;
  wasReady: boolean;
}

function startWorker({ args, stdout, onEvent }: SupervisorOptions, watch: FileWatch): RunningWorker {
  const child = spawn(process.execPath, [...process.execArgv, ownModule('cli/main'), ...args], {
    // In its own process group, the worker gets Ctrl-C only once, from us.
    detached: process.platform !== 'win32',
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
  });
  const worker: RunningWorker = { child, ended, wasReady: false };
  child.on('message', (report: WorkerReport) => {
    if (report.type === 'file') {
      watch.add(report.file);
      return;
    }
    worker.wasReady = true;
    onEvent(report);
  });
  return worker;
}

async function endWorker({ child, ended }: RunningWorker): Promise<void> {
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await ended;
  clearTimeout(kill);
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
