/**
 * One Temporal dev server for the whole run, in memory, tuned, with the project's search attributes, and one build of the
 * processes that tests start. Tests get at the server with `inject('temporal')` and keep apart by their task queues and
 * workflow ids.
 */

import type { TestProject } from 'vitest/node';
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../../src/server/index.ts';
import { buildProcesses } from './built-processes.ts';

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

/** Starts the server and builds before the first test file; what it returns ends both after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const processes = await buildProcesses();
  project.provide('builtProcesses', processes.folder);
  project.onTestsRerun(processes.rebuild);
  // The server of a run that ends soon has memory to spare, and collects it for a tenth of its processor time.
  process.env['GOGC'] ??= '400';
  const server = await startServer({
    inMemory: true,
    searchAttributes: SESSION_SEARCH_ATTRIBUTES,
    onProgress: (line) => console.error(`[temporal] ${line}`),
  });
  project.provide('temporal', { address: server.address, namespace: server.namespace });
  return async () => {
    await server.stop();
    await processes.remove();
  };
}
