/** LangGraph's own validation of checkpointers, whole and with what it leaves to choice, on a store in memory and on a real Temporal server. */
import * as validation from '@langchain/langgraph-checkpoint-validation';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, type Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, test } from 'vitest';
import { createWorker, MemorySaver, TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';

// The validation is written for a runner that has its verbs as globals.
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });

test('the validation has no other tests than those that are run here', () => {
  // `validate` is `specTest`, which runs four of these and its tests of `deleteThread`.
  expect(Object.keys(validation).sort()).toEqual([
    'deltaChannelHistoryTests',
    'getTupleTests',
    'listTests',
    'putTests',
    'putWritesTests',
    'specTest',
    'validate',
  ]);
});

function validateAll(initializer: validation.CheckpointSaverTestInitializer<LangGraphSaver>): void {
  validation.validate(initializer);
  validation.deltaChannelHistoryTests(initializer);
}

validateAll({
  checkpointerName: 'LangGraphSaver over MemorySaver',
  createCheckpointer: () => new LangGraphSaver(new MemorySaver()),
});

const taskQueue = `langgraph-${process.pid}`;
let connection: Connection;
let native: NativeConnection;
let worker: Worker;
let run: Promise<void>;
let stores = 0;

validateAll({
  checkpointerName: 'LangGraphSaver over TemporalSaver',
  beforeAllTimeout: 60_000,
  beforeAll: async () => {
    const { address, namespace } = inject('temporal');
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
    worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
    run = worker.run();
  },
  afterAll: async () => {
    worker.shutdown();
    await run;
    await native.close();
    await connection.close();
  },
  createCheckpointer: () => {
    const client = new Client({ connection, namespace: inject('temporal').namespace });
    return new LangGraphSaver(new TemporalSaver(client, { taskQueue }), {
      prefix: `${taskQueue}-${stores++}`,
    });
  },
});
