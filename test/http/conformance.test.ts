/** The saver's contract, held over HTTP by the saver that `perdure serve` has. */

import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { createWorker, TemporalSaver } from '../../src/index.ts';
import { checkpointSaverConformance } from '../../src/testing/conformance/index.ts';
import { openApi, type ServedApi } from './support/api.ts';
import { HttpSaver } from './support/http-saver.ts';

const taskQueue = `http-${process.pid}-${Date.now()}`;
let api: ServedApi;
let stop: () => Promise<void>;

beforeAll(async () => {
  const { address, namespace } = inject('temporal');
  const [connection, native] = await Promise.all([
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
  const running = worker.run();
  api = await openApi(new TemporalSaver(new Client({ connection, namespace }), { taskQueue }));
  stop = async () => {
    await api.close();
    worker.shutdown();
    await running;
    await Promise.all([native.close(), connection.close()]);
  };
});
afterAll(() => stop());

const newSaver = (): HttpSaver => new HttpSaver(api.url, api.token);

checkpointSaverConformance(
  { name: 'TemporalSaver over HTTP', create: newSaver, reopen: newSaver },
  { describe, it },
);
