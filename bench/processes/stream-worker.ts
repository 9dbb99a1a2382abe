/** A worker whose agent says the time, into Redis. */

import { createClient } from 'redis';
import { createWorker, defineAgent, RedisLiveChannel } from '../../src/index.ts';
import { clock, clockModel } from '../support/clock-model.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';
import { FLOOR, FLOOR_MS } from '../support/redis-floor.ts';

const [address = '', taskQueue = '', journal = '', redis = ''] = process.argv.slice(2);
quietRuntime();
const agent = defineAgent({ name: 'clock', model: clockModel(), instructions: 'You are measured.' });
const live = new RedisLiveChannel(redis);
const worker = await createWorker({ agents: [agent], address, taskQueue, journal, live });
const running = worker.run();
// Writes bare entries from this process, beside the entries of the model.
const floor = createClient({ url: redis, RESP: 2 });
await floor.connect();
setInterval(() => void floor.sendCommand(['XADD', FLOOR, '*', 'at', String(clock())]), FLOOR_MS);
say({ event: 'ready' });
await running;
