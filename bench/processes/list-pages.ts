/**
 * Lists a session's checkpoints in pages, and reports the size of its heap meanwhile. Lists all pages, or only the
 * pages before given checkpoints.
 */
import { Client, Connection } from '@temporalio/client';
import { TemporalSaver } from '../../src/index.ts';
import { say } from '../support/processes.ts';

/** The pause between two reads of the heap size, in milliseconds. */
const LOOK_MS = 200;

const [address = '', session = '', size = '', starts = '[]'] = process.argv.slice(2);
const limit = Number(size);
const given = JSON.parse(starts) as string[];
const connection = await Connection.connect({ address });
const saver = new TemporalSaver(new Client({ connection }));

let peak = 0;
const look = (): void => {
  globalThis.gc?.();
  peak = Math.max(peak, process.memoryUsage().heapUsed);
};
const heap = (): number => {
  const found = peak;
  peak = 0;
  return found;
};
look();
const before = heap();
const looking = setInterval(look, LOOK_MS);
const peaks: number[] = [];
const lasts: string[] = [];
let checkpoints = 0;
for (let at: string | undefined = given[0]; ; at = given[peaks.length] ?? at) {
  const page = await saver.list(session, at === undefined ? { limit } : { limit, before: at });
  look();
  peaks.push(heap());
  checkpoints += page.length;
  at = page.at(-1)?.id;
  if (at !== undefined) lasts.push(at);
  if (given.length > 0 ? peaks.length === given.length : page.length < limit) break;
}
clearInterval(looking);
say({ event: 'listed', checkpoints, before, peaks, lasts });
await connection.close();
