import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { roomIsFixed, takeRoom } from '../stack/room.ts';
import { open } from './opening.ts';
import { databaseOf, type FaultPoint, gone } from './point.ts';

/** The size limit of files, in bytes: messages of the database fit, a segment of its write-ahead log does not. */
const ROOM = 64 * 1_024;
/** How long a database may take to give up, in milliseconds. */
const PATIENCE_MS = 90_000;

/**
 * The database under the Temporal server cannot write any more and gives up. It is restarted when it can write again.
 */
export const databaseFull: FaultPoint = {
  name: 'database-full',
  about:
    'The PostgreSQL under the Temporal server has no room for its write-ahead log (a limit on the size of files, EFBIG, for a full disk) and gives up; there is room again, and it is started by hand.',
  needs: 'postgres',
  missing: roomIsFixed,
  anyService: true,
  steps: ['returned'],
  // It gives up only after enough writes. Around an approval and in recovery there may be too few.
  soakSteps: ['model-asked', 'model-answered', 'landed', 'dispatched', 'in-call', 'gap', 'between-turns'],
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const database = databaseOf(stage);
    const worker = await open(stage);
    const { pid } = database;
    const at = Date.now();
    const giveRoom = await takeRoom(pid, ROOM);
    try {
      // Workers report results that the server cannot store.
      stage.letGo(worker);
      const refused = await stage.refusedStart();
      const deadline = Date.now() + PATIENCE_MS;
      while (!gone(pid)) {
        if (Date.now() > deadline) throw new Error(`database ${pid} is still there`);
        await sleep(50);
      }
      const [why] = /PANIC: .*File too large/.exec(readFileSync(database.log, 'utf8')) ?? [];
      if (why === undefined) throw new Error(`database ${pid} has not given up for want of room`);
      if (gone(server.pid)) throw new Error('the server went with its database');
      stage.strike(
        `database ${pid} gave up (${why}), server ${server.pid} refused a workflow: ${refused}`,
        at,
      );
    } finally {
      if (gone(pid)) await database.restart();
      else await giveRoom();
    }
    if (step === 'between-turns') stage.more();
  },
};
