/** A worker as a user starts it, from the built package that the first argument names. */
import type * as Perdure from '../../src/index.ts';
import { instantModel } from '../support/instant-model.ts';
import { say } from '../support/processes.ts';

const [dist = '', address = '', taskQueue = '', journal = ''] = process.argv.slice(2);
const { createWorker, defineAgent } = (await import(dist)) as typeof Perdure;
const agent = defineAgent({ name: 'bench', model: instantModel(), instructions: 'You are measured.' });
const worker = await createWorker({ agents: [agent], address, taskQueue, journal });
const running = worker.run();
say({ event: 'running' });
await running;
