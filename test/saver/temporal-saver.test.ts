import { beforeAll, describe, it } from 'vitest';
import { checkpointSaverConformance } from '../../src/testing/index.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
beforeAll(async () => {
  await threads.startWorker();
});

checkpointSaverConformance(
  { name: 'TemporalSaver', create: () => threads.newSaver(), reopen: () => threads.newSaver() },
  { describe, it },
);
