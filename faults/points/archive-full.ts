import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { archiveStatus, auditSession, SqliteArchive } from 'perdure/archive';
import { isUnanswered } from '../../src/contract/errors.ts';
import { startArchiver } from '../archiver.ts';
import { roomIsFixed, takeRoom } from '../stack/room.ts';
import type { FaultPoint } from './point.ts';

/**
 * How long an archive may store nothing, in milliseconds. It retries less and less often, and it stores the sessions of
 * earlier stories first.
 */
const PATIENCE_MS = 120_000;

/** The archive cannot store anything while the sessions continue. Later it can again. */
export const archiveFull: FaultPoint = {
  name: 'archive-full',
  about:
    'Every write to the file of the archive fails (a limit on the size of files, EFBIG, for a full disk) while sessions go on; later there is room again, and the archive is held against the histories.',
  missing: roomIsFixed,
  anyService: true,
  // The fault strikes the archive, not a session.
  steps: ['between-turns'],
  inject: async (stage) => {
    const { client } = stage.harness;
    const archiver = await startArchiver(stage.lane, stage.lane.file(`archive-${stage.story.seed}.db`));
    stage.onClose(async () => {
      await archiver.stop();
      await client.workflow.getHandle(`perdure-archive/${archiver.name}`).terminate('the run is over');
    });
    await stage.startWorker();
    const giveRoom = await takeRoom(archiver.pid, 0);
    await stage.begin();
    await stage.until(({ phase }) => phase === 'idle', { helped: true });
    let failure = '';
    await stage.until(async () => {
      const status = await archiveStatus(client, archiver.name).catch((error: unknown) => {
        if (isUnanswered(error)) return null;
        throw error;
      });
      failure = status?.failure?.message ?? '';
      return failure !== '';
    });
    stage.strike(`the archive stores nothing: ${failure}`);
    stage.more();
    return async () => {
      await giveRoom();
      const archive = new SqliteArchive(archiver.path);
      let deadline = Date.now() + PATIENCE_MS;
      let stored = 0;
      try {
        for (const { session } of stage.actors) {
          for (;;) {
            const audit = await auditSession(client, archive, session.id);
            if (audit.difference !== null) throw new Error(JSON.stringify(audit.difference));
            if (audit.pending === 0 && audit.equal > 0) break;
            const bytes = sizeOf(archiver.path);
            if (bytes !== stored) deadline = Date.now() + PATIENCE_MS;
            stored = bytes;
            if (Date.now() > deadline) throw new Error(`still not archived: ${JSON.stringify(audit)}`);
            await sleep(200);
          }
        }
      } finally {
        await archive.close();
      }
    };
  },
};

/** The bytes of a database, with its log. */
function sizeOf(path: string): number {
  const sizes = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  return sizes.reduce((sum, size) => sum + size, 0);
}
