import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, type Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { createWorker, TemporalSaver } from '../../src/index.ts';
import { checkpointSaverConformance } from '../../src/testing/conformance/index.ts';

Runtime.install({ logger: new DefaultLogger('ERROR') });

const taskQueue = `threads-${process.pid}-${Date.now()}`;
let connection: Connection;
let native: NativeConnection;
let worker: Worker;
let running: Promise<void>;

beforeAll(async () => {
  const { address, namespace } = inject('temporal');
  connection = await Connection.connect({ address });
  native = await NativeConnection.connect({ address });
  worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
  running = worker.run();
});

afterAll(async () => {
  worker.shutdown();
  await running;
  await native.close();
  await connection.close();
});

const newSaver = (): TemporalSaver =>
  new TemporalSaver(new Client({ connection, namespace: inject('temporal').namespace }), { taskQueue });

checkpointSaverConformance({ name: 'TemporalSaver', create: newSaver, reopen: newSaver }, { describe, it });
