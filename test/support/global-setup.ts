/**
 * One Temporal dev server for the whole run, in memory, tuned, with the project's search attributes. Tests get
 * at it with `inject('temporal')` and keep apart by their task queues and workflow ids.
 */

import type { TestProject } from 'vitest/node';
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../../src/server/index.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    temporal: {
      /** `host:port` of the gRPC service. */
      readonly address: string;
      readonly namespace: string;
    };
  }
}

/** Starts the server before the first test file; what it returns stops it after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer({
    inMemory: true,
    searchAttributes: SESSION_SEARCH_ATTRIBUTES,
    onProgress: (line) => console.error(`[temporal] ${line}`),
  });
  project.provide('temporal', { address: server.address, namespace: server.namespace });
  return () => server.stop();
}
