/**
 * One Temporal dev server for each project of tests, tuned, with our search attributes, and one build for all of the
 * processes that tests start. The server has a file: SQLite in memory loses all when a busy machine makes it drop its
 * connection. Tests get the server with `inject('temporal')` and are separated by their task queues and workflow ids.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../../src/server/index.ts';
import { type BuiltProcesses, buildProcesses } from './built-processes.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    temporal: {
      /** `host:port` of the gRPC service. */
      readonly address: string;
      readonly namespace: string;
    };
    /** The folder of the built processes. */
    builtProcesses: string;
  }
}

/** Each project loads this module anew, in one process: they share the build. */
const run = globalThis as { perdureBuild?: Promise<BuiltProcesses> };

/** Starts the server and builds before the first test file; what it returns ends both after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.perdureBuild ??= buildProcesses().then((built) => {
    project.onTestsRerun(built.rebuild);
    return built;
  });
  const processes = await run.perdureBuild;
  project.provide('builtProcesses', processes.folder);
  // The server of a run that ends soon has memory to spare, and collects it for a tenth of its processor time.
  process.env['GOGC'] ??= '400';
  const dir = await mkdtemp(join(tmpdir(), 'perdure-tests-'));
  const server = await startServer({
    dir,
    searchAttributes: SESSION_SEARCH_ATTRIBUTES,
    onProgress: (line) => console.error(`[temporal] ${line}`),
  });
  project.provide('temporal', { address: server.address, namespace: server.namespace });
  return async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
    await processes.remove();
  };
}
