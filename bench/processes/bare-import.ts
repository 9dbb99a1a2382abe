/** The floor of a worker's start: a fresh process that only loads Temporal's worker module. */
import { say } from '../support/processes.ts';

await import('@temporalio/worker');
say({ event: 'ready' });
