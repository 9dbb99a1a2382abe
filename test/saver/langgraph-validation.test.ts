/** LangGraph's own validation of checkpointers, on a real Temporal server. */
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, type Worker } from '@temporalio/worker';
import { inject } from 'vitest';
import { createWorker, TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';
import { itSampled, validateAll } from './support/validation.ts';

const taskQueue = `langgraph-${process.pid}`;
let connection: Connection;
let native: NativeConnection;
let worker: Worker;
let run: Promise<void>;
let stores = 0;

validateAll(
  {
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
  },
  itSampled,
);
