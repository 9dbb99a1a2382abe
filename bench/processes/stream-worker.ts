/** A worker whose agent says the time, into Redis. */
import { createWorker, defineAgent, RedisLiveChannel } from '../../src/index.ts';
import { clockModel } from '../support/clock-model.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';

const [address = '', taskQueue = '', journal = '', redis = ''] = process.argv.slice(2);
quietRuntime();
const clock = defineAgent({ name: 'clock', model: clockModel(), instructions: 'You are measured.' });
const live = new RedisLiveChannel(redis);
const worker = await createWorker({ agents: [clock], address, taskQueue, journal, live });
const running = worker.run();
say({ event: 'ready' });
await running;
