/** A worker of the support agent, as a process of its own. With `--with-stdin` it ends when its stdin does. */
import { createWorker } from 'perdure';
import { support } from './agents.ts';

const worker = await createWorker({
  agents: [support],
  address: process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233',
});
if (process.argv.includes('--with-stdin')) process.stdin.resume().once('end', () => process.exit());
console.log(JSON.stringify({ pid: process.pid }));
await worker.run();
