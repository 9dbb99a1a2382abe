import type { Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import { databaseOf, type FaultPoint, gone } from './point.ts';

const QUICK: readonly Step[] = ['model-answered', 'landed', 'returned', 'between-turns'];

/** The database under the Temporal server is killed and recovers; the server and the worker live. */
export const databaseKill: FaultPoint = {
  name: 'database-kill',
  about:
    'The PostgreSQL under the Temporal server is killed (SIGKILL) and recovers from its log, under a server and a worker that go on.',
  needs: 'postgres',
  anyService: true,
  steps: QUICK,
  soakSteps: allBut(QUICK),
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const database = databaseOf(stage);
    const worker = await open(stage);
    const { pid } = database;
    const [since] = await database.query('postgres', 'select pg_postmaster_start_time()');
    const at = Date.now();
    await database.kill();
    if (!gone(pid)) throw new Error(`database ${pid} is still there`);
    // Workers report results that the server cannot store.
    stage.letGo(worker);
    await database.restart();
    const [now] = await database.query('postgres', 'select pg_postmaster_start_time()');
    if (now?.[0] === since?.[0]) throw new Error('the database is the one that was there before');
    if (gone(server.pid)) throw new Error('the server went with its database');
    stage.strike(`database ${pid} is gone, ${database.pid} serves its files, server ${server.pid} lives`, at);
    if (step === 'between-turns') stage.more();
  },
};
