import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker } from '@temporalio/worker';
import { PerdurePlugin } from 'perdure';
import { clerk } from '../quickstart/agents.ts';

const connection = await NativeConnection.connect({
  address: process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233',
});
const worker = await Worker.create({
  connection,
  taskQueue: process.env['PERDURE_TASK_QUEUE'] ?? 'perdure',
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
  plugins: [new PerdurePlugin({ agents: [clerk] })],
});
await worker.run();
await connection.close();
