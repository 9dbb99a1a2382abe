import { createWorker } from 'perdure';
import { clerk } from './agents.ts';

const worker = await createWorker({
  agents: [clerk],
  address: process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233',
});
await worker.run();
