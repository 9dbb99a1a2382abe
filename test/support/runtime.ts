import { DefaultLogger, Runtime } from '@temporalio/worker';

/** Logs errors only. A process has one runtime, and serves several test files: who comes first installs it. */
export function quietRuntime(): void {
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch {
    // Installed before.
  }
}
