import { statSync } from 'node:fs';
import { roomIsFixed, takeRoom } from '../stack/room.ts';
import type { Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import type { FaultPoint } from './point.ts';

const QUICK: readonly Step[] = ['returned'];

/** The Temporal server cannot write into its store any more. Later it can again. */
export const storeFull: FaultPoint = {
  name: 'store-full',
  about:
    'Every write of the Temporal server to its file fails (a limit on the size of files, EFBIG, for a full disk); later there is room again.',
  needs: 'dev',
  missing: roomIsFixed,
  anyService: true,
  steps: QUICK,
  soakSteps: allBut(QUICK),
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const worker = await open(stage);
    const at = Date.now();
    const giveRoom = await takeRoom(server.pid, 0);
    const files = ['temporal.db', 'temporal.db-wal'].map((name) => stage.lane.file(`temporal/${name}`));
    const written = (): string => files.map((file) => statSync(file).mtime.toISOString()).join(', ');
    try {
      const before = written();
      // Workers report results that the server cannot store.
      stage.letGo(worker);
      const refused = await stage.refusedStart();
      if (written() !== before) throw new Error('the server has written into its file');
      stage.strike(`server ${server.pid} refused to start a workflow and wrote nothing: ${refused}`, at);
    } finally {
      await giveRoom();
    }
    if (step === 'between-turns') stage.more();
  },
};
