import { statSync } from 'node:fs';
import { roomIsFixed, takeRoom } from '../stack/room.ts';
import type { FaultPoint } from './point.ts';

/** The Temporal server can write nothing more into its store, and then can again. */
export const storeFull: FaultPoint = {
  name: 'store-full',
  about:
    'Every write of the Temporal server to its file fails (a limit on the size of files, EFBIG, for a full disk); later there is room again.',
  needs: 'dev',
  missing: roomIsFixed,
  anyService: true,
  steps: ['returned'],
  soakSteps: ['model-asked', 'model-answered', 'landed', 'dispatched', 'in-call', 'gap', 'between-turns'],
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const resting = step === 'between-turns';
    const worker = await stage.startWorker({ holdAt: resting ? [] : [step] });
    await stage.begin();
    if (resting) await stage.until(({ phase }) => phase === 'idle');
    else await stage.held(worker);
    const at = Date.now();
    const giveRoom = await takeRoom(server.pid, 0);
    const files = ['temporal.db', 'temporal.db-wal'].map((name) => stage.lane.file(`temporal/${name}`));
    const written = (): string => files.map((file) => statSync(file).mtime.toISOString()).join(', ');
    try {
      const before = written();
      // Workers report, and the server cannot write it down.
      stage.letGo(worker);
      const refused = await stage.refusedStart();
      if (written() !== before) throw new Error('the server has written into its file');
      stage.strike(`server ${server.pid} refused to start a workflow and wrote nothing: ${refused}`, at);
    } finally {
      await giveRoom();
    }
    if (resting) stage.more();
  },
};
